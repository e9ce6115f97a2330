import type { Job } from '../job.ts'
import { Metrics } from '../metrics.ts'
import { rememberedChange } from './cluster/anchor.ts'
import { Cluster } from './cluster/cluster.ts'
import {
  type CustodyOptions,
  compareWithAnchor,
  type OpenedRows,
  openRows,
  openSystem,
  readRecords,
  reopenRows,
} from './cluster/opening.ts'
import { proofTidying } from './cluster/proofs.ts'
import { Rotation } from './cluster/rotation.ts'
import { type AuditKeys, RowMac, type SystemMac, type SystemMacs, tokenMac } from './cluster/system.ts'
import { Keks } from './kek/keks.ts'
import { createKekSet, KekSet, kekSet } from './kek/kekset.ts'
import { Blobs } from './live/blobs.ts'
import { Handles } from './live/handles.ts'
import { Residents } from './making/residents.ts'
import { TransientPairs } from './making/transient.ts'
import { Pins } from './managed/pins.ts'
import { AuthorityKeys } from './materials/authoritykeys.ts'
import { Materials } from './materials/materials.ts'
import { Opening } from './materials/opening.ts'
import type { ClusterRow } from './tables.ts'
import { KeyExport } from './transfer/keyexport.ts'
import { KeyImport } from './transfer/keyimport.ts'
import { MakeExportable } from './transfer/makeexportable.ts'
import type { Transfer } from './transfer/transfer.ts'
import { Approval } from './use/approval.ts'
import { createOperations, type Operations } from './use/operations.ts'

type SystemKeys = Pick<OpenedRows, 'rowKey' | 'mac'> & { readonly tokens: SystemMac; readonly audit: AuditKeys }

interface OpenedKeks {
  readonly keks: Keks
  readonly set: KekSet
}

/** Keys as the token holds them. */
interface TokenObjects {
  /** Session objects of keys in use. */
  readonly handles: Handles
  /** Persistent objects of keys that the token cannot wrap. */
  readonly residents: Residents
}

/** The cluster's keys that managed keys need: their PINs are wrapped secrets. */
interface ManagedSecrets {
  readonly pins: Pins
  readonly blobs: Blobs
}

/** The cluster's keys, opened. Each caller takes the one facade that it needs. */
export class Custody implements Disposable {
  /** The cluster's identity, and the token's memory of it. */
  readonly cluster: Cluster
  /** MACs of rows and token ids, and the keys of the audit log. */
  readonly macs: SystemMacs
  /** Cryptography with keys. */
  readonly operations: Operations
  /** Making, storing, finding and removing keys. */
  readonly materials: Materials
  /** Making and importing keys of certificate authorities. */
  readonly authorityKeys: AuthorityKeys
  /** Key pairs that are made to be handed out. */
  readonly transients: TransientPairs
  /** Import and export. */
  readonly transfer: Transfer
  readonly managed: ManagedSecrets
  readonly objects: TokenObjects
  /** Replacing KEKs. */
  readonly rotation: Rotation
  /** Background work, each to be run by the worker that holds its lease. */
  readonly jobs: readonly Job[]
  readonly #systemKeys: readonly SystemMac[]

  private constructor(options: CustodyOptions, row: ClusterRow, { keks, set }: OpenedKeks, system: SystemKeys) {
    const { hsm, database, clock, log, strict, fips, handleLimit, residentLimit: limit } = options
    const { mac, rowKey, tokens, audit } = system
    this.cluster = new Cluster(row, { hsm, database, rowKey, keks: () => keks.list() })
    this.macs = { rowMac: new RowMac(mac), tokenMac: tokenMac(tokens), audit }
    this.#systemKeys = [mac, tokens]
    const cluster = row.id
    const approval = new Approval(fips)
    const tombstones = {
      list: () => this.cluster.dead(),
      add: (dead: readonly string[]) => this.cluster.bury({ dead }),
      remove: (buried: readonly string[]) => this.cluster.bury({ buried }),
    }
    const residents = new Residents({ hsm, database, clock, log, cluster, limit, tombstones })
    const cacheLimit = 4 * handleLimit
    const forget = (id: string): void => handles.drop(id)
    const materials = new Materials({ hsm, database, keks, residents, clock, strict, approval, cacheLimit, forget })
    const blobs = new Blobs(hsm, keks, (id) => database.read((q) => materials.read(q, id)))
    const handles = new Handles({ hsm, limit: handleLimit, load: (material) => blobs.load(material) })
    this.materials = materials
    this.objects = { handles, residents }
    this.authorityKeys = new AuthorityKeys({ hsm, materials })
    this.transients = new TransientPairs({ hsm, capabilities: hsm.capabilities, approval, strict, clock })
    this.managed = { pins: new Pins({ hsm, keks, blobs, clock }), blobs }
    const metrics = options.metrics ?? new Metrics()
    metrics.gauge('strongroom.handles.live', 'Keys that are open in the token.', () => handles.size)
    const overused = metrics.counter('strongroom.gcm.warnings', 'Encryptions under a key version used over 2^31 times.')
    const opening = new Opening({ hsm, database, keks, blobs })
    const parts = { hsm, database, blobs, handles, materials, opening, approval, strict, log }
    this.operations = createOperations({ ...parts, cacheLimit, overused })
    this.transfer = {
      keyImport: new KeyImport({ hsm, database, handles, materials }),
      keyExport: new KeyExport({ hsm, blobs }),
      makeExportable: new MakeExportable({ hsm, database, keks, strict }),
    }
    const anchor = async () => void (await this.cluster.anchor())
    this.rotation = new Rotation({ hsm, database, keks, set, clock, log, strict, cluster, anchor })
    this.jobs = [this.rotation.job, residents.job, proofTidying({ database, clock })]
  }

  /**
   * Opens the cluster's keys from rows and token, and the sealed tables with them.
   * @throws Error naming anything missing, damaged, or behind the token's memory
   */
  static async open(options: CustodyOptions): Promise<Custody> {
    const { hsm, database, strict } = options
    const opened = await openRows(options)
    database.useMac(new RowMac(opened.mac))
    const records = await readRecords(options, opened.clusterId)
    const mac = await reopenRows(options, opened, records)
    database.useMac(new RowMac(mac))
    const { anchor, rowKey } = opened
    const { epoch, heads } = await compareWithAnchor(options, records, anchor)
    database.setEpoch(records.cluster.epoch)
    const remembered = anchor !== undefined && kekSet in anchor.heads
    // A dump from before the set had a head lacks one, and the operator vouches for it.
    if (!remembered || epoch !== undefined) await database.transaction((tx) => createKekSet(database, tx))
    const { id, epoch: now } = records.cluster
    const set = new KekSet(database, heads[kekSet], () => rememberedChange(hsm, id, kekSet, epoch ?? now))
    const keks = new Keks(hsm, database, strict, set, options.log)
    const system = await openSystem(options, records, keks, await set.current())
    const custody = new Custody(options, records.cluster, { keks, set }, { mac, rowKey, ...system })
    await options.adoption?.verify()
    // Before the token remembers the cluster, which ends the adoption: an interrupted one is repeated whole.
    if (options.adoption && !options.adoption.join) await custody.rotation.remakeAnnounced()
    if (epoch !== undefined) await custody.cluster.beginEpoch(epoch)
    else if (options.adoption || (anchor && !remembered)) await custody.cluster.anchor()
    return custody
  }

  /** Ends the session objects; the token objects stay. */
  close(): void {
    this.objects.handles.close()
    this.transients[Symbol.dispose]()
    this.materials[Symbol.dispose]()
    for (const mac of this.#systemKeys) mac.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}
