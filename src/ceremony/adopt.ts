import type { Hsm } from '../hsm/hsm.ts'
import { type AdoptionPlan, adoptCluster, planAdoption, planRepair } from '../keys/cluster/adoption.ts'
import type { Alone } from '../keys/cluster/alone.ts'
import type { KekStatus } from '../keys/cluster/rotation.ts'
import { verifyRows } from '../keys/cluster/verification.ts'
import type { Custody } from '../keys/custody.ts'
import { requireCustody } from '../keys/initialise.ts'
import type { Component } from '../keys/kek/components.ts'
import type { KekRow } from '../keys/tables.ts'
import { custodyOptions, openCustody, openDatabase, openHsm } from '../open.ts'
import type { Database } from '../store/database.ts'
import type { ProcessContext } from '../workload.ts'
import { adoptingAlone } from './alone.ts'
import { keysUnder, loneKeys } from './lonekeys.ts'
import { sealedSets, sealedTables } from './sealedtables.ts'

/** The operator's statements and components. */
export interface AdoptRequest {
  /** Check value of the row key, as shown by `kek status`. */
  readonly rowKey: string
  /** The token may hold keys of another cluster. */
  readonly shared: boolean
  /** Other nodes serve the cluster, so no new epoch begins. */
  readonly join: boolean
  /** Continues despite damaged rows: each of them stays refused at every use. */
  readonly damaged: boolean
  /** Asks for the components of a KEK. */
  components(kek: KekRow): Promise<readonly Component[]>
}

/** A cluster in a token that is new to it. */
export interface Adopted {
  readonly database: Database
  readonly custody: Custody
  /** KEKs that were made. */
  readonly made: readonly KekRow[]
  readonly verifiedRows: number
  /** Damaged rows and sets. */
  readonly damaged: readonly string[]
  /** Keys lost with their token, by name. */
  readonly lost: readonly string[]
}

/**
 * Restores a cluster from its database and its custodians' components, into a token that is new to it: first the KEKs,
 * then every sealed row is verified, then an epoch begins and the token gets its first record of it.
 * @param work receives the open cluster
 * @throws Error with an explanation when anything does not match: then nothing is left in the token. May be run again
 */
export async function adopt(
  context: ProcessContext,
  request: AdoptRequest,
  work: (adopted: Adopted) => Promise<void>,
): Promise<void> {
  await using database = await openDatabase(context)
  await requireSchema(database)
  await using hsm = await openHsm(context, (reason) => {
    throw reason
  })
  requireCustody(hsm)
  const plan = await planAdoption({ hsm, database }, request)
  const components = new Map<string, readonly Component[]>()
  for (const kek of plan.missing) components.set(kek.id, await request.components(kek))
  await adoptingAlone({ ...context, database, hsm }, async (alone) => {
    // Custodians take their time: meanwhile another run may have made the KEKs.
    const current = await planAdoption({ hsm, database }, request)
    await carryOut({ ...context, database, hsm }, { ...request, plan: current, given: components, alone }, work)
  })
}

async function carryOut(
  context: ProcessContext & { readonly database: Database; readonly hsm: Hsm },
  request: AdoptRequest & {
    readonly plan: AdoptionPlan
    readonly given: ReadonlyMap<string, readonly Component[]>
    readonly alone: Alone
  },
  work: (adopted: Adopted) => Promise<void>,
): Promise<void> {
  const { database, hsm } = context
  const { plan, given, alone } = request
  let found = { rows: 0, damaged: [] as readonly string[] }
  const verify = async () => {
    found = await verifyRows(database, sealedTables, sealedSets)
    if (found.damaged.length > 0 && !request.damaged) throw new Error(damage(found.damaged))
  }
  const { rowKey, join } = request
  const options = { ...custodyOptions(context, database, hsm), adoption: { rowKey, join, verify } }
  using custody = await adoptCluster(options, plan, given, alone)
  const lone = (await loneKeys(database, hsm)).filter(({ here }) => !here).map(({ name }) => name)
  const lost = [...lone, ...(await wrappedByLost(database, plan))]
  await work({ database, custody, made: plan.missing, verifiedRows: found.rows, damaged: found.damaged, lost })
}

/**
 * Brings a KEK of this cluster into a token that knows it: one that was announced, or one that the token lacks, together
 * with every other one that it lacks.
 * @param ask for the components of a KEK
 * @returns what the token has now: the others that it lacked, then the one that was asked for
 * @throws Error with an explanation when components or rows do not match: then nothing was made
 */
export async function adoptKek(
  context: ProcessContext,
  id: string,
  ask: (kek: Pick<KekRow, 'purpose' | 'state'>) => Promise<readonly Component[]>,
): Promise<readonly KekStatus[]> {
  await using database = await openDatabase(context)
  await requireSchema(database)
  await using hsm = await openHsm(context, (reason) => {
    throw reason
  })
  const place = { ...context, database, hsm }
  const options = custodyOptions(context, database, hsm)
  const { missing } = await planRepair(place, id)
  const components = new Map<string, readonly Component[]>()
  for (const kek of missing) components.set(kek.id, await ask(kek))
  if (missing.length > 0) {
    await adoptingAlone(place, async (alone) => {
      // Meanwhile another run may have made them.
      const custody = await adoptCluster(options, await planRepair(place, id), components, alone)
      custody.close()
    })
  }
  using custody = await openCustody(context, database, hsm)
  const kek = (await custody.rotation.status()).find((one) => one.id === id)
  if (kek === undefined) throw new Error(`there is no KEK ${id}`)
  if (!components.has(id)) {
    const given = await ask(kek)
    await adoptingAlone(place, (alone) => custody.rotation.adopt(id, given, alone))
  }
  const all = await custody.rotation.status()
  const held = [...missing.map((one) => one.id).filter((other) => other !== id), id]
  return held.flatMap((one) => all.filter((status) => status.id === one))
}

async function requireSchema(database: Database): Promise<void> {
  const { state } = await database.schemaStatus()
  if (state === 'empty') throw new Error('this database is empty: restore the cluster, then adopt it')
  if (state === 'behind') throw new Error('the schema of this database is older: run strongroom migrate first')
}

const wrappedByLost = async (database: Database, { lost }: AdoptionPlan): Promise<string[]> =>
  (await Promise.all(lost.map(({ id }) => keysUnder(database, id)))).flat()

const shownDamage = 20

const damage = (damaged: readonly string[]): string =>
  [
    `damaged rows: ${damaged.length}, each of them is refused at every use (--damaged adopts the rest):`,
    ...damaged.slice(0, shownDamage),
  ].join('\n  ')
