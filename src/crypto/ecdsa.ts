import { createECDH, type KeyObject } from 'node:crypto'
import { inverse, modulo, toBytes, toNumber } from './number.ts'

/**
 * ECDSA verification of a digest (FIPS 186-5, 6.4.2), which node:crypto offers for whole inputs only. The two scalar
 * products are OpenSSL's: u1·G + u2·Q = u2·(Q + (e/r)·G), so that with one ECDH key generation and one ECDH agreement,
 * whose result is exactly the x coordinate, only one point addition is left to do here. All of it is public data.
 */
export interface Curve {
  /** OpenSSL's name. */
  readonly openssl: string
  readonly coordinateBytes: number
  readonly prime: bigint
  readonly order: bigint
}

interface Point {
  readonly x: bigint
  readonly y: bigint
}

/** @param signature r‖s, twice the coordinate length @param digest any length; only its leftmost order bits count */
export function verifyDigest(curve: Curve, key: KeyObject, digest: Uint8Array, signature: Uint8Array): boolean {
  const { coordinateBytes, order } = curve
  if (signature.length !== 2 * coordinateBytes) return false
  const r = toNumber(signature.subarray(0, coordinateBytes))
  const s = toNumber(signature.subarray(coordinateBytes))
  if (r <= 0n || r >= order || s <= 0n || s >= order) return false
  const point = sum(
    curve,
    decodePoint(encodePoint(key)),
    multiple(curve, modulo(toScalar(digest, order) * inverse(r, order), order)),
  )
  if (point === undefined) return false
  const agreement = createECDH(curve.openssl)
  agreement.setPrivateKey(toBytes(modulo(r * inverse(s, order), order), coordinateBytes))
  const encoded = Buffer.concat([
    Buffer.from([4]),
    toBytes(point.x, coordinateBytes),
    toBytes(point.y, coordinateBytes),
  ])
  return modulo(toNumber(agreement.computeSecret(encoded)), order) === r
}

/** The leftmost bits of the digest, as many as the order has. */
function toScalar(digest: Uint8Array, order: bigint): bigint {
  const excess = digest.length * 8 - order.toString(2).length
  return excess > 0 ? toNumber(digest) >> BigInt(excess) : toNumber(digest)
}

/** 04 ‖ X ‖ Y (SEC 1, 2.3.3): the point of an EC key. */
export function encodePoint(key: KeyObject): Buffer {
  // JWK has no name for P-224; the point is at the end of the SPKI.
  if (key.asymmetricKeyDetails?.namedCurve === 'secp224r1')
    return key.export({ format: 'der', type: 'spki' }).subarray(-57)
  const { x = '', y = '' } = key.export({ format: 'jwk' })
  return Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
}

function decodePoint(encoded: Buffer): Point {
  const half = (encoded.length - 1) / 2
  return { x: toNumber(encoded.subarray(1, 1 + half)), y: toNumber(encoded.subarray(1 + half)) }
}

/** scalar·G; undefined is the point at infinity. */
function multiple({ openssl, coordinateBytes }: Curve, scalar: bigint): Point | undefined {
  if (scalar === 0n) return undefined
  const generator = createECDH(openssl)
  generator.setPrivateKey(toBytes(scalar, coordinateBytes))
  return decodePoint(generator.getPublicKey())
}

/** a + b on y² = x³ − 3x + c (every curve of the table has a = −3). */
function sum({ prime }: Curve, a: Point, b: Point | undefined): Point | undefined {
  if (b === undefined) return a
  if (a.x === b.x && a.y !== b.y) return undefined
  const slope =
    a.x === b.x
      ? (3n * a.x * a.x - 3n) * inverse(modulo(2n * a.y, prime), prime)
      : (b.y - a.y) * inverse(modulo(b.x - a.x, prime), prime)
  const x = modulo(slope * slope - a.x - b.x, prime)
  return { x, y: modulo(slope * (a.x - x) - a.y, prime) }
}
