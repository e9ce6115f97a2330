import { paced } from '../after.ts'
import type { Clock } from '../clock.ts'
import type { Job } from '../job.ts'
import type { Database } from './database.ts'
import { pages } from './pages.ts'
import type { SealedAccess } from './sealed/access.ts'
import { type Column, column, defineTable, dueBy, type Row, type Table, type Where } from './table.ts'

interface Retention<T extends Table> {
  readonly name: string
  readonly table: T
  readonly rows: SealedAccess<T>
  /** The column with the time, in milliseconds, that the retention counts from; indexed. */
  readonly since: keyof Row<T> & string
  readonly keptMilliseconds: number
}

/** The columns that find old rows; the time has the name given by `since`. */
type Traces = Table<{ readonly id: Column<string>; readonly since: Column<number> }, false>

const everySeconds = 3600
const rowsAtOnce = 64

/**
 * The job that removes old rows of a sealed table. Candidates are read unverified; the sealed row decides, and edited
 * rows stay.
 */
export function retentionJob<T extends Table>(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  { name, table, rows, since, keptMilliseconds }: Retention<T>,
): Job {
  const columns = { id: column.text(), [since]: column.loose() }
  const traces = database.unverified(defineTable(table.name, columns, { sealed: false }) as unknown as Traces)
  const order = { by: [since as 'since', 'id'], limit: rowsAtOnce } as const
  const isOld = (time: unknown): boolean => Number(time) < clock.wall() - keptMilliseconds

  const remove = (ids: readonly string[], fence: bigint): Promise<void> =>
    database.transaction(async (tx) => {
      await tx.fence(name, fence)
      for (const row of await rows.sound(tx, ids)) if (isOld(row[since])) await rows.remove(tx, row)
    })

  return {
    name,
    everySeconds,
    async run(signal, fence) {
      const old = { [since]: dueBy(clock.wall() - keptMilliseconds - 1) } as Where<Traces>
      for await (const page of pages(database, traces, old, order)) {
        const ids = page.map(({ id }) => id)
        await paced(clock, () => remove(ids, fence))
        if (signal.aborted) return
      }
    },
  }
}
