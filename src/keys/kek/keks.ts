import { ApiError } from '../../errors.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { LiveHandle } from '../../hsm/livehandle.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { MaybePromise } from '../../route.ts'
import type { CoherentCache } from '../../store/coherence/cache.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import { type KekPurpose, type KekRow, keksTable } from '../tables.ts'
import { findKek, kekCheckValue, proveKek, proveStrict } from './kek.ts'

/** Of KEKs; each has one that is active. */
const purposes = 4

/** The token does not hold the KEK: it was destroyed or lost with its token, or this node's token never had it. */
export class KekAbsent extends ApiError {
  constructor(text: string) {
    super(400, text)
  }
}

/** What must be known of a KEK to use it. */
export type KekFacts = Pick<KekRow, 'id' | 'purpose' | 'checkValue' | 'ckaId'>

/** One KEK as its row describes it and the token holds it. Nothing of it is used before the token proved it is that key. */
export class Kek {
  readonly row: KekFacts
  readonly #hsm: Hsm
  readonly #handle: LiveHandle

  constructor(hsm: Hsm, row: KekFacts, strict: boolean) {
    this.row = row
    this.#hsm = hsm
    this.#handle = new LiveHandle(hsm, () => locateKek(hsm, row, strict), false)
  }

  wrap(key: Handle): MaybePromise<Buffer> {
    return this.#handle.use((kek) => this.#hsm.wrap(kek, this.#hsm.capabilities.kwp, key))
  }

  /**
   * A session object out of a blob. Every blob is RFC 5649, whatever number the token that made it gave the mechanism
   * (stored with the blob); the number used is this token's own.
   * @throws HsmRefusal when the blob is not of this KEK
   */
  unwrap(blob: Uint8Array, template: KeyTemplate): MaybePromise<Handle> {
    return this.#handle.use((kek) => this.#hsm.unwrap(kek, this.#hsm.capabilities.kwp, blob, template))
  }

  /** Finds the KEK in the token and compares its check value. @throws Error saying what is wrong */
  async prove(): Promise<void> {
    await this.#handle.use(() => undefined)
  }
}

async function locateKek(hsm: Hsm, row: KekFacts, strict: boolean): Promise<Handle> {
  const purpose = row.purpose as KekPurpose
  const handle = await findKek(hsm, row.ckaId)
  if (handle === undefined)
    throw new KekAbsent(
      `the ${purpose} KEK ${row.id} is not in the token ${hsm.token.label}; strongroom kek adopt brings it from its components`,
    )
  await proveKek(hsm, handle, purpose)
  if (!(await kekCheckValue(hsm, handle)).equals(row.checkValue)) {
    throw new Error(`the ${purpose} KEK ${row.id} in the token ${hsm.token.label} has another check value`)
  }
  if (strict && purpose === 'use') await proveStrict(hsm, handle)
  return handle
}

/** The KEKs this process has met. A row is read once: only its state ever changes, and that is asked where it matters. */
export class Keks {
  readonly #hsm: Hsm
  readonly #database: Database
  readonly #strict: boolean
  readonly #known = new Map<string, Kek>()
  readonly #active: CoherentCache<Kek>
  /** The states that transactions have read. */
  readonly #states = new WeakMap<Transaction, Map<string, Promise<KekRow | undefined>>>()

  constructor(hsm: Hsm, database: Database, strict: boolean) {
    this.#hsm = hsm
    this.#database = database
    this.#strict = strict
    this.#active = database.cache({
      table: keksTable.name,
      limit: purposes,
      load: async (q, purpose) => {
        const row = await database.table(keksTable).find(q, { purpose, state: 'active' })
        return row && this.of(row)
      },
    })
  }

  /** The KEK a blob names. @throws Error when there is none of that id */
  get(id: string): MaybePromise<Kek> {
    return this.#known.get(id) ?? this.#read(id)
  }

  /** The KEK that wraps what is new, never older than the last change of hands that was answered. */
  async active(purpose: KekPurpose): Promise<Kek> {
    const kek = await this.#active.get(purpose)
    if (kek === undefined) throw new Error(`there is no active ${purpose} KEK`)
    return kek
  }

  /** Another KEK of this purpose is active when the transaction commits. */
  touchActive(tx: Transaction, purpose: string): void {
    tx.touch(keksTable.name, purpose)
  }

  /** Whether blobs under a KEK may still be stored, as a transaction sees its row. */
  async mayStore(tx: Transaction, id: string): Promise<boolean> {
    const states = this.#states.get(tx) ?? new Map<string, Promise<KekRow | undefined>>()
    this.#states.set(tx, states)
    const reading = states.get(id) ?? this.#database.table(keksTable).get(tx, id)
    states.set(id, reading)
    const row = await reading
    return row?.state === 'active' || row?.state === 'retiring'
  }

  /** The KEK of a verified row. */
  of(row: KekRow): Kek {
    const known = this.#known.get(row.id)
    // An announced KEK gets its check value later; one without says nothing yet.
    if (known?.row.checkValue.equals(row.checkValue)) return known
    const kek = new Kek(this.#hsm, row, this.#strict)
    this.#known.set(row.id, kek)
    return kek
  }

  async #read(id: string): Promise<Kek> {
    const row = await this.#database.read((q) => this.#database.table(keksTable).get(q, id))
    if (row === undefined) throw new Error(`there is no KEK ${id}`)
    return this.of(row)
  }
}
