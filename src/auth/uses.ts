import type { Clock } from '../clock.ts'
import type { Database } from '../store/database.ts'
import { Batch } from '../store/group.ts'
import type { Transaction } from '../store/reader.ts'
import { spentUses, type TokenRow, tokenTable, usable } from './token.ts'

/**
 * Takes the uses of tokens that have a limited number of them. Each is a compare-and-set of the row in the database, so
 * that exactly as many requests succeed as the token has uses, over all workers and nodes. Simultaneous requests share
 * a transaction. A request whose transaction has an unknown outcome is refused; its use counts if it was committed.
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
        // The expiry lets the expiry job find a spent token whose worker died before removing it.
        const changes =
          left?.numUses === 1 ? { numUses: spentUses, expiresAt: now } : { numUses: (left?.numUses ?? 0) - 1 }
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
   * @returns the row with one use less, or `spentUses` after the last; undefined when none was left
   * @throws ApiError 503 when the database did not commit in time, or the outcome is unknown
   */
  take(id: string): Promise<TokenRow | undefined> {
    return this.#batch.add(id)
  }
}
