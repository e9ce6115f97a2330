import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { wiping } from '../../../crypto/wiping.ts'
import { integer, raw, text, wholeBody } from '../../../field.ts'
import { type Data, type MaybePromise, route } from '../../../route.ts'
import { ciphertextRequired, decrypt, decryptionShape } from '../ciphers/decrypt.ts'
import { ciphertextAnswer, encrypt } from '../ciphers/encrypt.ts'
import { type Operation, runOperation } from '../ciphers/operation.ts'
import { readParameters } from '../ciphers/parameters.ts'
import { checkPadding } from '../ciphers/rsa.ts'
import type { TransitContext } from '../context.ts'
import { resultOrBatch } from '../input/batch.ts'
import { contextField, encryptingVersionField, nonceField, paddingField } from '../input/fields.ts'
import { type Item, mostBatchItems, readInputs } from '../input/items.ts'

const body = Type.Object({
  ciphertext: text({ about: 'The ciphertext from encrypt.', longest: wholeBody }),
  associated_data: text({
    about: 'The associated data given to encrypt, in base64; it is authenticated again.',
    longest: wholeBody,
  }),
  context: contextField,
  key_version: encryptingVersionField,
  nonce: nonceField,
  decrypt_padding_scheme: paddingField,
  encrypt_padding_scheme: paddingField,
  batch_input: raw({ about: 'Items of ciphertext, associated_data, context, key_version, nonce, reference.' }),
  partial_failure_response_code: integer({ about: 'Status when some items of a batch fail; 200 when absent.' }),
})

const reading = {
  shape: {
    ...decryptionShape,
    key_version: 'integer',
    decrypt_padding_scheme: 'string',
    encrypt_padding_scheme: 'string',
  },
  shared: ['key_version', 'associated_data', 'decrypt_padding_scheme', 'encrypt_padding_scheme'],
  // As in the reference, where encrypt and decrypt refuse such a batch as a whole.
  required: { ...ciphertextRequired, failsItem: true },
  together: 'context',
} as const

/** Between the two calls of the token the plaintext is in the server; it is wiped even if the second fails. */
function rewrap(operation: Operation, input: Item<typeof reading.shape>): MaybePromise<Data> {
  checkPadding(input.decrypt_padding_scheme)
  checkPadding(input.encrypt_padding_scheme)
  const parameters = readParameters(input)
  return after(decrypt({ ...operation, blind: true }, input), (plaintext) =>
    wiping(plaintext, () => encrypt(operation, { ...parameters, plaintext })),
  )
}

const rules = { missing: 'encryption key not found', partialStatus: 200 } as const

export const rewrapData = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'rewrap/:name',
  access: 'token',
  about: 'Encrypts again under the latest version, without showing the plaintext.',
  body,
  items: 'batch_input',
  longestList: mostBatchItems,
  answers: resultOrBatch(ciphertextAnswer),
  run: (call) => runOperation(call, readInputs(call, reading), rules, rewrap),
})
