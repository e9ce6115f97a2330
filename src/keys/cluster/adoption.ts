import type { Hsm } from '../../hsm/hsm.ts'
import type { Database } from '../../store/database.ts'
import { Custody } from '../custody.ts'
import { type Component, choose } from '../kek/components.ts'
import { clusterOf } from '../kek/identity.ts'
import { destroyKek, makeKek, objectsByCluster, presentKek } from '../kek/kek.ts'
import { listKeks } from '../kek/kekset.ts'
import { type KekPurpose, type KekRow, keksTable, type SystemKeyRow, systemKeysTable } from '../tables.ts'
import type { Alone } from './alone.ts'
import { readAnchor } from './anchor.ts'
import { hasKeys } from './haskeys.ts'
import { type CustodyOptions, unknownTo } from './opening.ts'
import { requireComponents } from './rotation.ts'
import { isRowKey, requireRowKey } from './rowkey.ts'

/** The KEKs that a token needs to open the rows, as these claim. Nothing is verified yet: the check values decide. */
export interface AdoptionPlan {
  readonly clusterId: string
  /** To be made from components. */
  readonly missing: readonly KekRow[]
  /** Retired ones that were generated in another token: keys under them are lost. */
  readonly lost: readonly KekRow[]
}

interface Place {
  readonly hsm: Hsm
  readonly database: Database
}

const page = { by: 'id', limit: 500 } as const

/**
 * Looks at a token that is new to the cluster and says what it lacks. An interrupted run is resumed: existing KEKs are
 * compared, not made again.
 * @param shared whether the token may hold keys of another cluster
 * @throws Error when token, database and row key do not belong together, or an active KEK cannot be made from
 * components
 */
export async function planAdoption(
  place: Place,
  { rowKey, shared }: { readonly rowKey: string; readonly shared: boolean },
): Promise<AdoptionPlan> {
  requireRowKey(rowKey)
  const claimed = await readClaims(place)
  const { rowKeys } = claimed
  if (rowKeys.length > 1 || rowKeys.some(({ checkValue }) => !isRowKey(rowKey, checkValue))) {
    throw new Error(
      'the row key of this database has another check value: the digits are mistyped, the database is of another cluster, or it was tampered with',
    )
  }
  await requireNew(place.hsm, claimed.clusterId, shared)
  return planMissing(place, claimed)
}

/**
 * Says which KEKs a token lacks that knows the cluster: others were brought to the cluster while its node was away, or
 * an older copy of it was put back.
 * @param id of the KEK that is asked for
 * @throws Error when there is no such KEK, or no components make it; when the token does not know the cluster, or an
 * active KEK cannot be made from components
 */
export async function planRepair(place: Place, id: string): Promise<AdoptionPlan> {
  const claimed = await readClaims(place)
  const asked = claimed.keks.find((kek) => kek.id === id)
  if (asked === undefined) throw new Error(`there is no KEK ${id}`)
  requireComponents(asked)
  const { hsm } = place
  if ((await readAnchor(hsm, claimed.clusterId)) === undefined) throw new Error(unknownTo(hsm))
  return planMissing(place, claimed)
}

/** The rows' claims about the cluster. */
interface Claims {
  readonly clusterId: string
  /** Whatever their state. */
  readonly keks: readonly KekRow[]
  /** Those that keys may be under. */
  readonly used: readonly KekRow[]
  readonly rowKeys: readonly SystemKeyRow[]
}

async function readClaims({ database }: Place): Promise<Claims> {
  const { keks, rowKeys } = await database.read(async (q) => ({
    keks: await listKeks(database.unverified(keksTable), q),
    rowKeys: await database.unverified(systemKeysTable).list(q, { purpose: 'rows' }, page),
  }))
  const used = keks.filter(({ state }) => state === 'active' || state === 'retiring')
  const system = used.find(({ purpose, state }) => purpose === 'system' && state === 'active')
  const clusterId = system && clusterOf(system.ckaId)
  if (clusterId === undefined || rowKeys.length === 0)
    throw new Error('this database is not initialised, or the rows of its KEKs are gone')
  return { clusterId, keks, used, rowKeys }
}

