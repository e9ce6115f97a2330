import { badRequest } from '../../../errors.ts'
import { text } from '../../../field.ts'
import type { Draft, Specification } from '../../../keys/materials/draft.ts'
import { type KeyImport, wrappingBytes } from '../../../keys/transfer/keyimport.ts'
import type { Mount } from '../../../route.ts'
import { decodeField } from './base64.ts'
import { readHashFunction } from './hashfunction.ts'
import { readPublicKey } from './publickey.ts'

/** Several times what any key takes: no more goes to the token, nor through OpenSSL, in one piece. */
const longestCiphertext = 16_384

/** The fields that bring a key. */
export const importSourceFields = {
  ciphertext: text({ about: 'Base64 of RSA-OAEP(wrapping key, AES key) ‖ AES-KWP(AES key, the key).' }),
  public_key: text({ about: 'PEM of a public key, where the private one is to stay elsewhere.' }),
  hash_function: text({ about: 'Hash of the RSA-OAEP step: SHA1, SHA224, SHA256 (the default), SHA384 or SHA512.' }),
}

/** A call with those fields. */
interface ImportCall {
  readonly context: { readonly keyImport: KeyImport }
  readonly mount: Mount
  readonly body: {
    readonly ciphertext?: string
    readonly public_key?: string
    readonly hash_function?: string
  }
}

/**
 * Checks the fields now; what it returns unwraps the key into the token later.
 * @throws ApiError 400
 */
export function importer(
  { context, mount, body }: ImportCall,
  type: string,
): (wanted: Specification) => Promise<Draft> {
  const { ciphertext, public_key: pem, hash_function: hashFunction } = body
  if (ciphertext && pem) {
    throw badRequest('only one of the following fields, ciphertext and public_key, can be set')
  }
  const hash = readHashFunction(hashFunction)
  if (pem) {
    const publicKey = readPublicKey(type, pem)
    return (wanted) => context.keyImport.preparePublic(wanted, publicKey)
  }
  if (!ciphertext) throw badRequest('one of the fields ciphertext and public_key is required')
  const sealed = decodeField('ciphertext', ciphertext)
  if (sealed.length <= wrappingBytes) throw badRequest('provided ciphertext is too short')
  if (sealed.length > longestCiphertext) {
    throw badRequest(`provided ciphertext is longer than ${longestCiphertext} bytes`)
  }
  return (wanted) => context.keyImport.prepare(wanted, { mount: mount.uuid, hash, ciphertext: sealed })
}
