import type { MaybePromise } from '../../route.ts'
import type { CoherentCache } from '../../store/coherence/cache.ts'
import type { Database } from '../../store/database.ts'
import { Outdated } from '../../store/faults.ts'
import type { Reader, Transaction } from '../../store/reader.ts'
import { type Advance, KnownSet, type SetState } from '../../store/sealed/knownset.ts'
import type { New } from '../../store/table.ts'
import { type MountRow, mountsTable } from './mount.ts'

/** The set has one entry in the cache, and one name to touch. */
const wholeSet = 'all'

/** Makes the empty set, once, at initialisation. */
export const createMountSet = (database: Database, tx: Transaction): Promise<void> => database.head('mounts').create(tx)

/** A row to change, and its new values. */
export interface MountChange {
  readonly row: MountRow
  readonly changes: Partial<MountRow>
}

/** The key of one mount. */
type Key = { readonly id: string } | { readonly path: string }

/** The rows, or some of them held in their place, and the verified set that they are. */
export interface FoundMounts {
  readonly state: MountState
  readonly rows: readonly MountRow[]
}

export type MountState = SetState<MountRow>

/** The rows of the mounts and their sealed head, which is advanced with every write. */
export class MountRows {
  readonly #database: Database
  readonly #table
  readonly #known: KnownSet<typeof mountsTable, MountRow>
  readonly #cache: CoherentCache<MountState>

  constructor(database: Database) {
    this.#database = database
    this.#table = database.table(mountsTable)
    this.#known = new KnownSet({
      name: mountsTable.name,
      table: this.#table,
      head: database.head('mounts'),
      keep: (row) => row,
      readWhole: 50,
    })
    this.#cache = database.cache({ table: mountsTable.name, limit: 1, load: (q) => this.#known.read(q) })
  }

  /** The verified set, if it may be used at this very moment. */
  peek(): MountState | undefined {
    return this.#cache.peek(wholeSet)
  }

  /** The verified set, never older than the last acknowledged change. */
  get(): MaybePromise<MountState | undefined> {
    return this.#cache.get(wholeSet)
  }

  /** All rows, verified against the head: a mount that was deleted from the database is noticed. */
  async list(q: Reader): Promise<readonly MountRow[]> {
    return found(await this.#known.read(q)).rows
  }

  /**
   * All rows as the cache has them, for a change that reads nothing.
   * @throws Outdated when they are not cached; the transaction fails with it when they have changed
   */
  assume(tx: Transaction): FoundMounts {
    const state = this.#cache.assume(tx, wholeSet)
    if (state === undefined) throw new Outdated()
    this.#known.assume(tx, state)
    return found(state)
  }

  /**
   * All rows, for a change: other writers of the set wait until the transaction ends. Must be its first read.
   * @param where the row to change, if there is one: it is locked, so that its update needs no comparison before the
   *   COMMIT
   */
  async lock(tx: Transaction, where?: Key): Promise<FoundMounts> {
    const [state, held] = await Promise.all([
      this.#known.readToChange(tx),
      where && this.#table.lock(tx, { namespace: '', ...where }),
    ])
    const rows = state.members.map(({ value: row }) => (row.id === held?.id && row.rev === held.rev ? held : row))
    return { state, rows }
  }

  /** @param news with ids */
  insert(tx: Transaction, { state }: FoundMounts, news: readonly (New<typeof mountsTable> & { id: string })[]) {
    const members = news.map(({ id }) => ({ id, rev: 1 }))
    return this.#advance(tx, state, {
      gone: new Set(),
      news: members,
      write: () => this.#table.insertMany(tx, news),
    })
  }

  remove(tx: Transaction, { state }: FoundMounts, row: MountRow): Promise<void> {
    const write = async () => {
      await this.#table.remove(tx, row)
      return []
    }
    return this.#advance(tx, state, { gone: new Set([row.id]), news: [], write })
  }

  /** For a change that finds nothing to do: an earlier one may not be known to every worker yet. */
  outlive(tx: Transaction): void {
    tx.touch(mountsTable.name, wholeSet)
  }

  /**
   * Changes one row in a transaction of its own.
   * @param where finds the row
   * @param decide the change to the current rows; may be called again
   */
  change(where: Key, decide: (rows: readonly MountRow[], tx: Transaction) => MaybePromise<MountChange>): Promise<void> {
    return this.#database.transaction(async (tx) => {
      const { state, rows } = await this.lock(tx, where)
      const { row, changes } = await decide(rows, tx)
      const write = async () => [await this.#table.update(tx, row, changes)]
      await this.#advance(tx, state, { gone: new Set([row.id]), news: [{ id: row.id, rev: row.rev + 1 }], write })
    })
  }

  async #advance(tx: Transaction, state: MountState, change: Advance<typeof mountsTable>): Promise<void> {
    this.outlive(tx)
    this.#cache.put(tx, wholeSet, await this.#known.advance(tx, state, change))
  }
}

const found = (state: MountState): FoundMounts => ({ state, rows: state.members.map(({ value }) => value) })
