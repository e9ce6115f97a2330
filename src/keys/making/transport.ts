import { createCipheriv, createDecipheriv } from 'node:crypto'
import { CKK } from '../../hsm/constants.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'

/**
 * AES keys that host and token both hold for the time of one passage: what one of them wraps by RFC 5649 the other unwraps. That is
 * how keys get into the token and out of it without an object that anybody could read.
 */
export const transportBytes = 32

const cipher = 'id-aes256-wrap-pad'
/** The high half of the alternative initial value (RFC 5649 section 3). */
const initialValue = Buffer.from('a65959a6', 'hex')

/** Puts the transport key into the token, able to wrap and unwrap and nothing else, for one use. */
export async function withTransport<T>(
  hsm: Hsm,
  value: Uint8Array,
  use: (transport: Handle) => Promise<T>,
): Promise<T> {
  const transport = await hsm.create({ class: 'secret', keyType: CKK.AES, value, usages: ['wrap', 'unwrap'] })
  try {
    return await use(transport)
  } finally {
    await hsm.destroy(transport)
  }
}

export function wrapOnHost(value: Uint8Array, key: Uint8Array): Buffer {
  const wrap = createCipheriv(cipher, value, initialValue)
  return Buffer.concat([wrap.update(key), wrap.final()])
}

/** The wrapped bytes, which the caller wipes; undefined when the blob is not of this key. */
export function unwrapOnHost(value: Uint8Array, blob: Uint8Array): Buffer | undefined {
  const unwrap = createDecipheriv(cipher, value, initialValue)
  try {
    // All of it comes at once: what `final` gives is empty.
    const key = unwrap.update(blob)
    unwrap.final()
    return key
  } catch {
    return undefined
  }
}
