import { paced } from '../after.ts'
import type { Job } from '../job.ts'
import { pages, walk } from '../store/pages.ts'
import { dueBy } from '../store/table.ts'
import { together } from '../store/together.ts'
import { markRevoked, type RevokeDeps, removeTrees } from './revoke.ts'
import { type TokenRow, tokenTable, tokenTraces, usable } from './token.ts'

const pageSize = 64

/** A test of one row, without its ancestors. */
const usableIn =
  ({ clock }: RevokeDeps, epoch: number) =>
  (row: TokenRow): boolean =>
    usable(row, clock.wall(), epoch)

/**
 * The job that removes expired tokens with their descendants and leases, and revoked ones that a crash left behind. By
 * then no worker accepts them any more.
 */
export function expiryJob(deps: RevokeDeps, epoch: number): Job {
  const { database, clock } = deps
  const name = 'expire tokens'
  const isUsable = usableIn(deps, epoch)
  const order = { by: ['expiresAt', 'id'], limit: pageSize } as const
  const eligible = (row: TokenRow): boolean => !isUsable(row)
  return {
    name,
    everySeconds: 5,
    async run(signal, fence) {
      const faults: unknown[] = []
      const failed = (_: string, error: unknown) => void faults.push(error)
      const end = async (ids: readonly string[]): Promise<readonly never[]> => {
        await removeTrees(deps, await markRevoked(deps, ids, eligible, (tx) => tx.fence(name, fence)))
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
  const isUsable = usableIn(deps, epoch)
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
          async (row, tx) => !isUsable(row) || (row.parent !== null && !(await table.exists(tx, { id: row.parent }))),
          (tx) => tx.fence(name, fence),
        )
        await removeTrees(deps, gone)
      }
    },
  }
}
