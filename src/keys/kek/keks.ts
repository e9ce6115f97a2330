import { ApiError, unavailable } from '../../errors.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { LiveHandle } from '../../hsm/livehandle.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { Logger } from '../../log.ts'
import type { MaybePromise } from '../../route.ts'
import type { CoherentCache } from '../../store/coherence/cache.ts'
import type { Database } from '../../store/database.ts'
import type { Reader, Transaction } from '../../store/reader.ts'
import { type KekPurpose, type KekRow, keksTable } from '../tables.ts'
import { clusterOf } from './identity.ts'
import { findKek, kekCheckValue, objectsByCluster, proveKek, proveStrict } from './kek.ts'
import { type KekReading, KekSet, kekSet } from './kekset.ts'

/** The token does not hold the KEK: it was destroyed or lost with its token, or this node's token never had it. */
export class KekAbsent extends ApiError {
  constructor(text: string) {
    super(400, text)
  }
}

/** The columns needed to use a KEK. */
export type KekFacts = Pick<KekRow, 'id' | 'purpose' | 'checkValue' | 'ckaId'>

type Lacks = (guards: readonly string[]) => void

/** One KEK as its row describes it and the token holds it. It is not used before the token has proved its identity. */
export class Kek {
  readonly row: KekFacts
  readonly #hsm: Hsm
  readonly #handle: LiveHandle
  /** Whether the token has shown it to this process. */
  #seen = false

  /**
   * @param lacks of a KEK in use: told the later guards of strict mode that it lacks; a pending one must have them all
   */
  constructor(hsm: Hsm, row: KekFacts, strict: boolean, lacks?: Lacks) {
    this.row = row
    this.#hsm = hsm
    this.#handle = new LiveHandle(hsm, () => this.#locate(strict, lacks), false)
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

  async #locate(strict: boolean, lacks?: Lacks): Promise<Handle> {
    const handle = await locateKek(this.#hsm, this.row, strict, lacks).catch(async (error: unknown) => {
      if (!(error instanceof KekAbsent && this.#seen) || (await hasKeks(this.#hsm, this.row))) throw error
      throw this.#hsm.vanished('the token shows none of the KEKs that it held')
    })
    this.#seen = true
    return handle
  }
}

/** Whether the token shows any object of the same cluster. */
async function hasKeks(hsm: Hsm, { ckaId }: KekFacts): Promise<boolean> {
  const cluster = clusterOf(ckaId)
  return cluster !== undefined && (await objectsByCluster(hsm)).has(cluster)
}

async function locateKek(hsm: Hsm, row: KekFacts, strict: boolean, lacks?: Lacks): Promise<Handle> {
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
  if (strict && purpose === 'use') {
    const lacking = await proveStrict(hsm, handle, lacks !== undefined)
    if (lacking.length > 0) lacks?.(lacking)
  }
  return handle
}

/** The KEKs this process has met. A row is read once: after the KEK is made, only its state changes (see `list`). */
export class Keks {
  readonly #hsm: Hsm
  readonly #database: Database
  readonly #strict: boolean
  readonly #log: Logger | undefined
  readonly #known = new Map<string, Kek>()
  readonly #set: KekSet
  /** One entry: the whole set. */
  readonly #reading: CoherentCache<KekReading>
  /** Readings by transactions. */
  readonly #readings = new WeakMap<Transaction, Promise<KekReading>>()

  constructor(hsm: Hsm, database: Database, strict: boolean, set: KekSet = new KekSet(database), log?: Logger) {
    this.#hsm = hsm
    this.#database = database
    this.#strict = strict
    this.#set = set
    this.#log = log
    // Should the token remember more than this snapshot shows, `current` reads again.
    const load = async (q: Reader) => (await Promise.all([set.read(q), set.learn()]))[0]
    this.#reading = database.cache({ table: keksTable.name, limit: 1, load })
  }

  /** The KEK a blob names. @throws Error when there is none of that id */
  get(id: string): MaybePromise<Kek> {
    return this.#known.get(id) ?? this.#read(id)
  }

  /**
   * The KEK that wraps new keys, never older than the last acknowledged change.
   * @throws DamagedRow when the KEKs do not match their head, or the database has gone back behind a change that was
   * seen
   */
  async active(purpose: KekPurpose): Promise<Kek> {
    const row = (await this.list()).find((kek) => kek.purpose === purpose && kek.state === 'active')
    if (row === undefined) throw new Error(`there is no active ${purpose} KEK`)
    return this.of(row)
  }

  /** Every KEK, as `active` sees them; no statement while none has changed. @throws DamagedRow as `active` */
  async list(): Promise<readonly KekRow[]> {
    const cached = await this.#reading.get(kekSet)
    // The cache may lag by a change until that is acknowledged. A database that went back stays back.
    return (cached && cached.change >= this.#set.seen ? cached : await this.#set.current()).rows
  }

  /**
   * Whether blobs under a KEK may still be stored, as a transaction sees the set.
   * @throws DamagedRow when it does not match its head; ApiError 503 when a later change was seen before it was read
   */
  async mayStore(tx: Transaction, id: string): Promise<boolean> {
    const reading = this.#readings.get(tx) ?? this.#readAs(tx)
    this.#readings.set(tx, reading)
    const state = (await reading).rows.find((kek) => kek.id === id)?.state
    return state === 'active' || state === 'retiring'
  }

  /** The KEK of a verified row. */
  of(row: KekRow): Kek {
    const known = this.#known.get(row.id)
    // An announced KEK gets its check value later, which replaces the one known without it.
    if (known?.row.checkValue.equals(row.checkValue)) return known
    const lacks = (guards: readonly string[]): void =>
      this.#log?.warn(
        { kek: row.id, guards },
        'strict mode: the use KEK lacks guards; strongroom kek rotate replaces it',
      )
    const kek = new Kek(this.#hsm, row, this.#strict, row.state === 'pending' ? undefined : lacks)
    this.#known.set(row.id, kek)
    return kek
  }

  /** No statement while the set is cached. */
  async #readAs(tx: Transaction): Promise<KekReading> {
    // A later change does no harm: it waits for such transactions before it destroys a KEK.
    const least = this.#set.seen
    const cached = this.#reading.peek(kekSet)
    if (cached && cached.change >= least) return cached
    const reading = await this.#set.read(tx)
    if (reading.change < least) throw unavailable('the KEKs have changed meanwhile')
    return reading
  }

  /** Reads the KEK that a blob names, in whatever state. */
  async #read(id: string): Promise<Kek> {
    const row = await this.#database.read((q) => this.#database.table(keksTable).get(q, id))
    if (row === undefined) throw new Error(`there is no KEK ${id}`)
    return this.of(row)
  }
}
