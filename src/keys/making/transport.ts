import { CKK } from '../../hsm/constants.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'

/**
 * AES keys that host and token both hold for one transfer: one wraps by RFC 5649, the other unwraps. So keys get into
 * the token and out of it without an object that anybody could read.
 */
export const transportBytes = 32

/** Lends a new transport key, from the token's random generator, and wipes it. */
export async function lendTransport<T>(hsm: Hsm, use: (value: Buffer) => Promise<T>): Promise<T> {
  const value = await hsm.random(transportBytes)
  try {
    return await use(value)
  } finally {
    value.fill(0)
  }
}

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
