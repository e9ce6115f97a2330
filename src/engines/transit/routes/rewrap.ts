import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { wiping } from '../../../crypto/wiping.ts'
import { integer, raw, text } from '../../../field.ts'
import { type Data, type MaybePromise, route } from '../../../route.ts'
import { encryptPlain, readWish } from '../ciphers/plain.ts'
import { checkPadding } from '../ciphers/rsa.ts'
import type { TransitContext } from '../context.ts'
import { answer } from '../input/batch.ts'
import { contextField, encryptingVersionField, nonceField, paddingField } from '../input/fields.ts'
import { type Item, readInputs } from '../input/items.ts'
import type { Ring } from '../ring/readring.ts'
import { withRing } from '../ring/withring.ts'
import { ciphertextRequired, decryptOne, decryptShape } from './decrypt.ts'

const body = Type.Object({
  ciphertext: text({ about: 'What encrypt answered.' }),
  associated_data: text({ about: 'What was authenticated with it, in base64; it is authenticated again.' }),
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
    ...decryptShape,
    key_version: 'integer',
    decrypt_padding_scheme: 'string',
    encrypt_padding_scheme: 'string',
  },
  shared: ['key_version', 'associated_data', 'decrypt_padding_scheme', 'encrypt_padding_scheme'],
  required: ciphertextRequired,
  together: 'context',
} as const

/** The plaintext is in the server between two calls of the token and is wiped, whatever becomes of the second. */
function rewrapOne(
  context: TransitContext,
  ring: Ring,
  input: Item<typeof reading.shape>,
  warn: (text: string) => void,
): MaybePromise<Data> {
  checkPadding(input.decrypt_padding_scheme)
  checkPadding(input.encrypt_padding_scheme)
  const wish = readWish(input)
  return after(decryptOne(context, ring, input, warn), (plaintext) =>
    wiping(plaintext, () => encryptPlain(context, ring, { ...wish, plaintext }, warn)),
  )
}

export const rewrapData = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'rewrap/:name',
  access: 'token',
  about: 'Encrypts anew under the latest version, without showing the plaintext.',
  body,
  items: 'batch_input',
  danger: 'none',
  run(call) {
    const inputs = readInputs(call.body, reading)
    return withRing(call, 'encryption key not found', (ring) =>
      answer(call, inputs, { partialStatus: 200 }, (input, warn) => rewrapOne(call.context, ring, input, warn)),
    )
  },
})
