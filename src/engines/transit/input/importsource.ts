import { decodeField } from '../../../crypto/base64.ts'
import { badRequest } from '../../../errors.ts'
import { text, wholeBody } from '../../../field.ts'
import type { Draft, Specification } from '../../../keys/materials/draft.ts'
import { type KeyImport, wrappingBytes } from '../../../keys/transfer/keyimport.ts'
import type { Mount } from '../../../route.ts'
import { readHashFunction } from './hashfunction.ts'
import { readPublicKey } from './publickey.ts'

/** Several times the size of any key: the token and OpenSSL get no longer ciphertext in one piece. */
const longestCiphertext = 16_384

/** The fields that carry an imported key. */
export const importSourceFields = {
  ciphertext: text({
    about: 'Base64 of RSA-OAEP(wrapping key, AES key) ‖ AES-KWP(AES key, the key).',
    longest: wholeBody,
  }),
  public_key: text({ about: 'PEM of a public key whose private key stays elsewhere.' }),
  hash_function: text({ about: 'Hash of the RSA-OAEP step: SHA1, SHA224, SHA256 (the default), SHA384 or SHA512.' }),
}

/** A call with these fields. */
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
 * Checks the fields now; the returned function unwraps the key into the token later.
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
