import type { MaybePromise } from '../route.ts'

/** Fills `secret` with zeros when `use` has ended, in success or failure. */
export function wiping<T>(secret: Uint8Array, use: () => MaybePromise<T>): MaybePromise<T> {
  try {
    return wipedAfter(secret, use())
  } catch (error) {
    secret.fill(0)
    throw error
  }
}

/** Fills `secret` with zeros: now, or when the pending result has settled. */
export function wipedAfter<T>(secret: Uint8Array, result: MaybePromise<T>): MaybePromise<T> {
  if (result instanceof Promise) return result.finally(() => secret.fill(0))
  secret.fill(0)
  return result
}

/**
 * A buffer of zeros for a secret. The bytes of short arrays (Buffer.alloc, new Uint8Array) are in V8's own heap, where
 * its collector moves them and the first native call copies them out: `fill` would reach only the last copy.
 */
export const secretBuffer = (length: number): Buffer<ArrayBuffer> => Buffer.from(new ArrayBuffer(length))
