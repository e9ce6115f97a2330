import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { expect, readAll, readOne, TAG } from '../crypto/der.ts'
import { isKeyPoint } from '../crypto/edwards.ts'
import { badRequest } from '../errors.ts'
import type { Handle } from '../hsm/handle.ts'
import type { Hsm } from '../hsm/hsm.ts'
import type { Algorithm, Ec, Ed25519, Rsa } from './algorithms.ts'

/** The public half of a key pair as the token shows it. */
export async function readPublicKey(hsm: Hsm, handle: Handle, algorithm: Algorithm): Promise<KeyObject> {
  const seen: PublicAttributes =
    algorithm.kind === 'rsa'
      ? await hsm.attributes(handle, ['modulus', 'publicExponent'])
      : await hsm.attributes(handle, ['ecPoint'])
  return createPublicKey({ format: 'jwk', key: toJwk(algorithm, seen) })
}

interface PublicAttributes {
  readonly modulus?: Buffer | undefined
  readonly publicExponent?: Buffer | undefined
  readonly ecPoint?: Buffer | undefined
}

function toJwk(algorithm: Algorithm, { modulus, publicExponent, ecPoint }: PublicAttributes): JsonWebKey {
  if (algorithm.kind === 'rsa' && modulus !== undefined && publicExponent !== undefined) {
    return { kty: 'RSA', n: modulus.toString('base64url'), e: publicExponent.toString('base64url') }
  }
  if (algorithm.kind === 'ed25519' && ecPoint?.length === 32) {
    return { kty: 'OKP', crv: algorithm.jwk, x: ecPoint.toString('base64url') }
  }
  if (algorithm.kind === 'ec' && ecPoint?.length === 1 + 2 * algorithm.curve.coordinateBytes) {
    const [x, y] = [
      ecPoint.subarray(1, 1 + algorithm.curve.coordinateBytes),
      ecPoint.subarray(-algorithm.curve.coordinateBytes),
    ]
    return { kty: 'EC', crv: algorithm.jwk, x: x.toString('base64url'), y: y.toString('base64url') }
  }
  throw new Error(`the token shows no usable public key of a ${algorithm.name} pair`)
}

/** The DER that is stored, and the SHA-256 over it by which a public key is recognised. */
export function encodePublicKey(key: KeyObject): { spki: Buffer; fingerprint: Buffer } {
  const spki = key.export({ format: 'der', type: 'spki' })
  return { spki, fingerprint: createHash('sha256').update(spki).digest() }
}

export const decodePublicKey = (spki: Buffer): KeyObject => createPublicKey({ key: spki, format: 'der', type: 'spki' })

/** 04 ‖ X ‖ Y out of an EC key, for tokens that cannot work it out when they unwrap. */
export function ecPointOf(key: KeyObject): Buffer {
  const { x, y } = key.export({ format: 'jwk' })
  return Buffer.concat([Buffer.from([4]), Buffer.from(x ?? '', 'base64url'), Buffer.from(y ?? '', 'base64url')])
}

/** The 32 bytes of an Ed25519 public key, which end its SPKI (RFC 8410 section 4). */
export const pointOf = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(-32)

/**
 * The key in the one form that is stored. node:crypto has checked that a point is on its curve.
 * @throws ApiError 400 naming what is not as the type wants it
 */
export function checkPublicKey(algorithm: Ec | Rsa | Ed25519, key: KeyObject): KeyObject {
  const { asymmetricKeyType, asymmetricKeyDetails: details } = key
  const kind = asymmetricKeyType === 'rsa-pss' ? 'rsa' : asymmetricKeyType
  if (kind !== algorithm.kind) throw badRequest(`invalid key type: expected ${algorithm.kind}, got ${kind}`)
  if (algorithm.kind === 'rsa') {
    const bits = details?.modulusLength ?? 0
    if (bits !== algorithm.modulusBits) {
      throw badRequest(
        `invalid key size: expected ${algorithm.modulusBits / 8} bytes, got ${Math.ceil(bits / 8)} bytes`,
      )
    }
    checkExponent(details?.publicExponent ?? 0n)
    // OpenSSL takes it, and fails when it is to encrypt.
    if (isEven(key)) throw badRequest('error parsing asymmetric key: its modulus is even')
  }
  if (algorithm.kind === 'ed25519' && !isKeyPoint(pointOf(key))) {
    throw badRequest('error parsing asymmetric key: its point is not on the curve, or of small order')
  }
  if (algorithm.kind === 'ec' && details?.namedCurve !== algorithm.curve.openssl) {
    throw badRequest(`invalid curve: expected ${algorithm.jwk}, got ${details?.namedCurve ?? 'an unknown one'}`)
  }
  if (asymmetricKeyType === 'rsa-pss') {
    return createPublicKey({ key: pkcs1Of(key), format: 'der', type: 'pkcs1' })
  }
  try {
    return createPublicKey({ format: 'jwk', key: key.export({ format: 'jwk' }) })
  } catch (error) {
    // The point at infinity has no coordinates.
    throw malformed(error)
  }
}

/** The RSAPublicKey in the SPKI of an RSA key, which an RSA-PSS key has too (RFC 4055). */
function pkcs1Of(key: KeyObject): Buffer {
  const [, bits] = readAll(readOne(key.export({ format: 'der', type: 'spki' }), TAG.SEQUENCE))
  return expect(bits, TAG.BITS).subarray(1)
}

function isEven(key: KeyObject): boolean {
  const [modulus] = readAll(readOne(pkcs1Of(key), TAG.SEQUENCE))
  return ((expect(modulus, TAG.INTEGER).at(-1) ?? 0) & 1) === 0
}

/** @throws ApiError 400 */
export function readSpki(algorithm: Ec | Rsa | Ed25519, spki: Buffer): KeyObject {
  let key: KeyObject
  try {
    key = decodePublicKey(spki)
  } catch (error) {
    throw malformed(error)
  }
  return checkPublicKey(algorithm, key)
}

const malformed = (cause: unknown): Error => badRequest('error parsing public key: it is malformed', { cause })

/** The reference's bounds; FIPS 186-5 wants at least 65537 of keys that are made. @throws ApiError 400 */
export function checkExponent(exponent: bigint): void {
  if (exponent < 3n || exponent % 2n === 0n || exponent >= 2n ** 31n) {
    throw badRequest('error parsing asymmetric key: its public exponent is out of range')
  }
}
