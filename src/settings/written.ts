import type { Database } from '../store/database.ts'
import type { Transaction } from '../store/reader.ts'
import type { Columns, Table } from '../store/table.ts'

/**
 * Notes in the settings of a mount, by a revision without a change, that something was written below it whose rows do
 * not show it any more: only an untouched mount is taken over by the first `enable`.
 * @param settings the table that has one row for each mount
 * @param mount uuid
 */
export async function markWritten(
  database: Database,
  tx: Transaction,
  settings: Table<Columns, true>,
  mount: string,
): Promise<void> {
  const table = database.table(settings)
  const row = await table.find(tx, { mount })
  if (row === undefined || row.rev > 1) return
  tx.touch(settings.name, mount)
  await table.update(tx, row, {})
}
