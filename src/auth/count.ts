import type { Database } from '../store/database.ts'
import type { Transaction } from '../store/reader.ts'
import type { New } from '../store/table.ts'
import { type TokenRow, tokenTable } from './token.ts'

/** Stored tokens are counted as they come and go under this name: counting the rows would read every one of them. */
export const tokenTally = 'tokens'

/** Inserts a token, and counts it. */
export function insertToken(database: Database, tx: Transaction, row: New<typeof tokenTable>): Promise<TokenRow> {
  tx.tally(tokenTally, 1)
  return database.table(tokenTable).insert(tx, row)
}

/** Removes tokens unread, and counts them. */
export async function removeTokens(database: Database, tx: Transaction, ids: readonly string[]): Promise<void> {
  tx.tally(tokenTally, -(await database.table(tokenTable).removeAll(tx, ids)))
}

/** As removeTokens, of a row that is assumed to be unchanged: nothing is read. */
export async function removeMarked(database: Database, tx: Transaction, row: TokenRow): Promise<void> {
  const table = database.table(tokenTable)
  table.assume(tx, row)
  await table.remove(tx, row)
  tx.tally(tokenTally, -1)
}
