import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { integer, raw, text, wholeBody } from '../../../field.ts'
import { type Data, route } from '../../../route.ts'
import { ciphertextRequired, decrypt, decryptionShape } from '../ciphers/decrypt.ts'
import { runOperation } from '../ciphers/operation.ts'
import type { TransitContext } from '../context.ts'
import { resultOrBatch } from '../input/batch.ts'
import { contextField, nonceField, paddingField } from '../input/fields.ts'
import { mostBatchItems, readInputs } from '../input/items.ts'

const body = Type.Object({
  ciphertext: text({ about: 'The ciphertext from encrypt.', longest: wholeBody }),
  associated_data: text({ about: 'The associated data given to encrypt, in base64.', longest: wholeBody }),
  context: contextField,
  nonce: nonceField,
  padding_scheme: paddingField,
  batch_input: raw({ about: 'Items of ciphertext, associated_data, context, nonce, reference.' }),
  partial_failure_response_code: integer({ about: 'Status when some items of a batch fail; 400 when absent.' }),
})

const reading = {
  shape: decryptionShape,
  shared: ['associated_data', 'padding_scheme'],
  required: ciphertextRequired,
  together: 'context',
} as const

const rules = { missing: 'encryption key not found', partialStatus: 400, failedItem: { plaintext: '' } } as const

export const decryptData = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'decrypt/:name',
  access: 'token',
  about: 'Decrypts a ciphertext from encrypt.',
  body,
  items: 'batch_input',
  longestList: mostBatchItems,
  answers: resultOrBatch({ plaintext: Type.String() }),
  run: (call) =>
    runOperation(call, readInputs(call, reading), rules, (operation, input) =>
      after(decrypt(operation, input), inBase64),
    ),
})

function inBase64(bytes: Buffer): Data {
  const plaintext = bytes.toString('base64')
  bytes.fill(0)
  return { plaintext }
}
