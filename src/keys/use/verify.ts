import { constants, type KeyObject, publicDecrypt, verify as verifyInput } from 'node:crypto'
import { verifyDigest } from '../../crypto/ecdsa.ts'
import { digest, type Hash } from '../../crypto/hashes.ts'
import { type SaltLength, saltBytes, verifyPss } from '../../crypto/pss.ts'
import { fromDer } from '../../crypto/signature.ts'
import { untraced } from '../../crypto/untraced.ts'
import type { Ec, Rsa } from '../algorithms.ts'
import type { Material } from '../material.ts'
import { type Scheme, signing } from './signer.ts'

/**
 * Whether the signature is the key's over the input. Public work, on the host, by OpenSSL.
 * @throws ApiError 400 when the key's type does not sign or a DER signature is no such structure; a wrong signature is false
 */
export function verify(material: Material, input: Uint8Array, signature: Uint8Array, scheme: Scheme): boolean {
  const algorithm = signing(material, 'verification')
  const { publicKey } = material
  if (algorithm.kind === 'ed25519') return verifyInput(null, input, publicKey, signature)
  if (algorithm.kind === 'rsa') return rsa(algorithm, publicKey, input, signature, scheme)
  return ecdsa(algorithm, publicKey, input, signature, scheme)
}

function ecdsa(algorithm: Ec, key: KeyObject, input: Uint8Array, signature: Uint8Array, scheme: Scheme): boolean {
  const { coordinateBytes } = algorithm.curve
  const bare = scheme.marshaling === 'jws' ? signature : fromDer(signature, coordinateBytes)
  if (bare === undefined || bare.length !== 2 * coordinateBytes) return false
  if (scheme.prehashed || scheme.hash === undefined) return verifyDigest(algorithm.curve, key, input, bare)
  const { node } = scheme.hash
  const dsaEncoding = scheme.marshaling === 'jws' ? 'ieee-p1363' : 'der'
  return untraced(() => verifyInput(node, input, { key, dsaEncoding }, signature))
}

function rsa(algorithm: Rsa, key: KeyObject, input: Uint8Array, signature: Uint8Array, scheme: Scheme): boolean {
  const bytes = algorithm.modulusBits / 8
  const { hash } = scheme
  if (signature.length !== bytes) return false
  if (hash === undefined) return opened(key, signature, constants.RSA_PKCS1_PADDING)?.equals(input) ?? false
  const hashed = scheme.prehashed ? input : digest(hash, input)
  if (hashed.length !== hash.bytes) return false
  if (scheme.padding === 'pss') return pss(key, hashed, hash, signature, scheme.saltLength, bytes)
  const expected = Buffer.concat([hash.digestInfo, hashed])
  return opened(key, signature, constants.RSA_PKCS1_PADDING)?.equals(expected) ?? false
}

/** node:crypto verifies PSS over inputs only, so that the block is opened and checked here, prehashed or not. */
function pss(
  key: KeyObject,
  hashed: Uint8Array,
  hash: Hash,
  signature: Uint8Array,
  length: SaltLength,
  bytes: number,
): boolean {
  if (saltBytes(length, hash, bytes) === undefined) return false
  const block = opened(key, signature, constants.RSA_NO_PADDING)
  return block !== undefined && verifyPss(block, hashed, hash, length)
}

/** The signature raised to the public exponent, without its padding; undefined when the padding is wrong. */
function opened(key: KeyObject, signature: Uint8Array, padding: number): Buffer | undefined {
  try {
    return untraced(() => publicDecrypt({ key, padding }, signature))
  } catch {
    return undefined
  }
}
