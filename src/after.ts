import type { Clock } from './clock.ts'
import type { MaybePromise } from './route.ts'

const longestRestMilliseconds = 1000

/**
 * Continues with a value at once if it is there, otherwise when it arrives: hot paths whose look-ups hit make no
 * promise.
 */
export function after<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Lets other work of this thread run first: called between the steps of long loops. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Does one step of background work, then rests for as long as it took, so that it takes at most half of the time from
 * requests.
 */
export async function paced<T>(clock: Clock, step: () => Promise<T>): Promise<T> {
  const began = clock.monotonic()
  const result = await step()
  await rest(clock, began)
  return result
}

/** Rests for as long as the step that began at `began` has taken. */
export const rest = (clock: Clock, began: number): Promise<void> =>
  clock.sleep(Math.min(clock.monotonic() - began, longestRestMilliseconds))
