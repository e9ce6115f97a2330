import { after } from '../../../after.ts'
import { decodeBase64 } from '../../../crypto/base64.ts'
import { badRequest } from '../../../errors.ts'
import { ivBytes } from '../../../keys/use/hostcipher.ts'
import type { MaybePromise } from '../../../route.ts'
import { ignoreNonce } from '../input/nonce.ts'
import { untag } from '../input/tagged.ts'
import { managedType } from '../ring/managedtype.ts'
import { versionToUse } from '../ring/versions.ts'
import { decryptDerived } from './derived.ts'
import { decryptManaged } from './managed.ts'
import type { Operation } from './operation.ts'
import { type ParameterFields, readParameters } from './parameters.ts'
import { decryptRsa } from './rsa.ts'

/** The fields of an item that decrypt and rewrap both take. */
export const decryptionShape = {
  ciphertext: 'string',
  associated_data: 'string',
  context: 'string',
  nonce: 'string',
  padding_scheme: 'string',
  reference: 'text',
} as const

export const ciphertextRequired = { field: 'ciphertext', missing: 'missing ciphertext to decrypt' } as const

/** Decrypts a ciphertext of encrypt. @throws ApiError 400 with one text for every ciphertext that does not decrypt */
export function decrypt(
  operation: Operation,
  fields: ParameterFields & { readonly ciphertext?: string | undefined },
): MaybePromise<Buffer> {
  const { context, ring, warn } = operation
  if (!fields.ciphertext) throw badRequest(ciphertextRequired.missing)
  const tagged = untag(fields.ciphertext, 'ciphertext')
  const version = versionToUse(ring, tagged.version, 'ciphertext')
  const bytes = decodeBase64(tagged.payload, () => 'invalid ciphertext: could not decode base64')
  const { aad, derivation, nonce } = readParameters(fields)
  if (ring.key.derived) return decryptDerived({ ...operation, version }, { payload: bytes, aad, derivation, nonce })
  if (ring.key.type === managedType) return decryptManaged({ ...operation, version }, { bytes, aad, nonce })
  ignoreNonce(nonce, warn)
  return after(context.material(version.material), (key) => {
    context.approval.warn(warn, key.algorithm)
    if (key.algorithm.oaep) return decryptRsa(context, key, { ciphertext: bytes, aad })
    if (key.algorithm.aead && bytes.length < ivBytes) throw badRequest('invalid ciphertext length')
    return context.cipher.decrypt(key, { iv: bytes.subarray(0, ivBytes), sealed: bytes.subarray(ivBytes), aad })
  })
}
