/**
 * SoftHSM refuses HMAC-SHA-384 and -512 with keys shorter than the hash. An HMAC key shorter than a hash's block is
 * filled with zeros to the block (RFC 2104 section 2), so that a secret under 64 bytes, filled to exactly 64, is the same
 * key for every SHA-2 and SHA-3: the smallest block among them is 64 bytes. (128 would be another key for SHA-256.)
 */
export const paddedBytes = 64

/**
 * SoftHSM 2.6.1 unwraps a secret whose length is no multiple of 8 with the zeros that RFC 5649 filled it up with. Up to 64 bytes
 * that is the same HMAC key; a longer one becomes another key, and nobody is told. (The self-test tries it:
 * `wrap-exact-length`.)
 */
export const needsExactLength = (sizeBytes: number): boolean => sizeBytes > paddedBytes && sizeBytes % 8 !== 0

/** The secret as it lies in the token. Longer secrets stay as they are: each hash shortens or fills them itself. */
export function pad(secret: Uint8Array): Buffer {
  const padded = Buffer.alloc(Math.max(secret.length, paddedBytes))
  padded.set(secret)
  return padded
}