async function planMissing({ hsm, database }: Place, { clusterId, used }: Claims): Promise<AdoptionPlan> {
  const absent: KekRow[] = []
  for (const kek of used) {
    // The envelopes of a retired KEK that nothing is under may be gone.
    const needed = kek.state === 'active' || (await hasKeys(database, kek.id))
    if (needed && !(await holds(hsm, kek))) absent.push(kek)
  }
  const born = absent.filter(({ origin }) => origin !== 'components')
  const active = born.filter(({ state }) => state === 'active')
  if (active.length > 0) {
    throw new Error(
      `no components make ${active.map(named).join(' and ')}: born in a token, it comes back with a copy of that token alone`,
    )
  }
  return { clusterId, missing: absent.filter((kek) => !born.includes(kek)), lost: born }
}

/**
 * Makes the planned KEKs in the token and opens the cluster with them. A token that is new to it has everything
 * verified, and only then an epoch begins (unless others serve) and it gets its first memory of the database.
 * @param components the custodians' components of each missing KEK, by its id
 * @throws Error when anything is wrong; KEKs made by this call are then destroyed, unless another may have made them
 */
export async function adoptCluster(
  options: CustodyOptions,
  { missing }: AdoptionPlan,
  components: ReadonlyMap<string, readonly Component[]>,
  alone: Alone,
): Promise<Custody> {
  const { hsm, strict } = options
  const chosen: { readonly kek: KekRow; readonly components: readonly Component[] }[] = []
  for (const kek of missing) chosen.push({ kek, components: await componentsFor(kek, components.get(kek.id) ?? []) })
  const made: Buffer[] = []
  try {
    for (const { kek, components } of chosen) {
      await alone()
      made.push(kek.ckaId)
      await makeKek(hsm, planOf(kek), { strict, components })
      await holds(hsm, kek)
    }
    return await Custody.open(options)
  } catch (error) {
    if (made.length > 0) await alone()
    for (const ckaId of made) await destroyKek(hsm, ckaId).catch(() => undefined)
    throw error
  }
}

const planOf = ({ id, ckaId, purpose }: KekRow) => ({ id, ckaId, purpose: purpose as KekPurpose })
const named = ({ state, purpose, id }: KekRow): string => `the ${state} ${purpose} KEK ${id}`

async function componentsFor(kek: KekRow, given: readonly Component[]): Promise<readonly Component[]> {
  const chosen = await choose(given, kek.checkValue)
  if (chosen !== undefined) return chosen
  throw new Error(`these components do not make ${named(kek)}, whose check value is ${kek.checkValue.toString('hex')}`)
}

/** @throws Error when the token holds another object under the KEK's id */
async function holds(hsm: Hsm, kek: KekRow): Promise<boolean> {
  const present = await presentKek(hsm, planOf(kek))
  if (present === undefined) return false
  if (present.checkValue.equals(kek.checkValue)) return true
  throw new Error(`the token ${hsm.token.label} holds another key in the place of ${named(kek)}`)
}

async function requireNew(hsm: Hsm, clusterId: string, shared: boolean): Promise<void> {
  const { label } = hsm.token
  if ((await readAnchor(hsm, clusterId)) !== undefined) {
    throw new Error(
      `the token ${label} remembers this cluster already: strongroom kek adopt ID brings KEKs that it lacks, strongroom root-token makes a root token`,
    )
  }
  if (shared) return
  const others = [...(await objectsByCluster(hsm)).keys()].filter((cluster) => cluster !== clusterId)
  if (others.length > 0) {
    const named = others.join(' and ')
    throw new Error(`the token ${label} is not empty: it holds keys of cluster ${named} (--shared adopts beside them)`)
  }
}
