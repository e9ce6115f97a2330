import type { Clock } from '../../clock.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Logger } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import type { Database } from '../../store/database.ts'
import { clusterOf } from '../kek/identity.ts'
import { Kek, type Keks } from '../kek/keks.ts'
import { type KekReading, listKeks } from '../kek/kekset.ts'
import { type ClusterRow, clusterTable, keksTable, type SystemKeyRow, systemKeysTable } from '../tables.ts'
import { type Anchor, behind, readAnchor, readHeads } from './anchor.ts'
import { isRowKey } from './rowkey.ts'
import { type AuditKeys, deriveAuditKeys, type Location, SystemMac, type SystemPurpose, systemKeks } from './system.ts'

/** An operator's assurances when a token that is new to the cluster adopts its keys. */
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
  /** Refuses anything that the token cannot keep or compute; the token itself enforces that keys stay. */
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
  /** The required name of the cluster, if the configuration has one. */
  readonly name?: string
  /** Initialisation opens a cluster that is not ready yet. */
  readonly initialising?: boolean
}

/** The verified rows. */
export interface Records {
  readonly cluster: ClusterRow
  readonly systemKeys: readonly SystemKeyRow[]
}

/** The row MAC, opened from rows that could not be verified before it was. */
export interface OpenedRows {
  readonly mac: SystemMac
  /** Hexadecimal check value of the key that seals. */
  readonly rowKey: string
  readonly clusterId: string
  /** The token's memory of that cluster; undefined while it has none. */
  readonly anchor: Anchor | undefined
}

const page = { by: 'id', limit: 500 } as const

/**
 * Opens the key that seals rows, which must be the one that the token's anchor names: any other key, even one under the
 * system KEK in a well sealed row, may be known to somebody.
 * @throws Error when there is no such key, it is another one, or the token lacks its KEK
 */
export async function openRows(options: CustodyOptions): Promise<OpenedRows> {
  const { hsm, database, adoption } = options
  const rows = await database.read((q) => database.unverified(systemKeysTable).list(q, { purpose: 'rows' }, page))
  const macs = rows.map((row) => macOf(options, row))
  const [mac] = macs.filter(({ row }) => row.state === 'active')
  if (mac === undefined)
    throw new Error('this database is not initialised (run strongroom init), or the row of its MAC key is gone')
  const { kek } = await locate(options, mac.row.id)
  const clusterId = clusterOf(kek.row.ckaId)
  if (clusterId === undefined)
    throw new Error('the row of the system KEK names no object of ours: the database is damaged')
  for (const each of macs) await each.open()
  if (adoption && macs.some(({ row }) => !isRowKey(adoption.rowKey, row.checkValue))) {
    throw new Error('the rows are sealed by another key than the one that was vouched for')
  }
  const anchor = await readAnchor(hsm, clusterId)
  if (anchor && macs.some((each) => rowKeyOf(each) !== anchor.rowKey)) {
    throw new Error(
      'the rows are sealed by another key than the one the token remembers: the database was tampered with',
    )
  }
  if (macs.length > 1) throw new Error('the key that seals rows has more than one row: the database was tampered with')
  return { mac, rowKey: rowKeyOf(mac), clusterId, anchor }
}

const rowKeyOf = ({ row }: SystemMac): string => row.checkValue.toString('hex')

const macOf = (options: CustodyOptions, row: SystemKeyRow): SystemMac =>
  new SystemMac(options.hsm, row, () => locate(options, row.id))

/**
 * The same key from its verified row: of the first reading only the key's check value is trusted, which the token
 * proved.
 * @throws Error when the verified rows differ
 */
export async function reopenRows(options: CustodyOptions, opened: OpenedRows, records: Records): Promise<SystemMac> {
  const [row, ...more] = records.systemKeys.filter(({ purpose }) => purpose === 'rows')
  if (row === undefined || more.length > 0 || row.checkValue.toString('hex') !== opened.rowKey) {
    throw new Error('two readings of the key that seals rows differ: the database was tampered with')
  }
  const mac = macOf(options, row)
  await mac.open()
  opened.mac.close()
  return mac
}

