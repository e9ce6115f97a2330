import type { Clock } from '../../clock.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Logger } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import type { Database } from '../../store/database.ts'
import { clusterOf } from '../kek/identity.ts'
import { Kek, type Keks } from '../kek/keks.ts'
import { type ClusterRow, clusterTable, type KekRow, keksTable, type SystemKeyRow, systemKeysTable } from '../tables.ts'
import { behind, readAnchor, readHeads } from './anchor.ts'
import { isRowKey } from './rowkey.ts'
import {
  type AuditKeys,
  deriveAuditKeys,
  type Location,
  RowMac,
  SystemMac,
  type SystemPurpose,
  systemKeks,
} from './system.ts'

/** What an operator vouches for when a token that is new to the cluster takes its keys. */
export interface Adoption {
  /** Check value of the key that seals rows, as `kek status` shows it. */
  readonly rowKey: string
  /** Other nodes serve the cluster: its epoch goes on. */
  readonly join: boolean
  /** Verifies the database before the token remembers anything of it. */
  verify(): Promise<void>
}

export interface CustodyOptions {
  readonly hsm: Hsm
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: Metrics
  /** What the token cannot keep or compute is refused, and the token itself lets no key leave that is made to stay. */
  readonly strict: boolean
  readonly fips: boolean
  /** Live keys in the token at most; each costs about 8 kB. */
  readonly handleLimit: number
  /** Keys that may stay in the token because strict mode cannot wrap them. */
  readonly residentLimit: number
  /** The operator vouches for a database that is behind the token's memory. */
  readonly acceptRestore?: boolean
  /** The token is new to the cluster. */
  readonly adoption?: Adoption
  /** With acceptRestore: an epoch begins though the database is not behind. */
  readonly beginEpoch?: boolean
  /** The cluster's name, where the configuration says which it must be. */
  readonly name?: string
  /** Initialisation opens a cluster that is not ready yet. */
  readonly initialising?: boolean
}

/** What the rows say, verified. */
export interface Records {
  readonly cluster: ClusterRow
  readonly keks: readonly KekRow[]
  readonly systemKeys: readonly SystemKeyRow[]
}

/** The row MAC, opened from rows that nobody has verified yet: these two tables alone are ever read so. */
export interface OpenedRows {
  readonly rowMac: RowMac
  readonly macs: readonly SystemMac[]
  /** Hexadecimal check value of the key that seals. */
  readonly rowKey: string
  readonly clusterId: string
}

/** @throws Error when there is no such key, or the token does not hold the KEK it is under */
export async function openRows(options: CustodyOptions): Promise<OpenedRows> {
  const { hsm, database } = options
  const rows = await database.read((q) =>
    database.unverified(systemKeysTable).list(q, { purpose: 'rows' }, { by: 'id', limit: 100 }),
  )
  const macs = rows.map((row) => new SystemMac(hsm, row, () => locate(options, row.id)))
  const current = macs.find((mac) => mac.row.state === 'active')
  if (current === undefined)
    throw new Error('this database is not initialised (run strongroom init), or the row of its MAC key is gone')
  const { kek } = await locate(options, current.row.id)
  const clusterId = clusterOf(kek.row.ckaId)
  if (clusterId === undefined)
    throw new Error('the row of the system KEK names no object of ours: the database is damaged')
  for (const mac of macs) await mac.open()
  if (options.adoption && (macs.length > 1 || !isRowKey(options.adoption.rowKey, current.row.checkValue))) {
    throw new Error('the rows are sealed by another key than the one that was vouched for')
  }
  const rowMac = new RowMac(
    current,
    macs.filter((mac) => mac !== current),
  )
  return { rowMac, macs, rowKey: current.row.checkValue.toString('hex'), clusterId }
}

