import { randomUUIDv7 } from 'node:crypto'
import type { Hsm } from '../hsm/hsm.ts'
import type { Database } from '../store/database.ts'
import type { JobLease } from '../store/lease.ts'
import { waitForLease } from '../store/waiting.ts'
import { readAnchor } from './cluster/anchor.ts'
import { acceptingIntent, bootstrapMac } from './cluster/bootstrap.ts'
import type { CustodyOptions } from './cluster/opening.ts'
import { makeSystemKey, RowMac, SystemMac, type SystemPurpose, systemKeks } from './cluster/system.ts'
import { Custody } from './custody.ts'
import { type Component, combine } from './kek/components.ts'
import { makeKek, type NewKek, objectsByCluster, planKek } from './kek/kek.ts'
import { Kek } from './kek/keks.ts'
import { createKekSet } from './kek/kekset.ts'
import { clusterTable, type KekPurpose, kekPurposes, keksTable, systemKeysTable } from './tables.ts'

/** KEKs generated in the token, or each the XOR of custodians' components. */
export type Ceremony = 'generate' | { readonly components: Readonly<Record<KekPurpose, readonly Component[]>> }

export interface InitialiseOptions
  extends Omit<CustodyOptions, 'initialising' | 'acceptRestore' | 'beginEpoch' | 'adoption' | 'name'> {
  readonly kek: Ceremony
  readonly name: string
  /**
   * Makes everything that a cluster needs besides its keys: mounts, policies, the first token. It is repeated after a
   * crash before the end. `unsealHash` goes into the settings row.
   */
  populate?(custody: Custody): Promise<{ unsealHash?: Buffer } | undefined>
  /**
   * Called as soon as the cluster is made, before anything else can fail: what `populate` made can be told only now.
   */
  ready?(clusterId: string): void
}

const job = 'initialise'
const leaseSeconds = 30

export type ClusterState = 'absent' | 'initialising' | 'ready'

/** The state that the settings row claims, unverified; `ready` is believed only by Custody.open. */
export async function clusterState(database: Database): Promise<ClusterState> {
  const rows = await database.read((q) => database.unverified(clusterTable).list(q, {}, { by: 'id', limit: 1 }))
  const state = rows[0]?.state
  return state === undefined ? 'absent' : state === 'initialising' ? state : 'ready'
}

/**
 * Makes a cluster's keys, once: intent, keys in the token, their rows, the anchor, `populate`, ready. After a crash
 * anywhere a second run finishes, or begins again and destroys the first one's keys in the token; of concurrent runs
 * one wins.
 * @throws Error when the cluster is ready already, another run holds the lease, or the token lacks a mechanism; after
 *   `ready`, when the anchor could not be written: workers do that, and the cluster is as good as any
 */
export async function initialise(options: InitialiseOptions): Promise<{ clusterId: string }> {
  requireCustody(options.hsm)
  const lease = await waitForLease(options, { name: job, ttlSeconds: leaseSeconds, work: 'init of this cluster' })
  try {
    if ((await clusterState(options.database)) === 'ready') throw new Error('this cluster is initialised already')
    if (!(await hasKeys(options.database))) await createInitialKeys(options, lease)
    const custody = await Custody.open({ ...options, initialising: true })
    using _closed = custody
    await custody.cluster.anchor()
    const made = await options.populate?.(custody)
    await options.database.transaction(async (tx) => {
      await tx.fence(job, lease.fence)
      await custody.cluster.ready(tx, made?.unsealHash ?? null)
    })
    options.ready?.(custody.cluster.id)
    await custody.cluster.anchor()
    return { clusterId: custody.cluster.id }
  } finally {
    // A lost lease needs no release.
    await lease.release().catch(() => undefined)
  }
}

/** @throws Error naming the first mechanism without which no key can be kept */
export function requireCustody(hsm: Hsm): void {
  for (const ability of ['wrap-aes', 'wrap-generic', 'hmac-sha256', 'data-object'] as const) {
    if (!hsm.capabilities.supports(ability)) {
      throw new Error(`the token ${hsm.token.label} cannot keep keys: it lacks ${hsm.capabilities.missing(ability)}`)
    }
  }
}

const hasKeys = (database: Database): Promise<boolean> =>
  database.read((q) => database.unverified(systemKeysTable).exists(q, {}))

