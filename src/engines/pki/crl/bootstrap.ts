import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import { headsTable } from '../../../store/sealed/heads.ts'

/** The head of all manifests. Once the token remembers it, its absence is damage. */
export const crlSet = 'pki crls'

/** A head without members. */
export async function createInitialCrls({ database }: { readonly database: Database }, tx: Transaction): Promise<void> {
  if (await database.table(headsTable).exists(tx, { set: crlSet })) return
  await database.head(crlSet).create(tx)
}
