import type { MaybePromise } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { Reader, Transaction } from '../../store/reader.ts'
import type { New } from '../../store/table.ts'
import { type MountRow, mountsTable } from './mount.ts'

/** The set has one entry in the cache, and one name to touch. */
export const wholeSet = 'all'

const pageSize = 500

/** Makes the empty set, once, at initialisation. */
export const createMountSet = (database: Database, tx: Transaction): Promise<void> => database.head('mounts').create(tx)

/** A row to change, and its new values. */
export interface MountChange {
  readonly row: MountRow
  readonly changes: Partial<MountRow>
}

/** The key of one mount. */
type Key = { readonly id: string } | { readonly path: string }

/** The rows of the mounts and their sealed head, which is advanced with every write. */
export class MountRows {
  readonly #database: Database
  readonly #table
  readonly #head

  constructor(database: Database) {
    this.#database = database
    this.#table = database.table(mountsTable)
    this.#head = database.head('mounts')
  }

  /** All rows, verified against the head: a mount that was deleted from the database is noticed. */
  async list(q: Reader): Promise<readonly MountRow[]> {
    return this.#head.verify(q, this.#all(q))
  }

  /**
   * All rows, for a change: other writers of the set wait until the transaction ends. Must be its first read.
   * @param where the row to change, if there is one: it is locked, so that its update needs no comparison before the
   *   COMMIT
   */
  async listToChange(tx: Transaction, where?: Key): Promise<readonly MountRow[]> {
    const [, rows, held] = await Promise.all([
      this.#head.lock(tx),
      this.#all(tx),
      where && this.#table.lock(tx, { namespace: '', ...where }),
    ])
    await this.#head.verify(tx, rows)
    return rows.map((row) => (held && row.id === held.id && row.rev === held.rev ? held : row))
  }

  async #all(q: Reader): Promise<MountRow[]> {
    const rows: MountRow[] = []
    for (;;) {
      const after = rows.at(-1)
      const page = { by: 'path', limit: pageSize, ...(after === undefined ? {} : { after: after.path }) } as const
      const found = await this.#table.list(q, { namespace: '' }, page)
      rows.push(...found)
      if (found.length < pageSize) return rows
    }
  }

  /** @param rows all existing ones */
  async insert(tx: Transaction, rows: readonly MountRow[], row: New<typeof mountsTable>): Promise<void> {
    await this.#advance(tx, [...rows, await this.#table.insert(tx, row)])
  }

  /** @param rows all existing ones */
  async remove(tx: Transaction, rows: readonly MountRow[], row: MountRow): Promise<void> {
    await this.#table.remove(tx, row)
    await this.#advance(
      tx,
      rows.filter((other) => other !== row),
    )
  }

  /**
   * Changes one row in a transaction of its own.
   * @param where finds the row
   * @param decide the change to the current rows; may be called again
   */
  change(where: Key, decide: (rows: readonly MountRow[], tx: Transaction) => MaybePromise<MountChange>): Promise<void> {
    return this.#database.transaction(async (tx) => {
      const rows = await this.listToChange(tx, where)
      const { row, changes } = await decide(rows, tx)
      const changed = await this.#table.update(tx, row, changes)
      await this.#advance(
        tx,
        rows.map((other) => (other === row ? changed : other)),
      )
    })
  }

  async #advance(tx: Transaction, rows: readonly MountRow[]): Promise<void> {
    await this.#head.advance(tx, rows)
    tx.touch('mounts', wholeSet)
  }
}
