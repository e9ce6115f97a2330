import { column, defineTable, type Row } from '../../store/table.ts'

/** Every move of a mount, written with the move itself: whoever has its id is told by any worker of any node. */
export const remountsTable = defineTable(
  'remounts',
  { source: column.text(), target: column.text(), movedAt: column.integer() },
  { sealed: true },
)

export type Remount = Row<typeof remountsTable>
