import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { decodeInput } from '../../../crypto/base64.ts'
import { badRequest } from '../../../errors.ts'
import { integer, raw, text, wholeBody } from '../../../field.ts'
import { type Data, type MaybePromise, route } from '../../../route.ts'
import { hmac } from '../ciphers/hmac.ts'
import { type Operation, runOperation } from '../ciphers/operation.ts'
import type { TransitContext } from '../context.ts'
import { resultOrBatch } from '../input/batch.ts'
import { type Item, mostBatchItems, readInputs } from '../input/items.ts'
import { hashNameOf } from '../input/scheme.ts'
import { tag } from '../input/tagged.ts'
import { versionToMac } from '../ring/versions.ts'

const body = Type.Object({
  input: text({ about: 'The bytes to authenticate, in base64; may be empty.', longest: wholeBody }),
  hash_algorithm: text({
    about: 'sha2-224, -256, -384, -512 or sha3-224, -256, -384, -512; sha2-256 when absent.',
    aliases: ['algorithm'],
  }),
  key_version: integer({ about: 'The version whose secret is used; 0 or absent is the latest.' }),
  batch_input: raw({ about: 'Items of input, hash_algorithm, key_version, reference.' }),
  partial_failure_response_code: integer({ about: 'Status when some items of a batch fail; 200 when absent.' }),
})

const reading = {
  shape: { input: 'text', hash_algorithm: 'text', key_version: 'integerText', reference: 'text' },
  aliases: { hash_algorithm: 'algorithm' },
  shared: ['hash_algorithm', 'key_version'],
} as const

function generate(
  operation: Operation,
  fields: Item<typeof reading.shape>,
  urlAlgorithm: string | undefined,
): MaybePromise<Data> {
  const { input, key_version: requested = 0 } = fields
  if (input === undefined) throw badRequest('missing input for HMAC')
  const message = decodeInput(input)
  const version = versionToMac(operation.ring, requested)
  return after(hmac({ ...operation, version }, hashNameOf(fields, urlAlgorithm), message), (mac) => ({
    hmac: tag(version.version, mac.toString('base64')),
  }))
}

const rules = { missing: 'encryption key not found', partialStatus: 200 } as const

const hmacRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes an HMAC of the input with the HMAC secret of the key version.',
    body,
    items: 'batch_input',
    longestList: mostBatchItems,
    answers: resultOrBatch({ hmac: Type.String() }),
    run: (call) =>
      runOperation(call, readInputs(call, reading), rules, (operation, input) =>
        generate(operation, input, call.params.algorithm),
      ),
  })

export const generateHmac = hmacRoute('hmac/:name')
export const generateHmacWithHash = hmacRoute('hmac/:name/:algorithm')
