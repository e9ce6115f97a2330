import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Database } from './database.ts'
import type { JobLease } from './lease.ts'

const pauseMilliseconds = 250

export interface Turn {
  /** Of the lease. */
  readonly name: string
  readonly ttlSeconds: number
  /** The work in the words of its operator, as "kek adopt in the token a". */
  readonly work: string
}

/**
 * Takes a lease as soon as it is free. A process that has died keeps the next one waiting for the lease's time; that
 * is said in the log.
 * @throws Error if another process still has it some seconds after that time: it lives
 */
export async function waitForLease(
  { clock, database, log }: { readonly clock: Clock; readonly database: Database; readonly log: Logger },
  { name, ttlSeconds, work }: Turn,
): Promise<JobLease> {
  const seconds = ttlSeconds + 5
  const end = clock.monotonic() + 1000 * seconds
  for (let isTold = false; ; isTold = true) {
    const lease = await database.jobLease(name, ttlSeconds)
    if (lease !== undefined) return lease
    if (clock.monotonic() > end) throw new Error(`another ${work} is under way: run this again when that has ended`)
    if (!isTold) log.warn(`another ${work} is under way, or has died: waiting for up to ${seconds} s`)
    // Unlike the clock's sleep this keeps a command alive.
    await delay(pauseMilliseconds)
  }
}
