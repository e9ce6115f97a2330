import type { Clock } from '../../clock.ts'
import type { Job } from '../../engine.ts'
import { badRequest, unavailable } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import type { Algorithm } from '../algorithms/algorithm.ts'
import { objectId } from '../kek/identity.ts'
import { type MaterialRow, materialsTable } from '../tables.ts'
import type { IncomingKey } from './incomingkey.ts'
import { type Made, makeResident, residentTemplate } from './making.ts'

/** How long a key may be between its making and its transaction before it counts as left behind. */
const orphanMilliseconds = 3_600_000

/**
 * Keys that stay in the token as persistent objects. A row of state `intent` is committed before the object is made, and one of
 * state `removed` outlives the key's own row: a job destroys the objects of both, so that a crash leaves none behind.
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
  readonly #clock: Clock
  readonly #cluster: string
  readonly #limit: number

  constructor(options: { hsm: Hsm; database: Database; clock: Clock; cluster: string; limit: number }) {
    this.#hsm = options.hsm
    this.#database = options.database
    this.#clock = options.clock
    this.#cluster = options.cluster
    this.#limit = options.limit
  }

  /**
   * @param material the uuid that the key's row will have @param given the key, where it was made elsewhere
   * @throws ApiError 400 when the token already holds as many keys as configured
   */
  async make(
    algorithm: Algorithm,
    material: string,
    given?: IncomingKey,
  ): Promise<{ made: Made; intent: { id: string; ckaId: Buffer } }> {
    if (algorithm.class === 'secret') throw new Error('secret keys are never token objects')
    const ckaId = objectId(this.#cluster, material)
    const materials = this.#database.table(materialsTable)
    const intent = await this.#database.transaction(async (tx) => {
      if ((await materials.count(tx, { residence: 'token' })) >= this.#limit) {
        throw badRequest(
          `the HSM cannot wrap ${algorithm.name} keys, and holds ${this.#limit} of them, as many as configured`,
        )
      }
      return materials.insert(tx, marker('intent', material, ckaId, algorithm.name, this.#clock.wall()))
    })
    try {
      const made = given
        ? await given.reside(this.#hsm, residentTemplate(algorithm, ckaId))
        : await makeResident(this.#hsm, algorithm, ckaId)
      return { made, intent: { id: intent.id, ckaId } }
    } catch (error) {
      await this.abandon(intent.id)
      throw error
    }
  }

  /** The key is being stored: its intent is fulfilled in the same transaction. */
  async settle(tx: Transaction, intent: string): Promise<void> {
    const materials = this.#database.table(materialsTable)
    const row = await materials.get(tx, intent)
    if (row?.state !== 'intent') throw unavailable('the key took too long to be stored and was taken away')
    await materials.remove(tx, row)
  }

  /** The key's row is being removed: what remains to be done in the token is written down in the same transaction. */
  async condemn(tx: Transaction, row: MaterialRow): Promise<void> {
    if (row.ckaId === null) throw new Error(`material ${row.id} has no token object`)
    await this.#database
      .table(materialsTable)
      .insert(tx, marker('removed', row.id, row.ckaId, row.algorithm, this.#clock.wall()))
  }

  /** Destroys the objects of removed keys and of keys that were never stored; a job's work. @returns how many */
  async sweep(fence?: bigint): Promise<number> {
    const materials = this.#database.table(materialsTable)
    const page = { by: 'id', limit: 200 } as const
    const { removed, stale } = await this.#database.read(async (q) => ({
      removed: await materials.list(q, { state: 'removed' }, page),
      stale: await materials.list(q, { state: 'intent' }, page),
    }))
    const before = this.#clock.wall() - orphanMilliseconds
    const condemned = await Promise.all(
      stale.filter((row) => row.createdAt < before).map((row) => this.#giveUp(row.id, fence)),
    )
    const rows = [...removed, ...condemned.filter((row) => row !== undefined)]
    for (const row of rows) await this.#finish(row, fence)
    return rows.length
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

  async #finish(row: MaterialRow, fence: bigint | undefined): Promise<void> {
    if (!(await this.#stored(row.owner))) await this.#destroy(row.ckaId)
    await this.#database.transaction(async (tx) => {
      if (fence !== undefined) await tx.fence(this.job.name, fence)
      await this.#database.table(materialsTable).removeWhere(tx, { id: row.id, state: 'removed' })
    })
  }

  /** Then no word of ours has the key destroyed: the marker is an old one that somebody has put back. */
  async #stored(material: string): Promise<boolean> {
    const row = await this.#database.read((q) => this.#database.table(materialsTable).get(q, material))
    return row !== undefined
  }

  async #destroy(ckaId: Buffer | null): Promise<void> {
    if (ckaId === null) return
    for (const object of await this.#hsm.find({ class: 'private', id: ckaId, token: true })) {
      await this.#hsm.destroy(object)
    }
  }

  /** Undefined when the key was stored meanwhile. */
  #giveUp(id: string, fence: bigint | undefined): Promise<MaterialRow | undefined> {
    const materials = this.#database.table(materialsTable)
    return this.#database.transaction(async (tx) => {
      if (fence !== undefined) await tx.fence(this.job.name, fence)
      const row = await materials.get(tx, id)
      return row?.state === 'intent' ? materials.update(tx, row, { state: 'removed' }) : undefined
    })
  }
}

/** A row that only remembers the token object of a material that will be there, or was. */
function marker(state: 'intent' | 'removed', material: string, ckaId: Buffer, algorithm: string, createdAt: number) {
  const unknown = { local: false, neverExtractable: false, alwaysSensitive: false, everPlaintext: false }
  return {
    owner: material,
    version: 0,
    part: 'key',
    algorithm,
    sizeBytes: 0,
    residence: 'token',
    ckaId,
    exportable: false,
    ...unknown,
    origin: 'generated',
    createdAt,
    createdBy: '',
    state,
  }
}
