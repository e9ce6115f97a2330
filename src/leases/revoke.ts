import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Database } from '../store/database.ts'
import type { Transaction } from '../store/reader.ts'
import type { SealedAccess } from '../store/sealed/access.ts'
import { together } from '../store/together.ts'
import { type LeaseRow, leaseTable, leaseTally, mountTally } from './lease.ts'

/** Dependencies of the functions below. */
export interface RevokeDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  /** Has the engine of a mount revoke a leased object. Not an error for a removed mount, whose contents are gone. */
  revokeInEngine(mount: string, payload: Readonly<Record<string, unknown>>): Promise<void>
}

export interface Condition {
  /** Whether a lease is to be revoked; absent means every one. */
  eligible?(row: LeaseRow): boolean
  /** A job's first statement in each of its transactions. */
  guard?(tx: Transaction): Promise<void>
}

/** Leases that one transaction expires and removes. */
const leasesAtOnce = 64
/** Leases that engines revoke at the same time. */
const concurrency = 8
/** For a transaction of several leases: if it fails, perhaps because of one lease, each lease gets its own. */
const impatient = { deadlineMilliseconds: 3000 }
const firstPauseMilliseconds = 30_000
const longestPauseMilliseconds = 3_600_000

/**
 * Revokes one lease: it expires for good (no renewal can follow), the engine is called, and then the row is removed. If
 * that stops half-way the expiry job tries again, after growing pauses. An absent lease is not an error.
 * @throws the engine's error, and DamagedRow
 */
export async function revokeLease(deps: RevokeDeps, id: string, { eligible, guard }: Condition = {}): Promise<void> {
  const { database, clock } = deps
  const table = database.table(leaseTable)
  const ended = await database.transaction(async (tx) => {
    await guard?.(tx)
    const row = await table.get(tx, id)
    if (row === undefined || eligible?.(row) === false) return undefined
    return expireLease(table, tx, row, clock.wall(), pause(row.attempts))
  })
  if (ended === undefined) return
  await deps.revokeInEngine(ended.mount, ended.payload)
  await database.transaction((tx) => removeLeases(table, tx, [ended]))
}

/** Removes lease rows unread, and reduces the counts. @param leases their mounts serve only for the counts */
export async function removeLeases(
  table: SealedAccess<typeof leaseTable>,
  tx: Transaction,
  leases: readonly Pick<LeaseRow, 'id' | 'mount'>[],
): Promise<void> {
  for (const [mount, some] of Map.groupBy(leases, (lease) => lease.mount)) {
    const ids = some.map(({ id }) => id)
    const removed = await table.removeAll(tx, ids)
    tx.tally(leaseTally, -removed)
    // An edited mount has no count.
    if (isUuid(mount)) tx.tally(mountTally(mount), -removed)
  }
}

const isUuid = (text: string): boolean => /^[0-9a-f-]{36}$/.test(text)

/**
 * Expires a lease now: the expiry job revokes it after `pauseMilliseconds`.
 * @param now milliseconds
 */
export const expireLease = (
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
 * Revokes all these leases, several in each transaction; a failure is logged and does not stop the others.
 * @returns the number that the expiry job will try again, without rows edited outside this server: those are never
 *   acted on, and stay
 * @throws LeaseLost when another worker has taken over the job
 */
export async function revokeAll(deps: RevokeDeps, ids: readonly string[], condition?: Condition): Promise<number> {
  let failures = 0
  for (let start = 0; start < ids.length; start += leasesAtOnce) {
    failures += await revokeSome(deps, ids.slice(start, start + leasesAtOnce), condition)
  }
  return failures
}

/**
 * As `revokeLease`, for several together: two transactions, and the engine between them. @returns the number of
 * failures
 */
async function revokeSome(deps: RevokeDeps, ids: readonly string[], condition: Condition = {}): Promise<number> {
  const { database, log } = deps
  const table = database.table(leaseTable)
  let failures = 0
  const failed = (id: string, error: unknown): void => {
    failures++
    log.warn({ err: error, lease: id }, 'a lease could not be revoked; trying again later')
  }
  const ended = await together(ids, (some) => endLeases(deps, some, condition), failed)
  const revoked = await revokeInEngine(deps, ended, failed)
  const mounts = new Map(ended.map(({ id, mount }) => [id, mount]))
  const remove = (some: readonly string[]) =>
    database.transaction(async (tx) => {
      const leases = some.map((id) => ({ id, mount: mounts.get(id) ?? '' }))
      await removeLeases(table, tx, leases)
      return some
    }, impatient)
  await together(revoked, remove, failed)
  return failures
}

/** Expires the eligible leases among these for good. @returns their rows */
function endLeases(
  { database, clock }: RevokeDeps,
  ids: readonly string[],
  { eligible, guard }: Condition,
): Promise<LeaseRow[]> {
  const table = database.table(leaseTable)
  return database.transaction(async (tx) => {
    await guard?.(tx)
    const ended: LeaseRow[] = []
    for (const row of await table.sound(tx, ids)) {
      if (eligible?.(row) === false) continue
      ended.push(await expireLease(table, tx, row, clock.wall(), pause(row.attempts)))
    }
    return ended
  }, impatient)
}

/** @returns the ids of the leases that the engine has revoked */
async function revokeInEngine(
  deps: RevokeDeps,
  ended: readonly LeaseRow[],
  failed: (id: string, error: unknown) => void,
): Promise<string[]> {
  const revoked: string[] = []
  const queue = [...ended]
  async function worker(): Promise<void> {
    for (let row = queue.pop(); row !== undefined; row = queue.pop()) {
      try {
        await deps.revokeInEngine(row.mount, row.payload)
        revoked.push(row.id)
      } catch (error) {
        failed(row.id, error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, ended.length) }, worker))
  return revoked
}

const pause = (attempts: number): number => Math.min(firstPauseMilliseconds * 2 ** attempts, longestPauseMilliseconds)
