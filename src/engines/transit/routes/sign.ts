import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import { integer } from '../../../field.ts'
import { type Data, type MaybePromise, route } from '../../../route.ts'
import { signDerived } from '../ciphers/derived.ts'
import { signManaged } from '../ciphers/managed.ts'
import type { TransitContext } from '../context.ts'
import { decodeInput, decodeOptional } from '../input/base64.ts'
import { answer } from '../input/batch.ts'
import { type Item, readInputs } from '../input/items.ts'
import { readScheme, schemeFields, schemeReading, warnOfScheme } from '../input/scheme.ts'
import { tag } from '../input/tagged.ts'
import { managedType } from '../ring/managedtype.ts'
import type { Ring } from '../ring/readring.ts'
import { versionToMake } from '../ring/versions.ts'
import { withRing } from '../ring/withring.ts'

const body = Type.Object({
  ...schemeFields,
  key_version: integer({ about: 'The version to sign with; 0 or absent is the latest.' }),
})
const reading = {
  shape: { ...schemeReading.shape, key_version: 'integerText' },
  aliases: schemeReading.aliases,
  shared: [...schemeReading.shared, 'key_version'],
} as const

function signOne(
  context: TransitContext,
  ring: Ring,
  input: Item<typeof reading.shape>,
  urlHash: string | undefined,
  warn: (text: string) => void,
): MaybePromise<Data> {
  if (input.input === undefined) throw badRequest('missing input')
  const scheme = readScheme(input, urlHash)
  const message = decodeInput(input.input)
  const version = versionToMake(ring, input.key_version ?? 0, 'signing')
  const derivation = decodeOptional('context', input.context)
  const shown = (signature: Buffer): Data => ({
    key_version: version.version,
    signature: tag(version.version, signature.toString(scheme.marshaling === 'jws' ? 'base64url' : 'base64')),
  })
  if (ring.key.derived) {
    return after(signDerived({ context, ring, version, warn }, derivation, message), ({ signature, point }) => {
      const key = point.toString('base64')
      // The reference's spelling, and everybody else's.
      return { ...shown(signature), publickey: key, public_key: key }
    })
  }
  if (ring.key.type === managedType) {
    const chosen = Boolean(input.signature_algorithm)
    return after(signManaged({ context, ring, version, warn }, message, scheme, chosen), shown)
  }
  return after(context.material(version.material), (key) => {
    warnOfScheme(context, key, scheme, warn)
    return after(context.signer.sign(key, message, scheme), shown)
  })
}

const signRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Signs.',
    body,
    items: 'batch_input',
    danger: 'none',
    run(call) {
      const inputs = readInputs(call.body, reading)
      return withRing(call, 'signing key not found', (ring) =>
        answer(call, inputs, { partialStatus: 200, failedItem: { key_version: 0 } }, (input, warn) =>
          signOne(call.context, ring, input, call.params.hash_algorithm, warn),
        ),
      )
    },
  })

export const signData = signRoute('sign/:name')
export const signDataWithHash = signRoute('sign/:name/:hash_algorithm')
