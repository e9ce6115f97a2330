import { badRequest, unavailable } from '../../errors.ts'
import type { Job } from '../../job.ts'
import type { Transaction } from '../../store/reader.ts'
import type { SealedAccess } from '../../store/sealed/access.ts'
import type { Algorithm } from '../algorithms/algorithm.ts'
import { objectId } from '../kek/identity.ts'
import { type IntentRow, intentsTable, type MaterialRow, materialsTable, type Part } from '../tables.ts'
import { Births } from './births.ts'
import type { IncomingKey } from './incomingkey.ts'
import { type Made, makeResident, residentTemplate } from './making.ts'
import { ResidentSweep, type ResidentsOptions } from './sweep.ts'

/** The count that is held while a new key is counted; nothing is ever added to it. */
const making = 'residents'

/**
 * Keys that stay in the token as persistent objects. An intent is committed and a birth marked in the token before the
 * object is made; the mark is removed when the key is stored. A row of state `removed` outlives the key's own. The
 * sweep destroys an object with a tombstone, or with a mark and no row, so that a crash leaves nothing behind and rows
 * alone destroy nothing.
 */
export class Residents {
  /** To be run by the worker that holds its lease; each token has its own sweep. */
  readonly job: Job
  readonly #options: ResidentsOptions
  readonly #births: Births
  readonly #intents: SealedAccess<typeof intentsTable>
  readonly #materials: SealedAccess<typeof materialsTable>
  readonly #dying = new WeakMap<Transaction, string[]>()

  constructor(options: ResidentsOptions) {
    const { hsm, database, cluster } = options
    this.#options = options
    this.#births = new Births(hsm, cluster)
    this.#intents = database.table(intentsTable)
    this.#materials = database.table(materialsTable)
    const sweep = new ResidentSweep({ ...options, births: this.#births })
    this.job = sweep.job
    this.sweep = (fence) => sweep.run(fence)
    this.abandon = (intent) => sweep.abandon(intent)
  }

  /**
   * Destroys the objects of removed keys and of keys that were never stored; a job's work. @returns how many rows it
   * settled
   */
  readonly sweep: (fence?: bigint) => Promise<number>

  /**
   * Destroys the object of a key that was made and will not be stored, which would count against the limit until a
   * sweep. A key that was stored after all stays. Never rejects: a sweep repeats it if it fails.
   * @param intent id of its row
   */
  readonly abandon: (intent: string) => Promise<void>

  /**
   * @param material the uuid that the key's row will have @param part the row's
   * @param given the key, where it was made elsewhere
   * @throws ApiError 400 when the token already holds as many keys as configured
   */
  async make(
    algorithm: Algorithm,
    { material, part, given }: { material: string; part: Part; given: IncomingKey | undefined },
  ): Promise<{ made: Made; intent: { id: string; ckaId: Buffer } }> {
    if (algorithm.class === 'secret') throw new Error('secret keys are never token objects')
    const { hsm, database, cluster, limit } = this.#options
    const ckaId = objectId(cluster, material)
    const intent = await database.transaction(async (tx) => {
      // Two that count at once, on one node or two, would both find the last place free.
      await tx.holdTally(making)
      if ((await this.#held(tx)) >= limit) {
        throw badRequest(`the HSM already holds ${limit} keys that live there alone, the most that are allowed`)
      }
      return this.#insert(tx, 'intent', { material, ckaId, algorithm: algorithm.name, tokenSerial: hsm.token.serial })
    })
    try {
      await this.#births.begin(material)
      const made = given
        ? await given.reside(hsm, residentTemplate(algorithm, ckaId, part))
        : await makeResident(hsm, algorithm, ckaId, part)
      return { made, intent: { id: intent.id, ckaId } }
    } catch (error) {
      await this.abandon(intent.id)
      throw error
    }
  }

  /**
   * Keys in this token, made, being made or being removed, and those of older rows, which do not say where they are.
   */
  async #held(tx: Transaction): Promise<number> {
    const stored = { residence: 'token' }
    const here = { tokenSerial: this.#options.hsm.token.serial }
    const anywhere = { tokenSerial: null }
    const counts = await Promise.all([
      this.#materials.count(tx, { ...stored, ...here }),
      this.#materials.count(tx, { ...stored, ...anywhere }),
      this.#intents.count(tx, here),
      this.#intents.count(tx, anywhere),
    ])
    // Managed keys have no object here.
    const managed = await this.#materials.count(tx, { ...stored, ...anywhere, ckaId: null })
    return counts.reduce((sum, count) => sum + count, -managed)
  }

  /**
   * The key is being stored: fulfils its intent in the transaction; its mark is removed before that is acknowledged.
   */
  async settle(tx: Transaction, intent: string): Promise<void> {
    const row = await this.#intents.get(tx, intent)
    if (row?.state !== 'intent') throw unavailable('the key took too long to be stored and was taken away')
    await this.#intents.remove(tx, row)
    tx.onCommit(() => this.#births.end(row.material))
  }

  /**
   * The key's row is being removed: records the work left in the token in the same transaction, and tells the token
   * before the deletion is acknowledged.
   */
  async condemn(tx: Transaction, { id, ckaId, algorithm, tokenSerial }: MaterialRow): Promise<void> {
    if (ckaId === null) throw new Error(`material ${id} has no token object`)
    await this.#insert(tx, 'removed', { material: id, ckaId, algorithm, tokenSerial })
    if (tokenSerial !== this.#options.hsm.token.serial) return
    const dying = this.#dying.get(tx)
    if (dying !== undefined) return void dying.push(id)
    const ids = [id]
    this.#dying.set(tx, ids)
    tx.onCommit(() => this.#options.tombstones.add(ids))
  }

  #insert(tx: Transaction, state: 'intent' | 'removed', object: ResidentObject): Promise<IntentRow> {
    return this.#intents.insert(tx, { ...object, state, createdAt: this.#options.clock.wall() })
  }
}

type ResidentObject = Pick<IntentRow, 'material' | 'ckaId' | 'algorithm' | 'tokenSerial'>
