import type { MaybePromise } from './route.ts'

/**
 * Goes on with a value at once when it is there, else when it comes: hot paths whose look-ups hit make no promise.
 */
export function after<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Lets whoever else waits for this thread go first: between the steps of what may be thousands. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
