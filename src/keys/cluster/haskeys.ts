import type { Database } from '../../store/database.ts'
import { materialsTable, systemKeysTable } from '../tables.ts'

const one = { by: 'id', limit: 1 } as const

/** Whether any row names the KEK, a damaged one too: keys, or keys of the service itself. */
export const hasKeys = (database: Database, kek: string): Promise<boolean> =>
  database.read(
    async (q) =>
      (await database.unverified(materialsTable).list(q, { kek }, one)).length > 0 ||
      (await database.unverified(systemKeysTable).list(q, { kek }, one)).length > 0,
  )
