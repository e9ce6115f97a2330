import { constants, type KeyObject, publicDecrypt } from 'node:crypto'
import { asn1, write } from '../../crypto/der.ts'
import { digest, type Hash } from '../../crypto/hashes.ts'
import { encodePss, saltBytes, verifyPss } from '../../crypto/pss.ts'
import { withoutStackTraces } from '../../crypto/stacktraces.ts'
import { badRequest } from '../../errors.ts'
import type { Capabilities } from '../../hsm/capabilities.ts'
import { CKM } from '../../hsm/constants.ts'
import { mechanismsOf } from './hashmechanisms.ts'
import { certificationScheme, type Scheme, type Signature, type SignRequest } from './signature.ts'

/** sha256WithRSAEncryption (RFC 4055 section 5). */
const certification = {
  algorithm: write(asn1.sequence, Buffer.from('06092a864886f70d01010b', 'hex'), write(asn1.null)),
  scheme: certificationScheme('sha2-256'),
}

/** RSASSA-PKCS1-v1_5 and RSASSA-PSS (RFC 8017 section 8). @param bytes of the modulus, and so of every signature */
export const rsaSignature = (bytes: number): Signature => ({
  hashes: true,
  certification,
  request: (input, scheme, capabilities) => requestOf(bytes, input, scheme, capabilities),
  verify: (key, input, signature, scheme) => verify(bytes, key, input, signature, scheme),
})

function requestOf(bytes: number, input: Uint8Array, scheme: Scheme, capabilities: Capabilities): SignRequest {
  const { hash } = scheme
  checkPadding(scheme)
  if (hash === undefined) {
    if (input.length > bytes - 11) throw badRequest('crypto/rsa: message too long for RSA key size')
    return { mechanism: { type: CKM.RSA_PKCS }, message: input, bytes }
  }
  const hashed = scheme.prehashed ? input : digest(hash, input)
  if (hashed.length !== hash.bytes) throw badRequest('crypto/rsa: input must be hashed with given hash')
  if (scheme.padding === 'pkcs1v15') {
    return { mechanism: { type: CKM.RSA_PKCS }, message: Buffer.concat([hash.digestInfo, hashed]), bytes }
  }
  const saltLength = saltBytes(scheme.saltLength, hash, bytes)
  if (saltLength === undefined) throw badRequest(`requested salt length ${scheme.saltLength} is invalid`)
  // No known token does PSS with SHA-3: the host does the encoding, which is public, around the raw operation.
  if (hash.family === 'sha3' || !capabilities.supports('rsa-pss')) {
    capabilities.require('rsa-raw')
    return { mechanism: { type: CKM.RSA_X_509 }, message: encodePss(hashed, hash, bytes, saltLength), bytes }
  }
  return { mechanism: { type: CKM.RSA_PKCS_PSS, pss: { ...mechanismsOf(hash), saltLength } }, message: hashed, bytes }
}

function verify(bytes: number, key: KeyObject, input: Uint8Array, signature: Uint8Array, scheme: Scheme): boolean {
  const { hash } = scheme
  checkPadding(scheme)
  if (signature.length !== bytes) return false
  if (hash === undefined) return carries(key, signature, input)
  const hashed = scheme.prehashed ? input : digest(hash, input)
  if (hashed.length !== hash.bytes) return false
  if (scheme.padding === 'pss') return verifyPssOver(key, hashed, hash, signature, scheme)
  return carries(key, signature, Buffer.concat([hash.digestInfo, hashed]))
}

/** @throws ApiError 400 */
function checkPadding({ padding }: Scheme): void {
  if (padding !== 'pss' && padding !== 'pkcs1v15') throw badRequest(`unsupported rsa signature algorithm ${padding}`)
}

/** Whether a PKCS#1 v1.5 signature is over these bytes. */
const carries = (key: KeyObject, signature: Uint8Array, message: Uint8Array): boolean =>
  recover(key, signature, constants.RSA_PKCS1_PADDING)?.equals(message) ?? false

/** node:crypto verifies PSS over inputs only, so that the block is recovered and checked here, prehashed or not. */
function verifyPssOver(
  key: KeyObject,
  hashed: Uint8Array,
  hash: Hash,
  signature: Uint8Array,
  { saltLength }: Scheme,
): boolean {
  if (saltBytes(saltLength, hash, signature.length) === undefined) return false
  const block = recover(key, signature, constants.RSA_NO_PADDING)
  return block !== undefined && verifyPss(block, hashed, hash, saltLength)
}

/** The signature raised to the public exponent, without its padding; undefined when the padding is wrong. */
function recover(key: KeyObject, signature: Uint8Array, padding: number): Buffer | undefined {
  try {
    return withoutStackTraces(() => publicDecrypt({ key, padding }, signature))
  } catch {
    return undefined
  }
}
