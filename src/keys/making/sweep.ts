import type { Clock } from '../../clock.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Job } from '../../job.ts'
import type { Logger } from '../../log.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import type { SealedAccess } from '../../store/sealed/access.ts'
import { atMost, type Where } from '../../store/table.ts'
import { objectId } from '../kek/identity.ts'
import { type IntentRow, intentsTable, materialsTable } from '../tables.ts'
import type { Births } from './births.ts'

/** How long a key may stay unstored after its making before it counts as left behind. */
const orphanMilliseconds = 3_600_000
/** Rows of each kind that one sweep settles at most. */
const sweptAtOnce = 200

/**
 * The token's own memory of deleted keys, in its anchor, without which none is destroyed. Editing rows makes no
 * tombstone, and putting rows back removes none.
 */
export interface Tombstones {
  /** Keys that have one, by uuid. */
  list(): Promise<readonly string[]>
  add(keys: readonly string[]): Promise<void>
  /** Nothing is left of these keys. */
  remove(keys: readonly string[]): Promise<void>
}

export interface ResidentsOptions {
  readonly hsm: Hsm
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly cluster: string
  /** Objects at most. */
  readonly limit: number
  readonly tombstones: Tombstones
}

/**
 * Destroys the objects in one token of keys that were deleted, or made and never stored. Rows only suggest the work;
 * the token's own memory decides whether to destroy an object, since rows may have been edited.
 */
export class ResidentSweep {
  readonly job: Job
  readonly #options: ResidentsOptions & { readonly births: Births }
  readonly #intents: SealedAccess<typeof intentsTable>
  readonly #materials: SealedAccess<typeof materialsTable>

  constructor(options: ResidentsOptions & { readonly births: Births }) {
    this.#options = options
    this.#intents = options.database.table(intentsTable)
    this.#materials = options.database.table(materialsTable)
    this.job = {
      name: `resident-sweep ${options.hsm.token.serial}`,
      everySeconds: 600,
      run: async (_, fence) => void (await this.run(fence)),
    }
  }

  async run(fence?: bigint): Promise<number> {
    const before = this.#options.clock.wall() - orphanMilliseconds
    await this.#adopt(before, fence)
    const removed = await this.#list({ state: 'removed' })
    await this.#removed(removed, fence)
    const stale = await this.#list({ state: 'intent', createdAt: atMost(before) })
    await Promise.all(stale.map(({ id }) => this.#giveUp(id, fence)))
    const abandoned = await this.#list({ state: 'abandoned' })
    for (const row of abandoned) await this.#finish(row, fence)
    await this.#endBirths()
    return removed.length + abandoned.length
  }

  async abandon(intent: string): Promise<void> {
    try {
      const row = await this.#giveUp(intent, undefined)
      if (row) await this.#finish(row, undefined)
    } catch {
      // The token or the database is unavailable, which is reported where either is needed.
    }
  }

  /** Rows of objects in this token, and those that do not say where. */
  async #list(where: Where<typeof intentsTable>): Promise<IntentRow[]> {
    const { database, hsm } = this.#options
    const page = { by: ['createdAt', 'id'], limit: sweptAtOnce } as const
    return database.read(async (q) => [
      ...(await this.#intents.list(q, { ...where, tokenSerial: hsm.token.serial }, page)),
      ...(await this.#intents.list(q, { ...where, tokenSerial: null }, page)),
    ])
  }

  /** Keys that were deleted: each gets its tombstone, unless it has one, and is then destroyed. */
  async #removed(rows: readonly IntentRow[], fence: bigint | undefined): Promise<void> {
    const { hsm, cluster, tombstones } = this.#options
    const dead = new Set(await tombstones.list())
    const found: string[] = []
    for (const row of rows) {
      if (dead.has(row.material)) continue
      // The key is stored too, so one of the two rows was put back. In doubt nothing is destroyed.
      if (await this.#stored(row.material)) await this.#settle(row, fence)
      else found.push(row.material)
    }
    if (found.length > 0) await tombstones.add(found)
    const gone = [...dead, ...found]
    for (const material of gone) {
      for (const object of await hsm.find({ class: 'private', id: objectId(cluster, material), token: true }))
        await hsm.destroy(object)
    }
    for (const row of rows) if (gone.includes(row.material)) await this.#settle(row, fence)
    if (gone.length > 0) await tombstones.remove(gone)
  }

  /** A key that was never stored: its object is destroyed if the token still has its mark. */
  async #finish(row: IntentRow, fence: bigint | undefined): Promise<void> {
    const { hsm, births, log } = this.#options
    const objects = await hsm.find({ class: 'private', id: row.ckaId, token: true })
    if (!(await this.#stored(row.material))) {
      if (await births.has(row.material)) {
        for (const object of objects) await hsm.destroy(object)
        await births.end(row.material)
      } else if (objects.length > 0) {
        log.error(
          { key: row.material },
          'a row says that a key was never stored, the HSM that it was: it stays in the HSM',
        )
      }
    }
    await this.#settle(row, fence)
  }

  /** Marks of keys that were stored by a worker that ended at that moment. */
  async #endBirths(): Promise<void> {
    const { births } = this.#options
    for (const material of await births.list()) if (await this.#stored(material)) await births.end(material)
  }

  async #stored(material: string): Promise<boolean> {
    return (await this.#options.database.read((q) => this.#materials.get(q, material))) !== undefined
  }

  #settle({ id }: IntentRow, fence: bigint | undefined): Promise<void> {
    return this.#fenced(fence, (tx) => this.#intents.discard(tx, { id }))
  }

  /** Undefined when the key was stored meanwhile. */
  #giveUp(id: string, fence: bigint | undefined): Promise<IntentRow | undefined> {
    return this.#fenced(fence, async (tx) => {
      const row = await this.#intents.get(tx, id)
      return row?.state === 'intent' ? this.#intents.update(tx, row, { state: 'abandoned' }) : undefined
    })
  }

  /** Takes over the markers of programs before migration 8, which kept them among the materials. */
  async #adopt(before: number, fence: bigint | undefined): Promise<void> {
    for (const [state, next] of [
      ['removed', 'removed'],
      ['intent', 'abandoned'],
    ] as const) {
      const where = { residence: 'token', state, createdAt: atMost(before) }
      const { database, clock } = this.#options
      const markers = await database.read((q) => this.#materials.list(q, where, { by: 'id', limit: sweptAtOnce }))
      for (const { id } of markers) {
        await this.#fenced(fence, async (tx) => {
          const row = await this.#materials.get(tx, id)
          if (row?.state !== state || row.ckaId === null) return
          await this.#materials.remove(tx, row)
          const { owner: material, ckaId, algorithm } = row
          await this.#intents.insert(tx, { material, ckaId, algorithm, state: next, createdAt: clock.wall() })
        })
      }
    }
  }

  #fenced<T>(fence: bigint | undefined, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#options.database.transaction(async (tx) => {
      if (fence !== undefined) await tx.fence(this.job.name, fence)
      return work(tx)
    })
  }
}
