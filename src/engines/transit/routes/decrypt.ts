import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import { integer, raw, text } from '../../../field.ts'
import { ivBytes } from '../../../keys/use/hostcipher.ts'
import { type MaybePromise, route } from '../../../route.ts'
import { decryptDerived } from '../ciphers/derived.ts'
import { decryptManaged } from '../ciphers/managed.ts'
import { readWish } from '../ciphers/plain.ts'
import { decryptRsa } from '../ciphers/rsa.ts'
import type { TransitContext } from '../context.ts'
import { decodeBase64 } from '../input/base64.ts'
import { answer } from '../input/batch.ts'
import { contextField, nonceField, paddingField } from '../input/fields.ts'
import { type Item, readInputs } from '../input/items.ts'
import { ignoreNonce } from '../input/nonce.ts'
import { untag } from '../input/tagged.ts'
import { managedType } from '../ring/managedtype.ts'
import type { Ring } from '../ring/readring.ts'
import { versionToUse } from '../ring/versions.ts'
import { withRing } from '../ring/withring.ts'

const body = Type.Object({
  ciphertext: text({ about: 'What encrypt answered.' }),
  associated_data: text({ about: 'What was authenticated with it, in base64.' }),
  context: contextField,
  nonce: nonceField,
  padding_scheme: paddingField,
  batch_input: raw({ about: 'Items of ciphertext, associated_data, context, nonce, reference.' }),
  partial_failure_response_code: integer({ about: 'Status when some items of a batch fail; 400 when absent.' }),
})

export const decryptShape = {
  ciphertext: 'string',
  associated_data: 'string',
  context: 'string',
  nonce: 'string',
  padding_scheme: 'string',
  reference: 'string',
} as const

export const ciphertextRequired = { field: 'ciphertext', missing: 'missing ciphertext to decrypt' } as const

/** Opens what encrypt answered. @throws ApiError 400 that says no more of a wrong ciphertext than that it is one */
export function decryptOne(
  context: TransitContext,
  ring: Ring,
  input: Item<typeof decryptShape>,
  warn: (text: string) => void,
): MaybePromise<Buffer> {
  if (!input.ciphertext) throw badRequest(ciphertextRequired.missing)
  const { version, payload } = untag(input.ciphertext, 'ciphertext')
  const found = versionToUse(ring, version, 'ciphertext')
  const bytes = decodeBase64(payload, () => 'invalid ciphertext: could not decode base64')
  const { aad, derivation, nonce } = readWish(input)
  if (ring.key.derived) {
    return decryptDerived({ context, ring, version: found, warn }, { payload: bytes, aad, derivation, nonce })
  }
  if (ring.key.type === managedType) {
    return decryptManaged({ context, ring, version: found, warn }, { bytes, aad, nonce })
  }
  ignoreNonce(nonce, warn)
  return after(context.material(found.material), (key) => {
    context.approval.warn(warn, key.algorithm)
    if (key.algorithm.kind === 'rsa') return decryptRsa(context, key, { ciphertext: bytes, aad })
    if (key.algorithm.kind === 'aead' && bytes.length < ivBytes) throw badRequest('invalid ciphertext length')
    return context.cipher.decrypt(key, { iv: bytes.subarray(0, ivBytes), sealed: bytes.subarray(ivBytes), aad })
  })
}

export const decryptData = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'decrypt/:name',
  access: 'token',
  about: 'Decrypts what encrypt answered.',
  body,
  items: 'batch_input',
  danger: 'none',
  run(call) {
    const { context } = call
    const inputs = readInputs(call.body, {
      shape: decryptShape,
      shared: ['associated_data', 'padding_scheme'],
      required: ciphertextRequired,
      together: 'context',
    })
    return withRing(call, 'encryption key not found', (ring) =>
      answer(call, inputs, { partialStatus: 400, failedItem: { plaintext: '' } }, (input, warn) =>
        after(decryptOne(context, ring, input, warn), (bytes) => ({ plaintext: bytes.toString('base64') })),
      ),
    )
  },
})
