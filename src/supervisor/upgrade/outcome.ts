import { setTimeout as delay } from 'node:timers/promises'
import { readRecord, type SupervisorRecord } from '../record.ts'

const pollMilliseconds = 200

/** How long the record of an upgrade may stay as it is. */
export interface Patience {
  /** Until the server has heard of it. */
  readonly startMilliseconds: number
  /** Between two steps of it. */
  readonly stepMilliseconds: number
}

/**
 * Waits for the end of a requested upgrade, as the server records it.
 * @param before the record from before the request
 * @throws Error when the new program does not serve, the server has ended, or its record no longer changes
 */
export async function upgraded(stateDirectory: string, before: SupervisorRecord, patience: Patience): Promise<void> {
  let now = readRecord(stateDirectory)
  let since = performance.now()
  for (let steps = before.steps; now?.pid === before.pid && now.upgrades === before.upgrades; ) {
    const { startMilliseconds, stepMilliseconds } = patience
    const milliseconds = steps === before.steps ? startMilliseconds : stepMilliseconds
    if (now.steps !== steps) {
      steps = now.steps
      since = performance.now()
    } else if (performance.now() - since > milliseconds) {
      throw new Error(
        `for ${milliseconds / 1000} s process ${before.pid} has not written into ${stateDirectory} how the upgrade goes: its log says that, and whether the new program serves`,
      )
    }
    await delay(pollMilliseconds)
    now = readRecord(stateDirectory)
  }
  if (now?.pid !== before.pid) throw new Error(`process ${before.pid} has ended`)
  if (now.failure !== undefined)
    throw new Error(`the old program goes on, because the new one does not serve: ${now.failure}`)
}
