import type { Clock } from '../clock.ts'
import type { Database } from '../store/database.ts'
import { Batch } from '../store/group.ts'
import type { Transaction } from '../store/reader.ts'
import { SPENT, type TokenRow, tokenTable, usable } from './token.ts'

/**
 * Takes uses off tokens that have a limited number of them. Each is a compare-and-set of the row in the database, so
 * that exactly as many requests succeed as the token had uses, over all workers and nodes. Requests that come at the
 * same moment share a transaction. A use whose outcome stays unknown is refused, and counts if it was committed.
 */
export class Uses {
  readonly #batch: Batch<string, TokenRow | undefined>

  constructor({ database, clock, epoch }: { database: Database; clock: Clock; epoch: number }) {
    const table = database.table(tokenTable)

    async function take(tx: Transaction, ids: readonly string[]): Promise<(TokenRow | undefined)[]> {
      const now = clock.wall()
      const rows = new Map<string, TokenRow | undefined>()
      const taken: (TokenRow | undefined)[] = []
      for (const id of ids) {
        const row = rows.has(id) ? rows.get(id) : await table.get(tx, id)
        const left = row !== undefined && usable(row, now, epoch) ? row : undefined
        // The end of a spent token is where the expiry job finds it, should its worker not live to remove it.
        const changes = left?.numUses === 1 ? { numUses: SPENT, expiresAt: now } : { numUses: (left?.numUses ?? 0) - 1 }
        const next = left && (await table.update(tx, left, changes))
        rows.set(id, next)
        taken.push(next)
      }
      return taken
    }
    this.#batch = new Batch((ids) => database.transaction((tx) => take(tx, ids)))
  }

  /**
   * @param id a token with a limited number of uses
   * @returns the row with one use less, `SPENT` when that was the last; undefined when there was none left
   * @throws ApiError 503 when the database did not take it in time, or did not say whether it did
   */
  take(id: string): Promise<TokenRow | undefined> {
    return this.#batch.insert(id)
  }
}
