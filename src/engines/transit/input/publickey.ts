import { createPublicKey, type KeyObject } from 'node:crypto'
import { badRequest } from '../../../errors.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import { checkPublicKey } from '../../../keys/publickey.ts'

/**
 * Reads a public key in PEM (SubjectPublicKeyInfo, or PKCS#1 for RSA).
 * @throws ApiError 400 when it is malformed or has another type
 */
export function readPublicKey(type: string, pem: string): KeyObject {
  const algorithm = algorithmOf(type)
  if (algorithm.class === 'secret') {
    throw badRequest(`provided type does not support public_key import: ${type}`)
  }
  // node:crypto would also take the public key out of a private key or a certificate.
  if (!/^\s*-----BEGIN (RSA )?PUBLIC KEY-----/.test(pem)) {
    throw badRequest('error parsing public key: not a public key in PEM')
  }
  let key: KeyObject
  try {
    key = createPublicKey(pem)
  } catch (error) {
    throw badRequest('error parsing public key: malformed', { cause: error })
  }
  return checkPublicKey(algorithm, key)
}
