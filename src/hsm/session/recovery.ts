import type { Clock } from '../../clock.ts'
import type { Logger } from '../../log.ts'
import { PinRefused } from '../faults.ts'

export interface Recovery {
  readonly clock: Clock
  readonly log: Logger
  onFatal(reason: Error): void
  /** Whether the token is not needed any more. */
  ended(): boolean
  /** Whether calls are under way in threads; a hung one meets its deadline, which ends the process. */
  busy(): boolean
  /** Initialises and logs in again; false when it could not begin. */
  reconnect(): boolean
  /** Lets subscribers fetch their handles; false when the token was lost again meanwhile. */
  rebuild(): Promise<boolean>
}

const firstPauseMilliseconds = 250
const longestPauseMilliseconds = 5000

/**
 * Tries until the token is back, but only while nothing is in flight, since C_Finalize pulls the module away from under
 * running calls. The PIN that worked before is used again; if it is refused once, it is not tried again: the process
 * ends, and its supervisor decides.
 */
export async function recover(recovery: Recovery): Promise<void> {
  const { clock, log } = recovery
  let pause = firstPauseMilliseconds
  for (;;) {
    await clock.sleep(pause)
    if (recovery.ended()) return
    pause = Math.min(pause * 2, longestPauseMilliseconds)
    if (recovery.busy()) continue
    try {
      if (!recovery.reconnect() || !(await recovery.rebuild())) continue
    } catch (error) {
      if (error instanceof PinRefused) return recovery.onFatal(error)
      log.warn({ error: error instanceof Error ? error.message : 'unknown' }, 'the HSM is not back yet')
      continue
    }
    log.info('the HSM is back')
    return
  }
}
