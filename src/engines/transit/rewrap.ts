import { Type } from 'typebox'
import { after } from '../../after.ts'
import { integer, raw, text } from '../../field.ts'
import { type Data, type MaybePromise, route } from '../../route.ts'
import { decodeOptional } from './base64.ts'
import { answer } from './batch.ts'
import type { TransitContext } from './context.ts'
import { ciphertextRequired, decryptOne, decryptShape } from './decrypt.ts'
import { encryptPlain } from './encrypt.ts'
import { type Item, readInputs } from './items.ts'
import type { Ring } from './readring.ts'
import { withRing } from './withring.ts'

const body = Type.Object({
  ciphertext: text({ about: 'What encrypt answered.' }),
  associated_data: text({ about: 'What was authenticated with it, in base64; it is authenticated again.' }),
  context: text({ about: 'Derivation context of derived keys, in base64.' }),
  key_version: integer({ about: 'The version to encrypt with; 0 or absent is the latest.' }),
  nonce: text({ about: '12 bytes in base64; used by convergent keys of version 1 alone.' }),
  batch_input: raw({ about: 'Items of ciphertext, associated_data, context, key_version, nonce, reference.' }),
  partial_failure_response_code: integer({ about: 'Status when some items of a batch fail; 200 when absent.' }),
})

const reading = {
  shape: { ...decryptShape, key_version: 'integer' },
  shared: ['key_version', 'associated_data'],
  required: ciphertextRequired,
} as const

/** The plaintext is in the server between two calls of the token and is wiped, whatever becomes of the second. */
function rewrapOne(
  context: TransitContext,
  ring: Ring,
  input: Item<typeof reading.shape>,
  warn: (text: string) => void,
): MaybePromise<Data> {
  const aad = decodeOptional('associated_data', input.associated_data)
  const version = input.key_version ?? 0
  return after(decryptOne(context, ring, input, warn), (plaintext) =>
    wiping(plaintext, () => encryptPlain(context, ring, { plaintext, aad, version }, warn)),
  )
}

/** Fills `secret` with zeros when `use` has ended, well or not. */
function wiping<T>(secret: Buffer, use: () => MaybePromise<T>): MaybePromise<T> {
  const wipe = () => void secret.fill(0)
  try {
    const result = use()
    if (result instanceof Promise) return result.finally(wipe)
    wipe()
    return result
  } catch (error) {
    wipe()
    throw error
  }
}

export const rewrapRoute = route<TransitContext, typeof body>({
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
