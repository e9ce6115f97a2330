import { column, defineTable, type Row } from '../store/table.ts'

export const policyTable = defineTable(
  'policies',
  { name: column.text(), text: column.text(), createdAt: column.integer(), updatedAt: column.integer() },
  { sealed: true },
)

export type PolicyRow = Row<typeof policyTable>

/** Names for listings: unverified, from an index alone. A policy is verified when it is read or used. */
export const policyNames = defineTable('policies', { namespace: column.text(), name: column.text() }, { sealed: false })
