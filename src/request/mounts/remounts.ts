import type { Clock } from '../../clock.ts'
import type { Job } from '../../job.ts'
import type { Database } from '../../store/database.ts'
import { retentionJob } from '../../store/retention.ts'
import { column, defineTable, type Row } from '../../store/table.ts'

const keptMilliseconds = 30 * 24 * 3_600_000

/**
 * Every move of a mount, written in the same transaction, so that any worker of any node can report it by its id, for
 * 30 days.
 */
export const remountsTable = defineTable(
  'remounts',
  { source: column.text(), target: column.text(), movedAt: column.integer() },
  { sealed: true },
)

export type Remount = Row<typeof remountsTable>

/** The job that forgets old moves. */
export const remountRetention = (deps: { readonly database: Database; readonly clock: Clock }): Job =>
  retentionJob(deps, {
    name: 'forget moves of mounts',
    table: remountsTable,
    rows: deps.database.table(remountsTable),
    since: 'movedAt',
    keptMilliseconds,
  })
