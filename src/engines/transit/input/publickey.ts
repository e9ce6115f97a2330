import { createPublicKey, type KeyObject } from 'node:crypto'
import { badRequest } from '../../../errors.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import { checkPublicKey } from '../../../keys/publickey.ts'

/**
 * A public key that is given in PEM (SubjectPublicKeyInfo, or PKCS#1 for RSA).
 * @throws ApiError 400 when it is none, or not of the type
 */
export function readPublicKey(type: string, pem: string): KeyObject {
  const algorithm = algorithmOf(type)
  if (algorithm.kind === 'aead' || algorithm.kind === 'hmac') {
    throw badRequest(`provided type does not support public_key import: ${type}`)
  }
  // node:crypto also takes private keys and certificates, and makes public keys of them.
  if (!/^\s*-----BEGIN (RSA )?PUBLIC KEY-----/.test(pem))
    throw badRequest('error parsing public key: it is no PEM of one')
  let key: KeyObject
  try {
    key = createPublicKey(pem)
  } catch (error) {
    throw badRequest('error parsing public key: it is malformed', { cause: error })
  }
  return checkPublicKey(algorithm, key)
}
