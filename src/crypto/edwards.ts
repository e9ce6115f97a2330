import type { KeyObject } from 'node:crypto'
import { inverse, modulo, power } from './number.ts'

/** Points of edwards25519 (RFC 8032 section 5.1), as far as needed to check a public key before it is trusted. */
const p = 2n ** 255n - 19n
const d = -121665n * inverse(121666n, p)

/**
 * Whether 32 bytes are a valid public key: canonically encoded, on the curve, and not of small order, under which
 * forged signatures verify.
 */
export function isKeyPoint(encoded: Uint8Array): boolean {
  let y = BigInt(`0x${Buffer.from(encoded).reverse().toString('hex')}`) & (2n ** 255n - 1n)
  if (y >= p) return false
  // -x² + y² = 1 + d x² y²; only the square of x counts for doubling.
  const [u, v] = [modulo(y * y - 1n, p), modulo(d * y * y + 1n, p)]
  if (power(u * v, (p - 1n) / 2n, p) === p - 1n) return false
  let xx = modulo(u * inverse(v, p), p)
  // Eight times the point is the neutral one, (0, 1), if its order divides 8.
  for (let doubling = 0; doubling < 3; doubling++) {
    y = modulo((y * y + xx) * inverse(1n - d * xx * y * y, p), p)
    xx = modulo((y * y - 1n) * inverse(d * y * y + 1n, p), p)
  }
  return y !== 1n
}

/** The 32 bytes of an Ed25519 public key, at the end of its SPKI (RFC 8410 section 4). @param spki DER */
export const pointIn = (spki: Buffer): Buffer => spki.subarray(-32)

/** As pointIn. */
export const pointOf = (key: KeyObject): Buffer => pointIn(key.export({ format: 'der', type: 'spki' }))
