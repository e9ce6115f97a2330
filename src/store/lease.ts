import { Conflict } from './faults.ts'
import { WriteSession } from './pool/session.ts'
import type { Transactions } from './pool/transactions.ts'

/** The right to do a job alone. */
export interface JobLease {
  /** Grows with every change of hands; compare it in each transaction of the job (`tx.fence`). */
  readonly fence: bigint
  /** Gives the lease up before its time. */
  release(): Promise<void>
}

const now = 'CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)'

/**
 * Takes or prolongs the lease of a job for `holder`; undefined while somebody else has it. Time, by the database's
 * clock, decides only when another may try: what keeps two holders apart is the fence in every transaction.
 */
export async function takeLease(
  transactions: Transactions,
  name: string,
  ttlSeconds: number,
  holder: string,
): Promise<JobLease | undefined> {
  const { result: fence } = await transactions.write(async (tx) => {
    const session = WriteSession.of(tx)
    const sql = `SELECT fence, holder, expires_at > ${now} FROM job_leases WHERE name = ?`
    const [row] = await session.rows(sql, [name])
    const expires = `${now} + ${Math.ceil(ttlSeconds * 1000)}`
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
  if (fence === undefined) return undefined
  return {
    fence,
    async release() {
      await transactions.write((tx) =>
        WriteSession.of(tx).run('UPDATE job_leases SET expires_at = 0 WHERE name = ? AND fence = ?', [
          name,
          String(fence),
        ]),
      )
    },
  }
}
