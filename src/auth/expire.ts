import { paced } from '../after.ts'
import type { Job } from '../job.ts'
import { clockLimitMilliseconds } from '../store/database.ts'
import { pages, walk } from '../store/pages.ts'
import { dueBy } from '../store/table.ts'
import { together } from '../store/together.ts'
import { markRevoked, type RevokeDeps, removeTrees } from './revoke.ts'
import { type TokenRow, tokenTable, tokenTraces, usable } from './token.ts'

const pageSize = 64

/**
 * Whether a row's token cannot be used, without a look at its ancestors. The row of one that was just revoked stays,
 * since another worker may still accept it: the row makes others who revoke it wait too, and holds a text that was
 * chosen for it.
 */
const goneIn =
  ({ clock, database }: RevokeDeps, epoch: number) =>
  (row: TokenRow): boolean => {
    const now = clock.wall()
    const settled = now - database.settlingMilliseconds - clockLimitMilliseconds
    return !usable(row, now, epoch) && (row.state !== 'revoked' || (row.expiresAt ?? 0) < settled)
  }

/**
 * The job that removes expired tokens with their descendants and leases, and revoked ones that a crash left behind. By
 * then no worker accepts them any more.
 */
export function expiryJob(deps: RevokeDeps, epoch: number): Job {
  const { database, clock } = deps
  const name = 'expire tokens'
  const isGone = goneIn(deps, epoch)
  const order = { by: ['expiresAt', 'id'], limit: pageSize } as const
  return {
    name,
    everySeconds: 5,
    async run(signal, fence) {
      const faults: unknown[] = []
      const failed = (_: string, error: unknown) => void faults.push(error)
      const end = async (ids: readonly string[]): Promise<readonly never[]> => {
        await removeTrees(deps, await markRevoked(deps, ids, isGone, (tx) => tx.fence(name, fence)))
        return []
      }
      const due = { expiresAt: dueBy(clock.wall()) }
      for await (const page of pages(database, database.unverified(tokenTraces), due, order)) {
        const ids = page.map(({ id }) => id)
        await paced(clock, () => together(ids, end, failed))
        if (signal.aborted) break
      }
      if (faults.length > 0) throw new AggregateError(faults, `${faults.length} tokens could not be removed`)
    },
  }
}

/**
 * auth/token/tidy: goes through all tokens and removes those that can never work again, because their parent is gone or
 * they were made before the database was restored.
 */
export function tidyJob(deps: RevokeDeps, epoch: number): Job {
  const { database, clock } = deps
  const name = 'tidy tokens'
  const isGone = goneIn(deps, epoch)
  const table = database.table(tokenTable)
  return {
    name,
    everySeconds: 600,
    async run(signal, fence) {
      const ways = { claim: { job: name, fence }, limit: pageSize, signal, clock }
      for await (const page of walk(database, database.unverified(tokenTraces), ways)) {
        const ids = page.map(({ id }) => id)
        const gone = await markRevoked(
          deps,
          ids,
          async (row, tx) => isGone(row) || (row.parent !== null && !(await table.exists(tx, { id: row.parent }))),
          (tx) => tx.fence(name, fence),
        )
        await removeTrees(deps, gone)
      }
    },
  }
}
