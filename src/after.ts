import type { MaybePromise } from './route.ts'

/**
 * Goes on with a value at once when it is there, else when it comes: hot paths whose look-ups hit make no promise.
 */
export function after<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
