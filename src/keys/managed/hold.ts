import { badRequest } from '../../errors.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import { managedKeysTable } from './table.ts'

/**
 * Keeps a managed key from being deleted until the transaction, which stores something that uses it, has ended.
 * @throws ApiError 400 when it was deleted meanwhile
 */
export async function holdManagedKey(database: Database, tx: Transaction, id: string): Promise<void> {
  const row = await database.table(managedKeysTable).lock(tx, { id })
  if (row === undefined) throw badRequest('the managed key was deleted meanwhile')
}
