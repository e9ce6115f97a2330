import type { Job } from '../engine.ts'
import { pages } from '../store/pages.ts'
import { condemn, type Ground, removeTrees } from './revoke.ts'
import { type TokenRow, tokenTable, tokenTraces, usable } from './token.ts'

const PAGE = 100
/** Those without an end stand before it in the index. */
const beginning = '0'

/** Whether a row is a token that works, by itself. */
type Works = (row: TokenRow) => boolean

const worksIn =
  ({ clock }: Ground, epoch: number): Works =>
  (row) =>
    usable(row, clock.wall(), epoch)

/**
 * The job that removes tokens whose time is over, with what descends from them and what hangs on them, and what a crash
 * left of a revocation. By then no worker accepts them any more.
 */
export function expiryJob(ground: Ground, epoch: number): Job {
  const { database, clock } = ground
  const name = 'expire tokens'
  const works = worksIn(ground, epoch)
  const order = { by: 'expiresAt', after: beginning, limit: PAGE } as const
  return {
    name,
    everySeconds: 5,
    async run(signal, fence) {
      for await (const page of pages(database, database.unverified(tokenTraces), {}, order)) {
        const due = page.filter(({ expiresAt }) => Number(expiresAt) <= clock.wall()).map(({ id }) => id)
        const gone = await condemn(
          ground,
          due,
          (row) => !works(row),
          (tx) => tx.fence(name, fence),
        )
        await removeTrees(ground, gone)
        if (signal.aborted || due.length < page.length) return
      }
    },
  }
}

/**
 * auth/token/tidy: looks at every token there is, and removes those that can never work again: their parent is gone, or
 * they were made before the database was restored.
 */
export function tidyJob(ground: Ground, epoch: number): Job {
  const { database } = ground
  const name = 'tidy tokens'
  const works = worksIn(ground, epoch)
  const table = database.table(tokenTable)
  return {
    name,
    everySeconds: 600,
    async run(signal, fence) {
      for await (const page of pages(database, database.unverified(tokenTraces), {}, { by: 'id', limit: PAGE })) {
        const ids = page.map(({ id }) => id)
        const gone = await condemn(
          ground,
          ids,
          async (row, tx) => !works(row) || (row.parent !== null && (await table.count(tx, { id: row.parent })) === 0),
          (tx) => tx.fence(name, fence),
        )
        await removeTrees(ground, gone)
        if (signal.aborted) return
      }
    },
  }
}
