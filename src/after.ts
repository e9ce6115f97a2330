import type { Clock } from './clock.ts'
import type { MaybePromise } from './route.ts'

const longestRestMilliseconds = 1000

/**
 * Goes on with a value at once when it is there, else when it comes: hot paths whose look-ups hit make no promise.
 */
export function after<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Lets whoever else waits for this thread go first: between the steps of what may be thousands. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Does one step of background work, then rests for as long as it took: it takes half of what it could from requests. */
export async function paced<T>(clock: Clock, step: () => Promise<T>): Promise<T> {
  const began = clock.monotonic()
  const result = await step()
  await rest(clock, began)
  return result
}

/** Rests for as long as a step took that began then. */
export const rest = (clock: Clock, began: number): Promise<void> =>
  clock.sleep(Math.min(clock.monotonic() - began, longestRestMilliseconds))
