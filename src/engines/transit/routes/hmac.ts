import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { hashes } from '../../../crypto/hashes.ts'
import { badRequest } from '../../../errors.ts'
import { integer, raw, text } from '../../../field.ts'
import { type Data, type MaybePromise, route } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { decodeInput } from '../input/base64.ts'
import { answer } from '../input/batch.ts'
import { type Item, readInputs } from '../input/items.ts'
import { tag } from '../input/tagged.ts'
import type { Ring } from '../ring/readring.ts'
import type { Version } from '../ring/ring.ts'
import { versionToMac } from '../ring/versions.ts'
import { withRing } from '../ring/withring.ts'

const body = Type.Object({
  input: text({ about: 'What is authenticated, in base64; may be empty.' }),
  algorithm: text({
    about: 'sha2-224, -256, -384, -512 or sha3-224, -256, -384, -512; sha2-256 when absent.',
    aliases: ['hash_algorithm'],
  }),
  key_version: integer({ about: 'The version whose secret is used; 0 or absent is the latest.' }),
  batch_input: raw({ about: 'Items of input, algorithm, key_version, reference.' }),
  partial_failure_response_code: integer({ about: 'Status when some items of a batch fail; 200 when absent.' }),
})

const reading = {
  shape: { input: 'text', algorithm: 'text', key_version: 'integerText', reference: 'text' },
  aliases: { algorithm: 'hash_algorithm' },
  shared: ['algorithm', 'key_version'],
} as const

/**
 * HMAC of the message under the version's secret, which for type hmac is the key itself.
 * @throws ApiError 400 for a name that is no hash
 */
export function macOf(
  context: TransitContext,
  { material, hmacMaterial }: Version,
  hashName: string,
  message: Buffer,
  warn: (text: string) => void,
): MaybePromise<Buffer> {
  const hash = hashes.get(hashName)
  if (hash === undefined) throw badRequest(`unsupported algorithm "${hashName}"`)
  context.approval.warn(warn, hash)
  return after(context.material(hmacMaterial ?? material), (secret) => context.hmacs.mac(secret, hash, message))
}

function hmacOne(
  context: TransitContext,
  ring: Ring,
  { input, algorithm, key_version: requested = 0 }: Item<typeof reading.shape>,
  urlAlgorithm: string | undefined,
  warn: (text: string) => void,
): MaybePromise<Data> {
  if (input === undefined) throw badRequest('missing input for HMAC')
  const message = decodeInput(input)
  const version = versionToMac(ring, requested)
  return after(macOf(context, version, urlAlgorithm ?? (algorithm || 'sha2-256'), message, warn), (mac) => ({
    hmac: tag(version.version, mac.toString('base64')),
  }))
}

const hmacRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Authenticates the input with a secret that every key version has for it.',
    body,
    items: 'batch_input',
    danger: 'none',
    run(call) {
      const inputs = readInputs(call.body, reading)
      return withRing(call, 'encryption key not found', (ring) =>
        answer(call, inputs, { partialStatus: 200 }, (input, warn) =>
          hmacOne(call.context, ring, input, call.params.algorithm, warn),
        ),
      )
    },
  })

export const generateHmac = hmacRoute('hmac/:name')
export const generateHmacWithHash = hmacRoute('hmac/:name/:algorithm')
