import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import { busy, DuplicateRow, isHeldElsewhere, isPassing, isTooLarge, Outdated, tooLarge } from '../faults.ts'

const longestPauseMilliseconds = 500

/**
 * Repeats `attempt` after passing errors, at growing random intervals, until the deadline; then ApiError 503. A row
 * that is too large is ApiError 400. A DuplicateRow is repeated once: the second run reads the row that was in the way.
 * @param blind the attempt reads nothing: a DuplicateRow is not repeated, and a row that others hold is Outdated
 */
export async function persist<T>(
  clock: Clock,
  deadlineMilliseconds: number,
  attempt: () => Promise<T>,
  blind = false,
): Promise<T> {
  const end = clock.monotonic() + deadlineMilliseconds
  let duplicate = blind
  for (let pauseMilliseconds = 5; ; pauseMilliseconds = Math.min(2 * pauseMilliseconds, longestPauseMilliseconds)) {
    try {
      return await attempt()
    } catch (error) {
      if (isTooLarge(error)) throw tooLarge(error)
      if (blind && isHeldElsewhere(error)) throw new Outdated(undefined, { cause: error })
      const first: boolean = error instanceof DuplicateRow && !duplicate
      if (!first && !isPassing(error)) throw error
      duplicate ||= first
      if (clock.monotonic() >= end) throw busy(error)
    }
    await delay(Math.random() * pauseMilliseconds)
  }
}
