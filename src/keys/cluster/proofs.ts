import { paced } from '../../after.ts'
import type { Clock } from '../../clock.ts'
import type { Job } from '../../job.ts'
import type { Database } from '../../store/database.ts'
import { pages } from '../../store/pages.ts'
import { column, defineTable, type Row } from '../../store/table.ts'
import { kekProofsTable } from '../tables.ts'

const kekTraces = defineTable('keks', { id: column.text() }, { sealed: false })

const name = 'tidy KEK proofs'
const everySeconds = 3600
const rowsAtOnce = 64
/** A worker that registers again within this time finds its proof. */
const keptMilliseconds = 24 * 3_600_000

/** Removes the proofs of workers that have ended, not of registered ones, all of which a pending KEK waits for. */
export function proofTidying({ database, clock }: { readonly database: Database; readonly clock: Clock }): Job {
  const proofs = database.table(kekProofsTable)
  const keks = database.unverified(kekTraces)
  const remove = (ended: readonly Row<typeof kekProofsTable>[], fence: bigint) =>
    database.transaction(async (tx) => {
      await tx.fence(name, fence)
      for (const { kek, incarnation } of ended) await proofs.removeWhere(tx, { kek, incarnation })
    })
  return {
    name,
    everySeconds,
    async run(signal, fence) {
      const living = new Set(await database.incarnations())
      const before = clock.wall() - keptMilliseconds
      for await (const page of pages(database, keks, {}, { by: 'id', limit: rowsAtOnce })) {
        for (const { id: kek } of page) {
          for await (const found of pages(database, proofs, { kek }, { by: 'incarnation', limit: rowsAtOnce })) {
            const ended = found.filter(({ incarnation, provenAt }) => provenAt < before && !living.has(incarnation))
            if (ended.length > 0) await paced(clock, () => remove(ended, fence))
            if (signal.aborted) return
          }
        }
      }
    },
  }
}
