import { after } from '../after.ts'
import type { MaybePromise } from '../route.ts'
import type { Database } from '../store/database.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import { headsTable } from '../store/sealed/heads.ts'
import { column, defineTable, type Row } from '../store/table.ts'

/** Settings of the whole server, made by operators through sys/config and sys/quotas: one row for each. */
export const settingsTable = defineTable(
  'system_settings',
  { kind: column.text(), name: column.text(), value: column.json<SettingValue>() },
  { sealed: true },
)

export type SettingValue = Readonly<Record<string, unknown>>

/** Each kind has names of its own. */
export type SettingKind = 'audited-header' | 'cors' | 'lease-count' | 'quota-config' | 'rate-limit'

/** The values of a kind by name, as stored. */
export type SettingSet = ReadonlyMap<SettingKind, ReadonlyMap<string, SettingValue>>

/** The set has one entry in the cache, and one name to touch. */
const cacheEntry = 'set'
const most = 1000
const nothing: SettingSet = new Map()
const unset: ReadonlyMap<string, SettingValue> = new Map()

/** The name of the set among the sealed heads. */
export const systemSettingsSet = settingsTable.name

/** Creates the empty set; an existing one stays. Only at initialisation, and for a cluster that never had one. */
export async function createSystemSettings(database: Database, tx: Transaction): Promise<void> {
  if (await database.table(headsTable).exists(tx, { set: systemSettingsSet })) return
  await database.head(systemSettingsSet).create(tx)
}

/**
 * The settings of the server: sealed rows under one head, so that editing the database cannot remove a limit. A reader
 * sees one verified set, never older than the last acknowledged change.
 */
export class Settings {
  readonly #database: Database
  readonly #table
  readonly #head
  readonly #cache
  /** As it was read last. */
  #latest: SettingSet = nothing
  /** The read under way, shared by all requests that want one. */
  #reading: Promise<void> | undefined

  constructor(database: Database) {
    this.#database = database
    this.#table = database.table(settingsTable)
    this.#head = database.head(systemSettingsSet)
    this.#cache = database.cache<SettingSet>({
      table: settingsTable.name,
      limit: 1,
      load: async (q) => compile(await this.#head.verify(q, this.#list(q))),
    })
  }

  /** The whole set: the same object as long as nothing changes. */
  current(): MaybePromise<SettingSet> {
    const set = this.#cache.peek(cacheEntry)
    if (set !== undefined) return set
    return after(this.#cache.get(cacheEntry), (read = nothing) => {
      this.#latest = read
      return read
    })
  }

  /**
   * The set as it was read last, for requests that are answered while the database is away. A newer one is read in the
   * background.
   */
  latest(): SettingSet {
    const set = this.#cache.peek(cacheEntry)
    if (set !== undefined) return set
    this.#reading ??= this.#readAnew().finally(() => {
      this.#reading = undefined
    })
    return this.#latest
  }

  /** The values of a kind by name. */
  of(kind: SettingKind): MaybePromise<ReadonlyMap<string, SettingValue>> {
    return after(this.current(), (set) => set.get(kind) ?? unset)
  }

  /**
   * Sets or removes one setting; in force on every worker of every node when this resolves.
   * @param value undefined removes it; a missing one is not an error
   */
  set(kind: SettingKind, name: string, value: SettingValue | undefined): Promise<void> {
    return this.change(kind, name, () => value)
  }

  /**
   * As `set`, with a value that depends on the set: no other change comes between.
   * @param decide may be called again when the transaction is repeated; its error refuses the change
   */
  async change(kind: SettingKind, name: string, decide: (set: SettingSet) => SettingValue | undefined): Promise<void> {
    await this.#database.transaction(async (tx) => {
      const [, rows] = await Promise.all([this.#head.lock(tx), this.#list(tx)])
      await this.#head.verify(tx, rows)
      const value = decide(compile(rows))
      // Also where nothing is left to do: an earlier change may not be known to every worker yet.
      tx.touch(settingsTable.name, cacheEntry)
      const old = rows.find((row) => row.kind === kind && row.name === name)
      const others = rows.filter((row) => row !== old)
      if (value === undefined && old === undefined) return
      if (old !== undefined) await this.#table.remove(tx, old)
      const added = value === undefined ? [] : [await this.#table.insert(tx, { kind, name, value })]
      await this.#head.advance(tx, [...others, ...added])
    })
    await this.#readAnew()
  }

  /** Without a database the last set stays. */
  async #readAnew(): Promise<void> {
    try {
      await this.current()
    } catch {
      // Requests that need the newest set are refused.
    }
  }

  #list(q: Reader): Promise<Row<typeof settingsTable>[]> {
    return this.#table.list(q, {}, { by: 'id', limit: most })
  }
}

function compile(rows: readonly Row<typeof settingsTable>[]): SettingSet {
  const byKind = Map.groupBy(rows, ({ kind }) => kind as SettingKind)
  return new Map([...byKind].map(([kind, some]) => [kind, new Map(some.map(({ name, value }) => [name, value]))]))
}
