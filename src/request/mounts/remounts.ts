import { column, defineTable, type Row } from '../../store/table.ts'

/** Every move of a mount, written in the same transaction, so that any worker of any node can report it by its id. */
export const remountsTable = defineTable(
  'remounts',
  { source: column.text(), target: column.text(), movedAt: column.integer() },
  { sealed: true },
)

export type Remount = Row<typeof remountsTable>
