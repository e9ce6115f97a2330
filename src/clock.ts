import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

/** Time, passed in wherever code waits or expires something, so that tests can move it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  wall(): number
  /** Milliseconds of a clock that never steps. */
  monotonic(): number
  /** Resolves after `milliseconds`; rejects when the signal aborts. Does not keep the process alive. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (milliseconds, signal) => {
    await delay(milliseconds, undefined, { ref: false, ...(signal ? { signal } : {}) })
  },
}
