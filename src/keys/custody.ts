import type { Job } from '../engine.ts'
import type { Hsm } from '../hsm/hsm.ts'
import { Metrics } from '../metrics.ts'
import type { MaybePromise } from '../route.ts'
import type { Database } from '../store/database.ts'
import type { Transaction } from '../store/reader.ts'
import { type Anchor, readHeads, writeAnchor } from './cluster/anchor.ts'
import { type CustodyOptions, newEpoch, type OpenedRows, openRows, openSystem, readRecords } from './cluster/opening.ts'
import { Rotation } from './cluster/rotation.ts'
import type { AuditKeys, RowMac, SystemMac } from './cluster/system.ts'
import { Keks } from './kek/keks.ts'
import { Blobs } from './live/blobs.ts'
import { Handles } from './live/handles.ts'
import { Residents } from './making/residents.ts'
import { Pins } from './managed/pins.ts'
import { Extracting } from './materials/extracting.ts'
import { Materials } from './materials/materials.ts'
import { type ClusterRow, clusterTable, keksTable } from './tables.ts'
import { KeyExport } from './transfer/keyexport.ts'
import { KeyImport } from './transfer/keyimport.ts'
import { MakeExportable } from './transfer/makeexportable.ts'
import { Approval } from './use/approval.ts'
import { Cipher } from './use/cipher.ts'
import { Derivation } from './use/derivation.ts'
import { Derived } from './use/derived.ts'
import { Hmacs } from './use/hmac.ts'
import { type RandomSource, random } from './use/random.ts'
import { RsaCipher } from './use/rsacipher.ts'
import { Signer } from './use/signer.ts'
import { Usage } from './use/usage.ts'

type Opened = OpenedRows & { readonly tokens: SystemMac; readonly audit: AuditKeys }

/** The cluster's keys, opened: everything that touches key material goes through here. */
export class Custody implements Disposable {
  readonly cluster: {
    readonly id: string
    readonly name: string
    readonly createdAt: number
    readonly unsealHash: Buffer | null
  }
  readonly rowMac: RowMac
  readonly audit: AuditKeys
  readonly approval: Approval
  readonly materials: Materials
  readonly residents: Residents
  readonly blobs: Blobs
  readonly pins: Pins
  readonly handles: Handles
  readonly cipher: Cipher
  readonly rsaCipher: RsaCipher
  readonly derived: Derived
  readonly extracting: Extracting
  readonly signer: Signer
  readonly hmacs: Hmacs
  readonly makeExportable: MakeExportable
  readonly keyImport: KeyImport
  readonly keyExport: KeyExport
  readonly rotation: Rotation
  /** Background work, each to be run by whoever holds its lease. */
  readonly jobs: readonly Job[]
  readonly #hsm: Hsm
  readonly #database: Database
  readonly #opened: Opened
  #epoch: number

  private constructor(options: CustodyOptions, cluster: ClusterRow, keks: Keks, opened: Opened) {
    const { hsm, database, clock, log, strict, fips, handleLimit } = options
    const { id, name, createdAt, unsealHash, epoch } = cluster
    this.cluster = { id, name, createdAt, unsealHash }
    this.rowMac = opened.rowMac
    this.audit = opened.audit
    this.#opened = opened
    this.#epoch = epoch
    this.#hsm = hsm
    this.#database = database
    this.approval = new Approval(fips)
    this.residents = new Residents({ hsm, database, clock, cluster: id, limit: options.residentLimit })
    const { approval, residents } = this
    const cacheLimit = 4 * handleLimit
    const forget = (id: string): void => this.handles.drop(id)
    this.materials = new Materials({ hsm, database, keks, residents, clock, strict, approval, cacheLimit, forget })
    const blobs = new Blobs(hsm, keks, (id) => database.read((q) => this.materials.read(q, id)))
    this.blobs = blobs
    this.pins = new Pins({ hsm, keks, blobs, clock })
    this.handles = new Handles({ hsm, limit: handleLimit, load: (material) => blobs.load(material) })
    const { handles } = this
    const metrics = options.metrics ?? new Metrics()
    metrics.gauge('strongroom.handles.live', 'Keys that are open in the token.', () => handles.size)
    const overused = metrics.counter('strongroom.gcm.warnings', 'Encryptions under a key version used over 2^31 times.')
    this.cipher = new Cipher({ hsm, blobs, handles, strict, usage: new Usage(database, cacheLimit), overused })
    this.derived = new Derived(new Derivation({ hsm, handles, strict }), this.cipher)
    this.extracting = new Extracting({ hsm, keks })
    this.rsaCipher = new RsaCipher({ hsm, handles })
    this.signer = new Signer({ hsm, blobs, handles, approval })
    this.hmacs = new Hmacs({ hsm, blobs, handles, strict })
    this.keyExport = new KeyExport({ hsm, blobs })
    this.keyImport = new KeyImport({ hsm, database, handles, materials: this.materials })
    this.makeExportable = new MakeExportable({ hsm, database, keks, strict })
    this.rotation = new Rotation({ hsm, database, keks, clock, log, strict, cluster: id })
    this.jobs = [this.rotation.job, this.residents.job]
  }

