import type { Hsm } from '../../hsm/hsm.ts'
import type { Database } from '../../store/database.ts'
import type { Reader, Transaction } from '../../store/reader.ts'
import { headsTable } from '../../store/sealed/heads.ts'
import { kekSet } from '../kek/kekset.ts'
import { type ClusterRow, clusterTable, type KekRow } from '../tables.ts'
import { type Anchor, behind, readAnchor, readHeads, writeAnchor } from './anchor.ts'
import { shownRowKey } from './rowkey.ts'

export interface ClusterOptions {
  readonly hsm: Hsm
  readonly database: Database
  /** Hexadecimal check value of the key that seals rows. */
  readonly rowKey: string
  /** Every KEK there is or was, verified as a set. */
  keks(): Promise<readonly KekRow[]>
}

/** Deleted keys that only this token held, by uuid. */
export interface Deaths {
  /** Deleted for good. */
  readonly dead?: readonly string[]
  /** Nothing is left of them to destroy. */
  readonly buried?: readonly string[]
}

/** The KEK that wraps the server's own keys: its ordinal number, and when it was made (milliseconds). */
export interface KeyStatus {
  readonly term: number
  readonly installedAt: number
}

/** The cluster: its identity, its epoch, and the token's memory of both. */
export class Cluster {
  readonly id: string
  readonly name: string
  readonly createdAt: number
  readonly unsealHash: Buffer | null
  readonly #options: ClusterOptions
  #epoch: number
  /** The last anchor that this process wrote. */
  #anchored: Anchor | undefined
  #begun = false

  constructor({ id, name, createdAt, unsealHash, epoch }: ClusterRow, options: ClusterOptions) {
    this.id = id
    this.name = name
    this.createdAt = createdAt
    this.unsealHash = unsealHash
    this.#epoch = epoch
    this.#options = options
  }

  /** An accepted restore begins a new one, which voids everything issued before. */
  get epoch(): number {
    return this.#epoch
  }

  /** Whether this process has begun the epoch. */
  get begun(): boolean {
    return this.#begun
  }

  /** Check value of the key that seals rows, to be kept with the components: `kek adopt` asks for it. */
  get rowKey(): string {
    return shownRowKey(Buffer.from(this.#options.rowKey, 'hex'))
  }

  /** CKA_IDs of every KEK there is or was. */
  async kekIds(): Promise<Buffer[]> {
    return (await this.#options.keks()).map((row) => row.ckaId)
  }

  /** The KEK that wraps the server's own keys. */
  async keyStatus(): Promise<KeyStatus> {
    const rows = (await this.#options.keks()).filter(
      ({ purpose, state }) => purpose === 'system' && state !== 'pending',
    )
    const active = rows.find(({ state }) => state === 'active')
    return { term: rows.length, installedAt: active?.createdAt ?? this.createdAt }
  }

  /**
   * Records the database's state in this node's token; hourly, when lists or KEKs change, and after initialisation.
   * @throws Error when the database is behind the token's memory, which must not be lost
   */
  async anchor(): Promise<Anchor> {
    const { hsm, database, rowKey } = this.#options
    // Read before the database, which could otherwise look older than it is.
    const last = await readAnchor(hsm, this.id)
    const { epoch, heads } = await database.snapshot(async (q) => ({
      epoch: (await this.#row(q)).epoch,
      heads: await readHeads(database, q),
    }))
    if (!(kekSet in heads)) throw new Error('the head of the set of KEKs is missing: the database is damaged')
    const reason = last && behind(last, epoch, heads)
    if (reason !== undefined) throw new Error(`the database has gone back behind what the token remembers: ${reason}`)
    this.#anchored = await writeAnchor(hsm, { cluster: this.id, epoch, rowKey, heads, tombstones: [] })
    return this.#anchored
  }

  /** Records deaths in the token without the database, whose owner could make that fail. */
  async bury(deaths: Deaths): Promise<void> {
    const { hsm } = this.#options
    const last = await readAnchor(hsm, this.id)
    if (last === undefined) throw new Error('the token remembers nothing of this cluster any more')
    await writeAnchor(hsm, { ...last, tombstones: deaths.dead ?? [] }, deaths.buried)
  }

  /** Deleted keys that only this token held, and whose objects may still exist. */
  async dead(): Promise<readonly string[]> {
    return (await readAnchor(this.#options.hsm, this.id))?.tombstones ?? []
  }

  /** Anchors unless this process has done so since the set was last changed. @param set name of its head */
  async anchorChanges(set: string): Promise<void> {
    const { database } = this.#options
    const head = await database.read((q) => database.table(headsTable).find(q, { set }))
    if (head !== undefined && head.seq !== this.#anchored?.heads[set]) await this.anchor()
  }

  /** The last step of an initialisation, in the transaction of the one before it. */
  async ready(tx: Transaction, unsealHash: Buffer | null): Promise<void> {
    const table = this.#options.database.table(clusterTable)
    const row = await table.get(tx, this.id)
    if (row?.state !== 'initialising') throw new Error('this cluster was initialised by another process')
    await table.update(tx, row, { state: 'ready', unsealHash })
  }

  /** Of several processes the first one writes the epoch; the others find it begun. */
  async beginEpoch(epoch: number): Promise<void> {
    const { database } = this.#options
    database.setEpoch(epoch)
    await database.transaction(async (tx) => {
      const row = await this.#row(tx)
      if (row.epoch < epoch) await database.table(clusterTable).update(tx, row, {})
    })
    this.#epoch = epoch
    this.#begun = true
    await this.anchor()
  }

  async #row(q: Reader): Promise<ClusterRow> {
    const row = await this.#options.database.table(clusterTable).get(q, this.id)
    if (row === undefined) throw new Error('the settings row of the cluster is missing')
    return row
  }
}
