import { type Hash, hashes } from '../../../crypto/hashes.ts'
import { badRequest } from '../../../errors.ts'

/** Names of the hash of RSA-OAEP in imports and byok-export. */
const names: ReadonlyMap<string, string> = new Map([
  ['SHA1', 'sha1'],
  ['SHA224', 'sha2-224'],
  ['SHA256', 'sha2-256'],
  ['SHA384', 'sha2-384'],
  ['SHA512', 'sha2-512'],
])

/** @param name in any case; SHA256 when absent or empty @throws ApiError 400 */
export function readHashFunction(name: string | undefined): Hash {
  const named = name || 'SHA256'
  const hash = hashes.get(names.get(named.toUpperCase()) ?? '')
  if (hash === undefined) throw badRequest(`unknown hash function: ${named}`)
  return hash
}
