import { badRequest } from '../../errors.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import { managedKeysTable } from './table.ts'

/**
 * Keeps a managed key from being deleted by another transaction while this one stores something that uses it: of the
 * two, the later one fails or is repeated.
 * @throws ApiError 400 when it was deleted meanwhile
 */
export async function holdManagedKey(database: Database, tx: Transaction, id: string): Promise<void> {
  const table = database.table(managedKeysTable)
  const row = await table.lock(tx, { id })
  if (row === undefined) throw badRequest('the managed key was deleted meanwhile')
  // Between the nodes of a cluster a lock makes nobody wait: a write conflicts with the lock of the deletion there.
  await table.update(tx, row, {})
  tx.touch(managedKeysTable.name, id)
}
