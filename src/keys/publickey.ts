import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { asn1, write } from '../crypto/der.ts'
import { badRequest } from '../errors.ts'
import type { Handle } from '../hsm/handle.ts'
import type { Hsm } from '../hsm/hsm.ts'
import type { PairAlgorithm } from './algorithms/algorithm.ts'
import { pkcs1Of } from './algorithms/rsa.ts'

/** The public half of a key pair as the token shows it. */
export async function readPublicKey(hsm: Hsm, handle: Handle, algorithm: PairAlgorithm): Promise<KeyObject> {
  const { spki } = await readSpkiOf(hsm, handle, algorithm)
  return decodePublicKey(spki)
}

/** The same as SubjectPublicKeyInfo, whose numbers are not checked, and the bits in it. */
export async function readSpkiOf(
  hsm: Hsm,
  handle: Handle,
  { name, publicKey, privateKey }: PairAlgorithm,
): Promise<{ bits: Buffer; spki: Buffer }> {
  const bits = publicKey.bits(await hsm.attributes(handle, publicKey.attributes))
  if (bits === undefined) throw new Error(`the token shows no usable public key of a ${name} pair`)
  const identifier = write(asn1.sequence, privateKey.identifier)
  return { bits, spki: write(asn1.sequence, identifier, write(asn1.bitString, Buffer.alloc(1), bits)) }
}

/** The SubjectPublicKeyInfo that is stored, DER. */
export const encodePublicKey = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' })

/** The SHA-256 by which a public key is recognised. @param spki DER */
export const fingerprintOf = (spki: Buffer): Buffer => hash('sha256', spki, 'buffer')

export const decodePublicKey = (spki: Buffer): KeyObject => createPublicKey({ key: spki, format: 'der', type: 'spki' })

/**
 * The key in the one form that is stored. node:crypto has checked that a point is on its curve.
 * @throws ApiError 400 saying in what way it is not of the type
 */
export function checkPublicKey({ publicKey }: PairAlgorithm, key: KeyObject): KeyObject {
  const restricted = key.asymmetricKeyType === 'rsa-pss'
  const type = restricted ? 'rsa' : key.asymmetricKeyType
  if (type !== publicKey.type) throw badRequest(`invalid key type: expected ${publicKey.type}, got ${type}`)
  publicKey.check(key)
  if (restricted) return createPublicKey({ key: pkcs1Of(key), format: 'der', type: 'pkcs1' })
  try {
    return createPublicKey({ format: 'jwk', key: key.export({ format: 'jwk' }) })
  } catch (error) {
    // The point at infinity has no coordinates.
    throw malformed(error)
  }
}

/** @throws ApiError 400 */
export function readSpki(algorithm: PairAlgorithm, spki: Buffer): KeyObject {
  let key: KeyObject
  try {
    key = decodePublicKey(spki)
  } catch (error) {
    throw malformed(error)
  }
  return checkPublicKey(algorithm, key)
}

const malformed = (cause: unknown): Error => badRequest('error parsing public key: it is malformed', { cause })