  /**
   * Opens the cluster's keys from rows and token, and the sealed tables with them.
   * @throws Error saying in words what is missing, damaged, or behind what the token remembers
   */
  static async open(options: CustodyOptions): Promise<Custody> {
    const { hsm, database, strict } = options
    const rows = await openRows(options)
    database.useMac(rows.rowMac)
    const records = await readRecords(options, rows.clusterId)
    const epoch = await newEpoch(options, records, rows.rowKey)
    const keks = new Keks(hsm, database, strict)
    const system = await openSystem(options, records, keks)
    const custody = new Custody(options, records.cluster, keks, { ...rows, ...system })
    database.setEpoch(custody.epoch)
    if (epoch !== undefined) await custody.#beginEpoch(epoch)
    return custody
  }

  /** The cluster's life: a restore that was accepted begins a new one, and what was issued before is void. */
  get epoch(): number {
    return this.#epoch
  }

  /** HMAC under the key of token ids; 32 bytes. */
  tokenMac(message: Uint8Array): MaybePromise<Buffer> {
    return this.#opened.tokens.mac(message)
  }

  /** CKA_IDs of every KEK there is or was. */
  async kekIds(): Promise<Buffer[]> {
    const table = this.#database.table(keksTable)
    const rows = await this.#database.read((q) => table.list(q, {}, { by: 'id', limit: 500 }))
    return rows.map((row) => row.ckaId)
  }

  random(source: RandomSource, bytes: number): MaybePromise<Buffer> {
    return random(this.#hsm, source, bytes)
  }

  /** Writes into this node's token how far the database is; hourly, at every CRL and after initialisation. */
  async anchor(): Promise<Anchor> {
    const { cluster, heads } = await this.#database.snapshot(async (q) => ({
      cluster: await this.#database.table(clusterTable).get(q, this.cluster.id),
      heads: await readHeads(this.#database, q),
    }))
    if (cluster === undefined) throw new Error('the settings row of the cluster is missing')
    return writeAnchor(this.#hsm, { cluster: cluster.id, epoch: cluster.epoch, rowKey: this.#opened.rowKey, heads })
  }

  /** The last step of an initialisation, in the transaction of the one before it. */
  async ready(tx: Transaction, unsealHash: Buffer | null): Promise<void> {
    const table = this.#database.table(clusterTable)
    const row = await table.get(tx, this.cluster.id)
    if (row?.state !== 'initialising') throw new Error('this cluster was initialised by another process')
    await table.update(tx, row, { state: 'ready', unsealHash })
  }

  /** Ends the session objects; the token objects stay. */
  close(): void {
    this.handles.close()
    for (const mac of [...this.#opened.macs, this.#opened.tokens]) mac.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** Whoever comes second finds the epoch begun. */
  async #beginEpoch(epoch: number): Promise<void> {
    this.#database.setEpoch(epoch)
    const table = this.#database.table(clusterTable)
    await this.#database.transaction(async (tx) => {
      const row = await table.get(tx, this.cluster.id)
      if (row === undefined) throw new Error('the settings row of the cluster is missing')
      if (row.epoch < epoch) await table.update(tx, row, {})
    })
    this.#epoch = epoch
    await this.anchor()
  }
}
