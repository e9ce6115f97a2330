import { randomBytes, timingSafeEqual } from 'node:crypto'
import { digest as digestOf, type Hash } from './hashes.ts'
import { mgf1, xor } from './mgf.ts'

/**
 * EMSA-PSS (RFC 8017 section 9.1) around a raw RSA operation: for signatures by tokens whose CKM_RSA_PKCS_PSS lacks the
 * hash, and for verifying a digest without its input (node:crypto verifies inputs only). MGF1 uses the same hash; the
 * trailer is 0xbc. Everything here is public data.
 */

/** The number of salt bytes: as many as fit, as many as the hash has, or a fixed number. */
export type SaltLength = 'auto' | 'hash' | number

/**
 * The salt's length in bytes for a signature.
 * @returns undefined when the modulus is too short for it
 */
export function saltBytes(length: SaltLength, hash: Hash, modulusBytes: number): number | undefined {
  const most = modulusBytes - hash.bytes - 2
  const wanted = length === 'auto' ? most : length === 'hash' ? hash.bytes : length
  return wanted >= 0 && wanted <= most ? wanted : undefined
}

/** The block of `modulusBytes` that the raw RSA private operation turns into a signature of `digest`. */
export function encodePss(digest: Uint8Array, hash: Hash, modulusBytes: number, salted: number): Buffer {
  const salt = randomBytes(salted)
  const seed = seedOf(digest, salt, hash)
  const block = Buffer.alloc(modulusBytes)
  const masked = block.subarray(0, modulusBytes - hash.bytes - 1)
  masked[masked.length - salted - 1] = 1
  masked.set(salt, masked.length - salted)
  xor(masked, mgf1(seed, masked.length, hash))
  masked[0] = (masked[0] ?? 0) & 0x7f
  block.set(seed, masked.length)
  block[modulusBytes - 1] = 0xbc
  return block
}

/** Whether `block`, a signature raised to the public exponent, encodes `digest`; `auto` accepts any salt length. */
export function verifyPss(block: Uint8Array, digest: Uint8Array, hash: Hash, length: SaltLength): boolean {
  const size = block.length
  const masked = Buffer.from(block.subarray(0, size - hash.bytes - 1))
  const seed = block.subarray(size - hash.bytes - 1, size - 1)
  if (masked.length < 1 || block[size - 1] !== 0xbc || (masked[0] ?? 0) > 0x7f) return false
  xor(masked, mgf1(seed, masked.length, hash))
  masked[0] = (masked[0] ?? 0) & 0x7f
  const one = masked.findIndex((byte) => byte !== 0)
  if (one < 0 || masked[one] !== 1) return false
  const salt = masked.subarray(one + 1)
  if (length !== 'auto' && salt.length !== saltBytes(length, hash, size)) return false
  return timingSafeEqual(seed, seedOf(digest, salt, hash))
}

const seedOf = (digest: Uint8Array, salt: Uint8Array, hash: Hash): Buffer =>
  digestOf(hash, Buffer.concat([Buffer.alloc(8), digest, salt]))
