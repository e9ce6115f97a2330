import type { Clock } from '../../clock.ts'
import { ApiError } from '../../errors.ts'
import type { MaybePromise } from '../../route.ts'
import type { CoherentCache } from '../../store/coherence/cache.ts'
import type { Database } from '../../store/database.ts'
import { Outdated } from '../../store/faults.ts'
import { Batch, oneByOne } from '../../store/group.ts'
import type { Reader, Transaction } from '../../store/reader.ts'
import { KnownSet, type SetState } from '../../store/sealed/knownset.ts'
import type { New } from '../../store/table.ts'
import { MountEdit } from './edit.ts'
import { type MountRow, mountsTable } from './mount.ts'

/** The set has one entry in the cache, and one name to touch. */
const wholeSet = 'all'

/** Makes the empty set, once, at initialisation. */
export const createMountSet = (database: Database, tx: Transaction): Promise<void> => database.head('mounts').create(tx)

export type MountState = SetState<MountRow>

/** A change of the set: decides by what it finds, and may be called again. @throws ApiError to change nothing */
type Decide<T> = (edit: MountEdit) => T

type Decided = { readonly result: unknown } | { readonly refusal: unknown }

/** The rows of the mounts and their sealed head, which is advanced with every write. */
export class MountRows {
  readonly #database: Database
  readonly #table
  readonly #known: KnownSet<typeof mountsTable, MountRow>
  readonly #cache: CoherentCache<MountState>
  /** Changes that come while others are committed share the next transaction: each one advances the head of the set. */
  readonly #changes = new Batch<Decide<unknown>, Decided>((changes) => this.#commit(changes), oneByOne)

  constructor({ database, clock }: { readonly database: Database; readonly clock: Clock }) {
    this.#database = database
    this.#table = database.table(mountsTable)
    this.#known = new KnownSet({
      name: mountsTable.name,
      table: this.#table,
      head: database.head('mounts'),
      keep: (row) => row,
      keyOf: ({ path }) => path,
      clock,
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
    return [...(await this.#known.read(q)).values]
  }

  /**
   * Changes the set: by what the cache has, or after other writers of the set.
   * @returns what `decide` returned last
   */
  async change<T>(decide: Decide<T>): Promise<T> {
    const decided = await this.#changes.add(decide)
    if ('refusal' in decided) throw decided.refusal
    return decided.result as T
  }

  #commit(changes: readonly Decide<unknown>[]): Promise<Decided[]> {
    return this.#database.assuming({
      name: mountsTable.name,
      blind: this.peek() && ((tx) => this.#assuming(tx, changes)),
      reading: (tx) => this.#reading(tx, changes),
    })
  }

  async #assuming(tx: Transaction, changes: readonly Decide<unknown>[]): Promise<Decided[]> {
    const state = this.#cache.assume(tx, wholeSet)
    if (state === undefined) throw new Outdated()
    const { edit, decided } = decide(state, changes)
    const stored = storedIn(edit)
    this.#known.assume(tx, state, stored)
    await this.#write(tx, state, edit, stored)
    return decided
  }

  async #reading(tx: Transaction, changes: readonly Decide<unknown>[]): Promise<Decided[]> {
    const rowsOf = (state: MountState) => storedIn(decide(state, changes).edit)
    const { state, rows } = await this.#known.readToChange(tx, rowsOf)
    const { edit, decided } = decide(state, changes)
    await this.#write(tx, state, edit, rows)
    return decided
  }

  /** @param stored the rows that are changed, which the transaction owns */
  async #write(tx: Transaction, state: MountState, edit: MountEdit, stored: readonly MountRow[]): Promise<void> {
    if (edit.touches) tx.touch(mountsTable.name, wholeSet)
    if (edit.edited.length === 0) return
    const owned = new Map(stored.map((row) => [row.id, row]))
    const rows: Promise<MountRow>[] = []
    const removals: Promise<void>[] = []
    const gone: string[] = []
    for (const { stored, row, changes } of edit.edited) {
      const old = stored && owned.get(stored.id)
      if (old === undefined) rows.push(this.#table.insert(tx, changes as New<typeof mountsTable>))
      else if (row !== undefined) rows.push(this.#table.update(tx, old, changes))
      else {
        removals.push(this.#table.remove(tx, old))
        gone.push(old.id)
      }
    }
    const beside = edit.beside.map((write) => write(tx))
    const [written] = await Promise.all([Promise.all(rows), ...removals, ...beside])
    this.#cache.put(tx, wholeSet, await this.#known.advance(tx, state, { gone, rows: written }))
  }
}

/** What each of the changes decides, one after the other. */
function decide(state: MountState, changes: readonly Decide<unknown>[]): { edit: MountEdit; decided: Decided[] } {
  const edit = new MountEdit(state)
  const decided = changes.map((change) => {
    try {
      return { result: change(edit) }
    } catch (refusal) {
      if (refusal instanceof ApiError) return { refusal }
      throw refusal
    }
  })
  return { edit, decided }
}

const storedIn = ({ edited }: MountEdit): MountRow[] => edited.flatMap(({ stored }) => stored ?? [])