/** Where a system key lies at this moment, unverified: its check value decides (SystemMac). */
async function locate({ hsm, database }: CustodyOptions, id: string): Promise<Location> {
  const { key, keks } = await database.read(async (q) => ({
    key: await database.unverified(systemKeysTable).find(q, { id }),
    keks: await database.unverified(keksTable).list(q, {}, { by: 'id', limit: 500 }),
  }))
  const purpose = key && systemKeks[key.purpose as SystemPurpose]
  const kek = keks.find((row) => row.id === key?.kek && row.purpose === purpose)
  if (key === undefined || kek === undefined) {
    throw new Error(`a system key is gone, or not under a ${purpose ?? 'system'} KEK: the database is damaged`)
  }
  return { kek: new Kek(hsm, kek, false), blob: key.blob }
}

/** Reads again, verified now, what was only believed so far. @throws DamagedRow; Error when the settings row is missing */
export async function readRecords(options: CustodyOptions, clusterId: string): Promise<Records> {
  const { database } = options
  const page = { by: 'id', limit: 500 } as const
  const { cluster, keks, systemKeys } = await database.read(async (q) => ({
    cluster: await database.table(clusterTable).get(q, clusterId),
    keks: await database.table(keksTable).list(q, {}, page),
    systemKeys: await database.table(systemKeysTable).list(q, {}, page),
  }))
  if (cluster === undefined)
    throw new Error(`the settings row of cluster ${clusterId} is missing: the database is damaged`)
  if (options.name !== undefined && cluster.name !== options.name) {
    throw new Error(`the database belongs to cluster ${cluster.name}, the configuration says ${options.name}`)
  }
  if (cluster.state !== 'ready' && !options.initialising) {
    throw new Error('the initialisation of this cluster was not finished: run strongroom init again')
  }
  return { cluster, keks, systemKeys }
}

/**
 * Compares the database with the token's memory of it.
 * @returns the epoch to begin, when the operator vouches for a database that the token does not vouch for
 * @throws Error when nobody does, or the rows are sealed by a key that is not the one the token remembers
 */
export async function newEpoch(
  options: CustodyOptions,
  { cluster }: Records,
  rowKey: string,
): Promise<number | undefined> {
  const { hsm, database, acceptRestore, beginEpoch, initialising, adoption } = options
  const anchor = await readAnchor(hsm, cluster.id)
  if (anchor !== undefined && anchor.rowKey !== rowKey) {
    throw new Error(
      'the rows are sealed by another key than the one the token remembers: the database was tampered with',
    )
  }
  if (anchor === undefined) {
    if (initialising && cluster.state === 'initialising') return undefined
    if (adoption) return adoption.join ? undefined : cluster.epoch + 1
    throw new Error(
      `the token ${hsm.token.label} remembers nothing of this cluster: strongroom kek adopt verifies the database first`,
    )
  }
  const heads = await database.snapshot((q) => readHeads(database, q))
  const reason = behind(anchor, cluster.epoch, heads)
  if (reason === undefined && !beginEpoch) return undefined
  if (acceptRestore) return Math.max(anchor.epoch, cluster.epoch) + 1
  throw new Error(
    `the database is behind what the token ${hsm.token.label} remembers: ${reason}. If it was restored on purpose, run strongroom accept-restore`,
  )
}

/** Proves the active KEKs and opens the two keys that are used besides the row MAC. */
export async function openSystem(
  options: CustodyOptions,
  records: Records,
  keks: Keks,
): Promise<{ tokens: SystemMac; audit: AuditKeys }> {
  for (const row of records.keks) if (row.state === 'active') await keks.of(row).prove()
  const open = async (purpose: SystemPurpose): Promise<SystemMac> => {
    const row = records.systemKeys.find((key) => key.purpose === purpose && key.state === 'active')
    if (row === undefined) throw new Error(`the row of the ${purpose} key is missing: the database is damaged`)
    const mac = new SystemMac(options.hsm, row, () => locate(options, row.id))
    await mac.open()
    return mac
  }
  return { tokens: await open('tokens'), audit: await deriveAuditKeys(await open('audit')) }
}
