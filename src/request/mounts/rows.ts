import type { MaybePromise } from '../../route.ts'
import type { CoherentCache } from '../../store/coherence/cache.ts'
import type { Database } from '../../store/database.ts'
import { Outdated } from '../../store/faults.ts'
import type { Reader, Transaction } from '../../store/reader.ts'
import { KnownSet, type SetState } from '../../store/sealed/knownset.ts'
import type { SortedList } from '../../store/sortedlist.ts'
import type { New } from '../../store/table.ts'
import { type MountRow, mountsTable } from './mount.ts'
import { mountsByPath } from './overlap.ts'

/** The set has one entry in the cache, and one name to touch. */
const wholeSet = 'all'

/** Makes the empty set, once, at initialisation. */
export const createMountSet = (database: Database, tx: Transaction): Promise<void> => database.head('mounts').create(tx)

/** The key of one mount. */
type Key = { readonly id: string } | { readonly path: string }

/** The verified set that a transaction changes. */
export interface FoundMounts {
  readonly state: MountState
  readonly byPath: SortedList<MountRow>
  /** The row that was asked for, if there is one. */
  readonly row: MountRow | undefined
}

/** A row to change, and its new values. */
interface Change {
  readonly row: MountRow
  readonly changes: Partial<MountRow>
}

export type MountState = SetState<MountRow>

/** The rows of the mounts and their sealed head, which is advanced with every write. */
export class MountRows {
  readonly #database: Database
  readonly #table
  readonly #known: KnownSet<typeof mountsTable, MountRow>
  readonly #cache: CoherentCache<MountState>
  /** Of each list of members, as far as it is known. */
  readonly #byPath = new WeakMap<MountState['members'], SortedList<MountRow>>()

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
    return rowsOf(await this.#known.read(q))
  }

  /**
   * Changes the set in a transaction of its own: by what the cache has, or after other writers of the set.
   * @param where the row that is going to be changed, if there is one
   * @param work may be run again
   */
  changing<T>(where: Key | undefined, work: (tx: Transaction, found: FoundMounts) => Promise<T>): Promise<T> {
    return this.#database.assuming({
      name: mountsTable.name,
      blind: this.peek() && (async (tx) => work(tx, this.#assume(tx, where))),
      reading: async (tx) => work(tx, await this.#lock(tx, where)),
    })
  }

  #assume(tx: Transaction, where: Key | undefined): FoundMounts {
    const state = this.#cache.assume(tx, wholeSet)
    if (state === undefined) throw new Outdated()
    this.#known.assume(tx, state)
    const found = this.#found(state, where)
    if (found.row !== undefined) this.#table.assume(tx, found.row)
    return found
  }

  async #lock(tx: Transaction, where: Key | undefined): Promise<FoundMounts> {
    const [state, held] = await Promise.all([
      this.#known.readToChange(tx),
      where && this.#table.lock(tx, { namespace: '', ...where }),
    ])
    const found = this.#found(state, where)
    return held && held.id === found.row?.id && held.rev === found.row.rev ? { ...found, row: held } : found
  }

  #found(state: MountState, where: Key | undefined): FoundMounts {
    const byPath = this.#sorted(state)
    const row = where && ('id' in where ? state.members.get(where.id)?.value : byPath.get(where.path))
    return { state, byPath, row }
  }

  async insert(tx: Transaction, found: FoundMounts, news: readonly New<typeof mountsTable>[]): Promise<void> {
    await this.#advance(tx, found, await this.#table.insertMany(tx, news))
  }

  async remove(tx: Transaction, found: FoundMounts, row: MountRow): Promise<void> {
    await this.#table.remove(tx, row)
    await this.#advance(tx, found, [], [row])
  }

  /** For a change that finds nothing to do: an earlier one may not be known to every worker yet. */
  outlive(tx: Transaction): void {
    tx.touch(mountsTable.name, wholeSet)
  }

  /**
   * Changes one row.
   * @param where finds the row
   * @param decide the changes; may be called again @throws where there is no such row
   */
  change(where: Key, decide: (found: FoundMounts, tx: Transaction) => MaybePromise<Change>): Promise<void> {
    return this.changing(where, async (tx, found) => {
      const { row, changes } = await decide(found, tx)
      const changed = await this.#table.update(tx, row, changes)
      await this.#advance(tx, found, [changed], changed.path === row.path ? [] : [row])
    })
  }

  /**
   * @param rows inserted or updated
   * @param left rows that are no more at their paths
   */
  async #advance(
    tx: Transaction,
    { state, byPath }: FoundMounts,
    rows: readonly MountRow[],
    left: readonly MountRow[] = [],
  ): Promise<void> {
    this.outlive(tx)
    const next = await this.#known.advance(tx, state, { gone: left.map(({ id }) => id), rows })
    this.#byPath.set(
      next.members,
      byPath.changed(
        left.map(({ path }) => path),
        rows,
      ),
    )
    this.#cache.put(tx, wholeSet, next)
  }

  #sorted(state: MountState): SortedList<MountRow> {
    const known = this.#byPath.get(state.members)
    if (known !== undefined) return known
    const sorted = mountsByPath(rowsOf(state))
    this.#byPath.set(state.members, sorted)
    return sorted
  }
}

const rowsOf = ({ members }: MountState): MountRow[] => Array.from(members, ({ value }) => value)
