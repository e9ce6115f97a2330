import { createCipheriv, createDecipheriv } from 'node:crypto'

/** AES key wrap with padding (RFC 5649) on the host, under a key of 256 bits. */
const cipher = 'id-aes256-wrap-pad'
/** The high half of the alternative initial value (RFC 5649 section 3). */
const initialValue = Buffer.from('a65959a6', 'hex')

/**
 * The key wrapped under the KEK: eight bytes longer than the key, which is padded with zeros to a multiple of eight
 * first.
 * @param kek 32 bytes @param key one byte or more
 */
export function wrapKey(kek: Uint8Array, key: Uint8Array): Buffer {
  const wrap = createCipheriv(cipher, kek, initialValue)
  return Buffer.concat([wrap.update(key), wrap.final()])
}

/** The unwrapped bytes, which the caller wipes; undefined when the blob was not wrapped under this KEK. */
export function unwrapKey(kek: Uint8Array, blob: Uint8Array): Buffer | undefined {
  const unwrap = createDecipheriv(cipher, kek, initialValue)
  try {
    // `update` returns the whole key: `final` returns nothing.
    const key = unwrap.update(blob)
    unwrap.final()
    return key
  } catch {
    return undefined
  }
}
