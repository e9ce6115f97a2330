import { randomUUIDv7 } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { MaybePromise } from '../../route.ts'
import type { CoherentCache } from '../../store/coherence/cache.ts'
import type { Database } from '../../store/database.ts'
import { DamagedRow } from '../../store/faults.ts'
import { pages } from '../../store/pages.ts'
import type { Transaction } from '../../store/reader.ts'
import type { SealedAccess } from '../../store/sealed/access.ts'
import type { Material } from '../material.ts'
import type { Draft } from '../materials/draft.ts'
import type { Materials } from '../materials/materials.ts'
import type { Settings } from './settings.ts'
import { type ManagedRow, managedKeysTable, managedNames } from './table.ts'

/** A managed key with its PIN, which is wrapped. */
export interface Entry {
  readonly row: ManagedRow
  readonly pin: Material
}

const pageRows = 500
const cached = 1000

/** The sealed rows of managed keys. Names are lower case and belong to one key each. */
export class Registry {
  readonly #database: Database
  readonly #materials: Materials
  readonly #clock: Clock
  readonly #table: SealedAccess<typeof managedKeysTable>
  readonly #cache: CoherentCache<Entry>

  constructor({ database, materials, clock }: { database: Database; materials: Materials; clock: Clock }) {
    this.#database = database
    this.#materials = materials
    this.#clock = clock
    this.#table = database.table(managedKeysTable)
    this.#cache = database.cache({
      table: managedKeysTable.name,
      limit: cached,
      load: async (q, id) => {
        const row = await this.#table.get(q, id)
        if (row === undefined) return undefined
        const pin = await materials.read(q, row.pin)
        if (pin === undefined)
          throw new DamagedRow('materials', row.pin, `it is missing, and managed key ${id} names it`)
        return { row, pin }
      },
    })
  }

  /** Never older than the last acknowledged write; synchronous when it is cached. */
  get(id: string): MaybePromise<Entry | undefined> {
    return this.#cache.get(id)
  }

  async named(name: string): Promise<Entry | undefined> {
    const row = await this.#database.read((q) => this.#table.find(q, { name }))
    return row && this.get(row.id)
  }

  /** All names, sorted. */
  async names(): Promise<string[]> {
    const names: string[] = []
    const rows = this.#database.unverified(managedNames)
    for await (const page of pages(this.#database, rows, {}, { by: 'name', limit: pageRows })) {
      names.push(...page.map(({ name }) => name))
    }
    return names
  }

  /**
   * Creates or changes a key.
   * @param before the row that the settings were made from; undefined where there was none
   * @param pin undefined: it stays
   * @returns false, having done nothing, when the row has changed meanwhile
   */
  write(name: string, before: ManagedRow | undefined, settings: Settings, pin: Draft | undefined): Promise<boolean> {
    const now = this.#clock.wall()
    return this.#database.transaction(async (tx) => {
      const row = await this.#table.find(tx, { name })
      if (row?.id !== before?.id || row?.rev !== before?.rev) return false
      const id = row?.id ?? randomUUIDv7()
      if (pin !== undefined) {
        if (row !== undefined) await this.#materials.removeOwned(tx, { key: id })
        await this.#materials.insert(tx, pin, { mount: '', key: id, version: 1 })
      }
      const renewed = pin === undefined ? {} : { pin: pin.fields.id ?? '', pinRefused: false }
      const changes = { ...settings, ...renewed, updatedAt: now }
      if (row !== undefined) await this.#table.update(tx, row, changes)
      else await this.#table.insert(tx, { pin: '', pinRefused: false, ...changes, id, name, createdAt: now })
      tx.touch(managedKeysTable.name, id)
      return true
    })
  }

  /** Remembers that the token refused this PIN, for every worker of every node. */
  async refused({ row: { id, pin } }: Entry): Promise<void> {
    await this.#database.transaction(async (tx) => {
      const row = await this.#table.get(tx, id)
      if (row?.pin !== pin || row.pinRefused) return
      await this.#table.update(tx, row, { pinRefused: true })
      tx.touch(managedKeysTable.name, id)
    })
  }

  /**
   * A missing one counts as removed. The key stays in its token.
   * @param check refuses by throwing; while it reads nothing that uses the key can be stored
   */
  async remove(name: string, check: (tx: Transaction, id: string) => Promise<void>): Promise<void> {
    await this.#database.transaction(async (tx) => {
      // Under a name of its own: a second removal does not know the id of the row, and must wait as the first does.
      tx.touch(managedKeysTable.name, `removed ${name}`)
      const row = await this.#table.lock(tx, { name })
      if (row === undefined) return
      await check(tx, row.id)
      await this.#materials.removeOwned(tx, { key: row.id })
      await this.#table.remove(tx, row)
      tx.touch(managedKeysTable.name, row.id)
    })
  }
}
