import type { MaybePromise } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { Reader, Transaction } from '../../store/reader.ts'
import { KnownSet } from '../../store/sealed/knownset.ts'
import type { New } from '../../store/table.ts'
import { type MountRow, mountsTable } from './mount.ts'

/** The set has one entry in the cache, and one name to touch. */
export const wholeSet = 'all'

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
  readonly #known: KnownSet<typeof mountsTable, MountRow>

  constructor(database: Database) {
    this.#database = database
    this.#table = database.table(mountsTable)
    this.#head = database.head('mounts')
    this.#known = new KnownSet({
      name: mountsTable.name,
      table: this.#table,
      head: this.#head,
      keep: (row) => row,
      readWhole: 50,
    })
  }

  /** All rows, verified against the head: a mount that was deleted from the database is noticed. */
  async list(q: Reader): Promise<readonly MountRow[]> {
    const known = await this.#known.read(q)
    return known.map(({ value }) => value)
  }

  /**
   * All rows, for a change: other writers of the set wait until the transaction ends. Must be its first read.
   * @param where the row to change, if there is one: it is locked, so that its update needs no comparison before the
   *   COMMIT
   */
  async listToChange(tx: Transaction, where?: Key): Promise<readonly MountRow[]> {
    const [known, held] = await Promise.all([
      this.#known.readToChange(tx),
      where && this.#table.lock(tx, { namespace: '', ...where }),
    ])
    return known.map(({ value: row }) => (held && row.id === held.id && row.rev === held.rev ? held : row))
  }

  /** @param rows all existing ones */
  async insert(tx: Transaction, rows: readonly MountRow[], news: readonly New<typeof mountsTable>[]): Promise<void> {
    await this.#advance(tx, [...rows, ...(await this.#table.insertMany(tx, news))])
  }

  /** @param rows all existing ones */
  async remove(tx: Transaction, rows: readonly MountRow[], row: MountRow): Promise<void> {
    await this.#table.remove(tx, row)
    await this.#advance(
      tx,
      rows.filter((other) => other !== row),
    )
  }

  /** For a change that finds nothing to do: an earlier one may not be known to every worker yet. */
  outlive(tx: Transaction): void {
    tx.touch('mounts', wholeSet)
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
