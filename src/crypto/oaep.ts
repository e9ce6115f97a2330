import { digest, type Hash } from './hashes.ts'
import { mgf1, xor } from './mgf.ts'
import { secretBuffer } from './wiping.ts'

/**
 * EME-OAEP decoding (RFC 8017 section 7.1.2, step 3) with an empty label and MGF1 by the same hash, around a raw RSA
 * operation of a token whose CKM_RSA_PKCS_OAEP lacks the hash. An attacker who can distinguish one kind of wrong block
 * from another decrypts anything with some thousand queries (Manger 2001): so every byte is examined wherever the fault
 * lies, nothing branches before the end, and the end distinguishes only good and bad.
 */

/** The message; undefined when anything is wrong. Overwrites the block. @param block as long as the modulus */
export function decodeOaep(block: Buffer, hash: Hash): Buffer | undefined {
  const { bad, data, start } = scan(block, hash)
  return bad === 0 ? Buffer.from(data.subarray(start)) : undefined
}

/**
 * The message, which must be as long as `substitute`; the substitute (random bytes) when anything is wrong. Nothing
 * shows which of the two it is: for keys, with which the caller continues and fails later. Overwrites the block.
 */
export function decodeOaepOr(block: Buffer, hash: Hash, substitute: Uint8Array): Buffer {
  const { bad, data, start } = scan(block, hash)
  const from = data.length - substitute.length
  // All ones when anything is wrong, else zero.
  const mask = -(isZero(bad | (start ^ from)) ^ 1)
  const message = secretBuffer(substitute.length)
  for (let at = 0; at < message.length; at++) {
    const byte = data[from + at] ?? 0
    message[at] = byte ^ ((byte ^ (substitute[at] ?? 0)) & mask)
  }
  return message
}

/** 1 for 0, else 0, for any 31-bit number. */
const isZero = (value: number): number => (value - 1) >>> 31

/** @returns bad: 0 when the encoding is right; the message is `data` from `start` on */
function scan(block: Buffer, hash: Hash): { bad: number; data: Buffer; start: number } {
  const { bytes } = hash
  const seed = block.subarray(1, 1 + bytes)
  const data = block.subarray(1 + bytes)
  xor(seed, mgf1(data, bytes, hash))
  xor(data, mgf1(seed, data.length, hash))
  const label = digest(hash, Buffer.alloc(0))
  let bad = block[0] ?? 1
  for (let at = 0; at < bytes; at++) bad |= (data[at] ?? 0) ^ (label[at] ?? 0)
  let searching = 1
  let start = 0
  for (let at = bytes; at < data.length; at++) {
    const byte = data[at] ?? 0
    const one = isZero(byte ^ 1)
    start |= -(searching & one) & (at + 1)
    // Only zeros may precede the 01.
    bad |= searching & (one ^ 1) & (isZero(byte) ^ 1)
    searching &= one ^ 1
  }
  return { bad: bad | searching, data, start }
}

/** The longest message in bytes (RFC 8017 section 7.1.1). */
export const mostOaepBytes = (modulusBytes: number, hash: Hash): number => modulusBytes - 2 * hash.bytes - 2