/** Where a system key lies at this moment, unverified: its check value decides (SystemMac). */
async function locate({ hsm, database }: CustodyOptions, id: string): Promise<Location> {
  const { key, keks } = await database.read(async (q) => ({
    key: await database.unverified(systemKeysTable).find(q, { id }),
    keks: await listKeks(database.unverified(keksTable), q),
  }))
  const purpose = key && systemKeks[key.purpose as SystemPurpose]
  const kek = keks.find((row) => row.id === key?.kek && row.purpose === purpose)
  if (key === undefined || kek === undefined) {
    throw new Error(`a system key is gone, or not under a ${purpose ?? 'system'} KEK: the database is damaged`)
  }
  return { kek: new Kek(hsm, kek, false), blob: key.blob }
}

/** Reads the rows again, now verified. @throws DamagedRow; Error when the settings row is missing */
export async function readRecords(options: CustodyOptions, clusterId: string): Promise<Records> {
  const { database } = options
  const { cluster, systemKeys } = await database.read(async (q) => ({
    cluster: await database.table(clusterTable).get(q, clusterId),
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
  return { cluster, systemKeys }
}

/** The database compared with the token's memory of it. */
export interface Comparison {
  /** The epoch to begin, when the operator vouches for a database that is behind the token's memory. */
  readonly epoch: number | undefined
  /** Sequence numbers of sealed heads: no later reading may be older. */
  readonly heads: Readonly<Record<string, number>>
}

/**
 * Compares the database with the token's memory of it.
 * @throws Error when it is behind, and the operator does not vouch for it
 */
export async function compareWithAnchor(
  options: CustodyOptions,
  { cluster }: Records,
  anchor: Anchor | undefined,
): Promise<Comparison> {
  const { hsm, database, acceptRestore, beginEpoch, initialising, adoption } = options
  if (anchor === undefined) {
    if (initialising && cluster.state === 'initialising') return { epoch: undefined, heads: {} }
    if (adoption) return { epoch: adoption.join ? undefined : cluster.epoch + 1, heads: {} }
    throw new Error(unknownTo(hsm))
  }
  const heads = await database.snapshot((q) => readHeads(database, q))
  const reason = behind(anchor, cluster.epoch, heads)
  if (reason === undefined && !beginEpoch)
    return { epoch: undefined, heads: cluster.epoch === anchor.epoch ? { ...anchor.heads, ...heads } : heads }
  if (acceptRestore) return { epoch: Math.max(anchor.epoch, cluster.epoch) + 1, heads }
  throw new Error(
    `the database is behind what the token ${hsm.token.label} remembers: ${reason}. If it was restored on purpose, run strongroom accept-restore`,
  )
}

/** The refusal of a token that is new to the cluster. */
export const unknownTo = ({ token }: Hsm): string =>
  `the token ${token.label} remembers nothing of this cluster: strongroom kek adopt verifies the database first`

/** Proves the active KEKs and opens the two keys that are used besides the row MAC. */
export async function openSystem(
  options: CustodyOptions,
  records: Records,
  keks: Keks,
  { rows }: KekReading,
): Promise<{ tokens: SystemMac; audit: AuditKeys }> {
  for (const row of rows) if (row.state === 'active') await keks.of(row).prove()
  const open = async (purpose: SystemPurpose): Promise<SystemMac> => {
    const row = records.systemKeys.find((key) => key.purpose === purpose && key.state === 'active')
    if (row === undefined) throw new Error(`the row of the ${purpose} key is missing: the database is damaged`)
    const mac = macOf(options, row)
    await mac.open()
    return mac
  }
  return { tokens: await open('tokens'), audit: await deriveAuditKeys(await open('audit')) }
}