async function createInitialKeys(options: InitialiseOptions, lease: JobLease): Promise<void> {
  const { hsm, database, clock, log, name } = options
  database.useMac(bootstrapMac)
  database.setEpoch(1)
  const clusterId = await writeIntent(options, lease)
  await cleanUp(hsm, clusterId)
  const others = [...(await objectsByCluster(hsm)).keys()]
  if (others.length > 0)
    log.warn({ token: hsm.token.label, clusters: others }, 'the token holds keys of other clusters')
  try {
    const keks = await makeKeks(options, clusterId)
    const system = await makeSystemKeys(hsm, keks, clock.wall())
    const rows = system.find(({ purpose }) => purpose === 'rows')
    const kek = kekOf(hsm, keks, 'system')
    const seal = rows && new SystemMac(hsm, rows, async () => ({ kek, blob: rows.blob }))
    if (seal === undefined) throw new Error('the row-MAC key was not made')
    database.useMac(acceptingIntent(new RowMac(seal)))
    await database.transaction(async (tx) => {
      await tx.fence(job, lease.fence)
      const table = database.table(clusterTable)
      const intent = await table.get(tx, clusterId)
      if (intent === undefined) throw new Error('the intent to initialise is gone')
      await table.update(tx, intent, { name })
      await database.table(keksTable).insertMany(tx, keks)
      await createKekSet(database, tx)
      await database.table(systemKeysTable).insertMany(tx, system)
    })
    seal.close()
  } catch (error) {
    // Unlike a crash, an error can clean up.
    if (!(await hasKeys(database).catch(() => true))) await cleanUp(hsm, clusterId).catch(() => undefined)
    throw error
  }
}

/** The row that says a cluster of this uuid is being made; one left by a crash is reused. */
async function writeIntent({ database, clock, name }: InitialiseOptions, lease: JobLease): Promise<string> {
  return database.transaction(async (tx) => {
    await tx.fence(job, lease.fence)
    const table = database.table(clusterTable)
    const [begun] = await table.list(tx, {}, { by: 'id', limit: 1 })
    if (begun !== undefined) return begun.id
    if (await database.table(keksTable).exists(tx, {})) {
      throw new Error('the settings row of the cluster is missing while its KEKs are there: the database is damaged')
    }
    const intent = await table.insert(tx, { name, state: 'initialising', createdAt: clock.wall() })
    return intent.id
  })
}

/** Destroys the KEKs of an earlier, failed run. @throws Error when the token remembers the cluster as alive */
async function cleanUp(hsm: Hsm, clusterId: string): Promise<void> {
  if ((await readAnchor(hsm, clusterId)) !== undefined) {
    throw new Error(`the token remembers cluster ${clusterId}, whose keys the database has lost: restore the database`)
  }
  for (const object of (await objectsByCluster(hsm)).get(clusterId) ?? []) await hsm.destroy(object)
}

type MadeKek = NewKek & { readonly state: string; readonly origin: string; readonly createdAt: number }

async function makeKeks({ hsm, kek, strict, clock }: InitialiseOptions, clusterId: string): Promise<MadeKek[]> {
  const components = kek === 'generate' ? undefined : kek.components
  // All of them are checked before any is made.
  if (components) for (const purpose of kekPurposes) combine(components[purpose]).fill(0)
  const made: MadeKek[] = []
  for (const purpose of kekPurposes) {
    const plan = planKek(clusterId, purpose)
    const facts = await makeKek(hsm, plan, { strict, components: components?.[purpose] })
    made.push({ ...facts, state: 'active', origin: components ? 'components' : 'generated', createdAt: clock.wall() })
  }
  return made
}

function kekOf(hsm: Hsm, keks: readonly MadeKek[], purpose: KekPurpose): Kek {
  const row = keks.find((kek) => kek.purpose === purpose)
  if (row === undefined) throw new Error(`no ${purpose} KEK was made`)
  return new Kek(hsm, row, false)
}

async function makeSystemKeys(hsm: Hsm, keks: readonly MadeKek[], createdAt: number) {
  const purposes = Object.keys(systemKeks) as SystemPurpose[]
  return Promise.all(
    purposes.map(async (purpose) => ({
      id: randomUUIDv7(),
      purpose,
      state: 'active',
      createdAt,
      ...(await makeSystemKey(hsm, kekOf(hsm, keks, systemKeks[purpose]), purpose)),
    })),
  )
}
