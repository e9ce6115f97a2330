import type { Clock } from '../clock.ts'
import type { Database } from './database.ts'

const pauseMilliseconds = 50

/** Waits for the work to end, but no longer once the database is late: for a worker that has to drop its keys. */
export async function unlessLate(database: Database, clock: Clock, work: Promise<void>): Promise<void> {
  let ended = false
  const ending = work.finally(() => {
    ended = true
  })
  const late = async (): Promise<void> => {
    while (!ended && database.healthy) await clock.sleep(pauseMilliseconds)
  }
  await Promise.race([ending, late()])
}
