import type { Clock } from '../../clock.ts'
import type { Job } from '../../engine.ts'
import { badRequest, unavailable } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import type { SealedAccess } from '../../store/sealed/access.ts'
import { atMost } from '../../store/table.ts'
import type { Algorithm } from '../algorithms/algorithm.ts'
import { objectId } from '../kek/identity.ts'
import { type IntentRow, intentsTable, type MaterialRow, materialsTable, type Part } from '../tables.ts'
import type { IncomingKey } from './incomingkey.ts'
import { type Made, makeResident, residentTemplate } from './making.ts'

/** How long a key may be between its making and its transaction before it counts as left behind. */
const orphanMilliseconds = 3_600_000
/** Objects of each kind that one sweep destroys at most. */
const sweptAtOnce = 200

/**
 * Keys that stay in the token as persistent objects. An intent is committed before the object is made, and one of state
 * `removed` outlives the key's own row: a job destroys the objects of both, so that a crash leaves none behind.
 */
export class Residents {
  /** To be run by whoever holds its lease. */
  readonly job: Job = {
    name: 'resident-sweep',
    everySeconds: 600,
    run: async (_, fence) => void (await this.sweep(fence)),
  }
  readonly #hsm: Hsm
  readonly #database: Database
  readonly #intents: SealedAccess<typeof intentsTable>
  readonly #materials: SealedAccess<typeof materialsTable>
  readonly #clock: Clock
  readonly #cluster: string
  readonly #limit: number

  constructor(options: { hsm: Hsm; database: Database; clock: Clock; cluster: string; limit: number }) {
    this.#hsm = options.hsm
    this.#database = options.database
    this.#intents = options.database.table(intentsTable)
    this.#materials = options.database.table(materialsTable)
    this.#clock = options.clock
    this.#cluster = options.cluster
    this.#limit = options.limit
  }

  /**
   * @param material the uuid that the key's row will have @param part what it will be
   * @param given the key, where it was made elsewhere
   * @throws ApiError 400 when the token already holds as many keys as configured
   */
  async make(
    algorithm: Algorithm,
    { material, part, given }: { material: string; part: Part; given: IncomingKey | undefined },
  ): Promise<{ made: Made; intent: { id: string; ckaId: Buffer } }> {
    if (algorithm.class === 'secret') throw new Error('secret keys are never token objects')
    const ckaId = objectId(this.#cluster, material)
    const intent = await this.#database.transaction(async (tx) => {
      const stored = await this.#materials.count(tx, { residence: 'token' })
      if (stored + (await this.#intents.count(tx, {})) >= this.#limit) {
        throw badRequest(`the HSM already holds ${this.#limit} keys that live there alone, as many as configured`)
      }
      return this.#insert(tx, 'intent', { material, ckaId, algorithm: algorithm.name })
    })
    try {
      const made = given
        ? await given.reside(this.#hsm, residentTemplate(algorithm, ckaId, part))
        : await makeResident(this.#hsm, algorithm, ckaId, part)
      return { made, intent: { id: intent.id, ckaId } }
    } catch (error) {
      await this.abandon(intent.id)
      throw error
    }
  }

  /** The key is being stored: its intent is fulfilled in the same transaction. */
  async settle(tx: Transaction, intent: string): Promise<void> {
    const row = await this.#intents.get(tx, intent)
    if (row?.state !== 'intent') throw unavailable('the key took too long to be stored and was taken away')
    await this.#intents.remove(tx, row)
  }

  /** The key's row is being removed: what remains to be done in the token is written down in the same transaction. */
  async condemn(tx: Transaction, { id, ckaId, algorithm }: MaterialRow): Promise<void> {
    if (ckaId === null) throw new Error(`material ${id} has no token object`)
    await this.#insert(tx, 'removed', { material: id, ckaId, algorithm })
  }

  /** Destroys the objects of removed keys and of keys that were never stored; a job's work. @returns how many */
  async sweep(fence?: bigint): Promise<number> {
    const before = this.#clock.wall() - orphanMilliseconds
    const page = { by: ['createdAt', 'id'], limit: sweptAtOnce } as const
    await this.#adopt(before, fence)
    const { removed, stale } = await this.#database.read(async (q) => ({
      removed: await this.#intents.list(q, { state: 'removed' }, page),
      stale: await this.#intents.list(q, { state: 'intent', createdAt: atMost(before) }, page),
    }))
    const condemned = await Promise.all(stale.map((row) => this.#giveUp(row.id, fence)))
    const rows = [...removed, ...condemned.filter((row) => row !== undefined)]
    for (const row of rows) await this.#finish(row, fence)
    return rows.length
  }

  /** Takes over the markers of programs before migration 8, which keep them among the materials and may serve beside this. */
  async #adopt(before: number, fence: bigint | undefined): Promise<void> {
    for (const state of ['removed', 'intent']) {
      const where = { residence: 'token', state, createdAt: atMost(before) }
      const markers = await this.#database.read((q) => this.#materials.list(q, where, { by: 'id', limit: sweptAtOnce }))
      for (const { id } of markers) {
        await this.#database.transaction(async (tx) => {
          if (fence !== undefined) await tx.fence(this.job.name, fence)
          const row = await this.#materials.get(tx, id)
          if (row?.state !== state || row.ckaId === null) return
          await this.#materials.remove(tx, row)
          await this.#insert(tx, 'removed', { material: row.owner, ckaId: row.ckaId, algorithm: row.algorithm })
        })
      }
    }
  }

  /**
   * Destroys the object of a key that was made and is not going to be stored, which would count against the limit until a
   * sweep. A key that was stored after all stays. Never rejects: what cannot be done now a sweep does.
   * @param intent id of its row
   */
  async abandon(intent: string): Promise<void> {
    try {
      const row = await this.#giveUp(intent, undefined)
      if (row) await this.#finish(row, undefined)
    } catch {
      // The token, or the database, has gone meanwhile; that is told where either is needed.
    }
  }

  async #finish(row: IntentRow, fence: bigint | undefined): Promise<void> {
    if (!(await this.#stored(row.material))) await this.#destroy(row.ckaId)
    await this.#database.transaction(async (tx) => {
      if (fence !== undefined) await tx.fence(this.job.name, fence)
      await this.#intents.discard(tx, { id: row.id, state: 'removed' })
    })
  }

  /** Then no word of ours has the key destroyed: the intent is an old one that somebody has put back. */
  async #stored(material: string): Promise<boolean> {
    return (await this.#database.read((q) => this.#materials.get(q, material))) !== undefined
  }

  async #destroy(ckaId: Buffer): Promise<void> {
    for (const object of await this.#hsm.find({ class: 'private', id: ckaId, token: true })) {
      await this.#hsm.destroy(object)
    }
  }

  /** Undefined when the key was stored meanwhile. */
  #giveUp(id: string, fence: bigint | undefined): Promise<IntentRow | undefined> {
    return this.#database.transaction(async (tx) => {
      if (fence !== undefined) await tx.fence(this.job.name, fence)
      const row = await this.#intents.get(tx, id)
      return row?.state === 'intent' ? this.#intents.update(tx, row, { state: 'removed' }) : undefined
    })
  }

  #insert(
    tx: Transaction,
    state: 'intent' | 'removed',
    object: Pick<IntentRow, 'material' | 'ckaId' | 'algorithm'>,
  ): Promise<IntentRow> {
    return this.#intents.insert(tx, { ...object, state, createdAt: this.#clock.wall() })
  }
}
