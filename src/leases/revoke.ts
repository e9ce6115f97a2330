import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Database } from '../store/database.ts'
import { DamagedRow, LeaseLost } from '../store/faults.ts'
import type { Transaction } from '../store/reader.ts'
import type { SealedAccess } from '../store/sealed/access.ts'
import { type LeaseRow, leaseTable } from './lease.ts'

/** What revoking needs. */
export interface Ground {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  /**
   * Has the engine of a mount take back what a lease was given for. A mount that is gone took everything in it along:
   * then there is nothing to do.
   */
  takeBack(mount: string, payload: Readonly<Record<string, unknown>>): Promise<void>
}

/** Which leases are meant, and what a job does first in each of its transactions. */
export interface Condition {
  ripe?(row: LeaseRow): boolean
  guard?(tx: Transaction): Promise<void>
}

/** Leases that are taken back at the same time. */
const lanes = 8
const firstPauseMilliseconds = 30_000
const longestPauseMilliseconds = 3_600_000

/**
 * Takes one lease back: it ends for good (no renewal can follow), the engine is asked, and then the row goes. Where that
 * stops half-way the expiry job goes on with it, after a pause that grows. An absent lease is done already.
 * @throws what the engine throws, and DamagedRow
 */
export async function revokeLease(ground: Ground, id: string, { ripe, guard }: Condition = {}): Promise<void> {
  const { database, clock } = ground
  const table = database.table(leaseTable)
  const ended = await database.transaction(async (tx) => {
    await guard?.(tx)
    const row = await table.get(tx, id)
    if (row === undefined || ripe?.(row) === false) return undefined
    return end(table, tx, row, clock.wall(), pause(row.attempts))
  })
  if (ended === undefined) return
  await ground.takeBack(ended.mount, ended.payload)
  await database.transaction((tx) => table.removeWhere(tx, { id }))
}

/**
 * Marks a lease as ended: the expiry job takes it back after `pauseMilliseconds`.
 * @param now milliseconds
 */
export const end = (
  table: SealedAccess<typeof leaseTable>,
  tx: Transaction,
  row: LeaseRow,
  now: number,
  pauseMilliseconds: number,
): Promise<LeaseRow> =>
  table.update(tx, row, {
    attempts: row.attempts + 1,
    dueAt: now + pauseMilliseconds,
    expiresAt: Math.min(row.expiresAt, now),
  })

/**
 * Takes all of these back, some at a time; one that fails is logged and leaves the others alone.
 * @returns how many the expiry job will try again. Rows that were edited behind our back are not among them: what they say
 *   is not done, and they stay.
 * @throws LeaseLost when the job that does this is somebody else's by now
 */
export async function revokeAll(ground: Ground, ids: readonly string[], condition?: Condition): Promise<number> {
  let failures = 0
  const waiting = [...ids]
  async function lane(): Promise<void> {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      try {
        await revokeLease(ground, id, condition)
      } catch (error) {
        if (error instanceof LeaseLost) waiting.length = 0
        if (error instanceof LeaseLost) throw error
        if (error instanceof DamagedRow) continue
        failures++
        ground.log.warn({ err: error, lease: id }, 'a lease could not be taken back; trying again later')
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(lanes, ids.length) }, lane))
  return failures
}

const pause = (attempts: number): number => Math.min(firstPauseMilliseconds * 2 ** attempts, longestPauseMilliseconds)
