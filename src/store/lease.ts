import { Conflict } from './faults.ts'
import { places } from './places.ts'
import { Session, WriteSession } from './pool/session.ts'
import type { Transactions } from './pool/transactions.ts'
import { databaseTime } from './time.ts'

/** The right to do a job alone. */
export interface JobLease {
  /** Grows each time the lease is taken; each transaction of the job compares it (`tx.fence`). */
  readonly fence: bigint
  /** Restarts the lease's time; false when another process has taken the lease over. */
  renew(): Promise<boolean>
  /** Gives the lease up before its time. */
  release(): Promise<void>
}

const expiryAfter = (seconds: number): string => `${databaseTime} + ${Math.ceil(seconds * 1000)}`

/**
 * Takes or prolongs the lease of a job for `holder`; undefined while another process has it. Time, by the database's
 * clock, decides only when another may try; the fence in every transaction keeps two holders apart.
 */
export async function takeLease(
  transactions: Transactions,
  name: string,
  ttlSeconds: number,
  holder: string,
): Promise<JobLease | undefined> {
  const { result: fence } = await transactions.write(async (tx) => {
    const session = WriteSession.of(tx)
    const sql = `SELECT fence, holder, expires_at > ${databaseTime} FROM job_leases WHERE name = ?`
    const [row] = await session.rows(sql, [name])
    const expires = expiryAfter(ttlSeconds)
    if (!row) {
      const insert = `INSERT INTO job_leases (name, fence, holder, expires_at, beats) VALUES (?, 1, ?, ${expires}, 0)`
      await session.write('job_leases', { sql: insert, values: [name, holder] })
      return 1n
    }
    const [fence, heldBy, held] = row
    if (held === 1 && heldBy !== holder) return undefined
    const step = held === 1 ? 0 : 1
    const update = `UPDATE job_leases SET fence = fence + ${step}, holder = ?, expires_at = ${expires}, beats = beats + 1
      WHERE name = ? AND fence = ?`
    if ((await session.run(update, [holder, name, String(fence)])) === 0) throw new Conflict()
    return BigInt(String(fence)) + BigInt(step)
  })
  return fence === undefined ? undefined : leaseOf(transactions, name, ttlSeconds, fence)
}

function leaseOf(transactions: Transactions, name: string, ttlSeconds: number, fence: bigint): JobLease {
  const set = async (expires: string): Promise<boolean> => {
    const sql = `UPDATE job_leases SET expires_at = ${expires}, beats = beats + 1 WHERE name = ? AND fence = ?`
    const { result } = await transactions.write((tx) => WriteSession.of(tx).run(sql, [name, String(fence)]))
    return result > 0
  }
  return {
    fence,
    // Possible after expiry too: while the fence is the same, no other process has taken the lease.
    renew: () => set(expiryAfter(ttlSeconds)),
    async release() {
      await set('0')
    },
  }
}

/** Gives up the leases of processes that have ended. */
export async function releaseLeases(transactions: Transactions, holders: readonly string[]): Promise<void> {
  await transactions.write(async (tx) => {
    const session = WriteSession.of(tx)
    const sql = `SELECT name, fence FROM job_leases WHERE expires_at > 0 AND holder IN (${places(holders)})`
    for (const [name = null, fence = null] of await session.rows(sql, holders))
      await session.run('UPDATE job_leases SET expires_at = 0 WHERE name = ? AND fence = ?', [name, fence])
  })
}

/** The place a job has reached, stored by `tx.fence`; '' at the beginning. */
export async function placeOf(transactions: Transactions, name: string): Promise<string> {
  const sql = 'SELECT place FROM job_leases WHERE name = ?'
  const [row] = await transactions.read((q) => Session.of(q).rows(sql, [name]))
  return String(row?.[0] ?? '')
}
