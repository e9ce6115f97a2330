import type { MaybePromise } from '../route.ts'

/** Fills `secret` with zeros when `use` has ended, well or not. */
export function wiping<T>(secret: Uint8Array, use: () => MaybePromise<T>): MaybePromise<T> {
  const wipe = () => void secret.fill(0)
  try {
    const result = use()
    if (result instanceof Promise) return result.finally(wipe)
    wipe()
    return result
  } catch (error) {
    wipe()
    throw error
  }
}
