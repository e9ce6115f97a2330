import { readFile } from 'node:fs/promises'
import { databaseUrl } from './config/places.ts'
import type { Config } from './config.ts'
import { Hsm } from './hsm/hsm.ts'
import type { Cluster } from './keys/cluster/cluster.ts'
import type { CustodyOptions } from './keys/cluster/opening.ts'
import { Custody } from './keys/custody.ts'
import { ManagedHsms, type ManagedHsmsOptions } from './keys/managed/hsms.ts'
import { Database } from './store/database.ts'
import type { ProcessContext, WorkloadOptions } from './workload.ts'

/** The most keys that exist as token objects alone: by choice, or in strict mode because the token cannot wrap them. */
export const residentLimit = 500

/**
 * Opens the database.
 * @param worker of a process that caches: its place among those of its node
 * @throws Error when it cannot be reached or refuses
 */
export async function openDatabase(
  context: ProcessContext,
  worker: Partial<Pick<WorkloadOptions, 'sharedLog' | 'nudge'>> = {},
): Promise<Database> {
  const { config, secrets, log, clock, metrics } = context
  return Database.open({
    url: databaseUrl(config, secrets),
    poolSize: config.database.poolSize,
    lease: config.coherence,
    log,
    clock,
    ...(metrics ? { metrics } : {}),
    ...(worker.sharedLog ? { sharedLog: worker.sharedLog } : {}),
    ...(worker.nudge ? { nudge: worker.nudge } : {}),
    ...(await tlsOf(config)),
  })
}

async function tlsOf({ database }: Config) {
  if (database.tls === undefined) return {}
  const { ca, certificate, key } = database.tls
  const read = (path: string | undefined) => (path === undefined ? undefined : readFile(path, 'utf8'))
  const [caText, certText, keyText] = await Promise.all([read(ca), read(certificate), read(key)])
  return {
    tls: {
      ...(caText === undefined ? {} : { ca: caText }),
      ...(certText === undefined ? {} : { cert: certText }),
      ...(keyText === undefined ? {} : { key: keyText }),
    },
  }
}

/**
 * Loads the module and logs in.
 * @throws Error with an explanation when token, PIN or module are not as configured
 */
export function openHsm(context: ProcessContext, onFatal: (reason: Error) => void): Promise<Hsm> {
  const { config, secrets, log, clock, metrics } = context
  const { library, libraryParameters, token, executor, threads, callDeadlineSeconds } = config.pkcs11
  return Hsm.open({
    library,
    ...(libraryParameters === undefined ? {} : { libraryParameters }),
    token: { ...token },
    pin: secrets.reveal().pin,
    executor,
    threads,
    callDeadlineMilliseconds: callDeadlineSeconds * 1000,
    stateDirectory: config.stateDirectory,
    log,
    clock,
    ...(metrics ? { metrics } : {}),
    onFatal,
  })
}

/** The facts an operator may vouch for when the cluster's keys are opened. */
export type Vouched = Pick<CustodyOptions, 'acceptRestore' | 'beginEpoch'>

/** The options of Custody that come from configuration and process. */
export const custodyOptions = (
  { config, log, clock, metrics }: ProcessContext,
  database: Database,
  hsm: Hsm,
): CustodyOptions => ({
  ...{ hsm, database, clock, log, residentLimit },
  ...(metrics ? { metrics } : {}),
  strict: config.strict,
  fips: config.fips,
  handleLimit: config.caches.handles,
})

/**
 * The cluster's keys. The schema is checked before any row is read: one of another version may lack a column, or have
 * one that a seal covers and this program does not know, which looks like damage.
 * @throws ApiError 503 on a schema that this program cannot serve
 */
export async function openCustody(
  context: ProcessContext,
  database: Database,
  hsm: Hsm,
  vouched: Vouched = {},
): Promise<Custody> {
  const { state } = await database.schemaStatus()
  if (state === 'empty') throw new Error('this database is empty: run strongroom init')
  await database.checkSchema()
  return Custody.open({ ...custodyOptions(context, database, hsm), ...vouched })
}

/** The tokens of managed keys; each is opened on first use. */
export function openManagedHsms(
  context: ProcessContext,
  own: Hsm,
  cluster: Cluster,
  tries: ManagedHsmsOptions['tries'],
  onFatal: (reason: Error) => void,
): ManagedHsms {
  const { config, log, clock } = context
  const libraries = config.pkcs11Libraries.map(({ name, callDeadlineSeconds, ...library }) => ({
    ...library,
    name: name.toLowerCase(),
    callDeadlineMilliseconds: callDeadlineSeconds * 1000,
  }))
  return new ManagedHsms({
    ...{ libraries, own, tries, log, clock, onFatal },
    ownAllowed: config.pkcs11.managedKeys,
    stateDirectory: config.stateDirectory,
    ownIds: () => cluster.kekIds(),
  })
}
