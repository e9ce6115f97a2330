import { availableParallelism } from 'node:os'
import { Audit } from './audit/audit.ts'
import { createInitialDevices, deviceSet } from './audit/bootstrap.ts'
import { createAuthenticator } from './auth/authenticate.ts'
import { tokenMethod } from './auth/methods/token.ts'
import { Policies } from './auth/policies.ts'
import { Tokens } from './auth/tokens.ts'
import type { Config } from './config.ts'
import { Door, type Interior } from './door.ts'
import type { Engine, Job } from './engine.ts'
import { createPki } from './engines/pki/index.ts'
import { createTransit } from './engines/transit/index.ts'
import { createInitialSettings, settingsSet } from './engines/transit/ring/bootstrap.ts'
import { badRequest, unavailable } from './errors.ts'
import type { Hsm } from './hsm/hsm.ts'
import { type Listener, openListener } from './http/listeners.ts'
import { proveListVerb } from './http/listproof.ts'
import { Runner } from './jobs/runner.ts'
import { readAnchor } from './keys/cluster/anchor.ts'
import { claimedUnsealHash, unseals } from './keys/cluster/unsealing.ts'
import { Custody } from './keys/custody.ts'
import { ManagedAdministration } from './keys/managed/administration.ts'
import type { Guests } from './keys/managed/guests.ts'
import { ManagedKeys } from './keys/managed/keys.ts'
import { Registry } from './keys/managed/registry.ts'
import { engineRevoker, withLeases } from './leases/engines.ts'
import { Leases } from './leases/leases.ts'
import type { Gathered, Snapshot } from './metrics/snapshot.ts'
import { Metrics } from './metrics.ts'
import { type Ground, openDatabase, openGuests, openHsm } from './open.ts'
import type { Pipeline } from './request/exchange.ts'
import { createMounts } from './request/mounts.ts'
import type { ApiSection } from './request/openapi.ts'
import { createPipeline } from './request/pipeline.ts'
import { Watch } from './request/watch.ts'
import type { Database } from './store/database.ts'
import { nodeMetrics, shareGauges } from './system/gauges.ts'
import { createSystem } from './system/index.ts'
import { createSealed } from './system/sealed.ts'

export interface AppOptions extends Ground {
  readonly sealed: boolean
  /** Tells the other workers of the node to poll. */
  nudge(): void
  /** The process must exit. */
  onFatal(reason: Error): void
  /** Names the incarnation under which this process registers with the database. */
  announce(incarnation: string): void
  /** Seals or unseals the node; resolves when every worker of it has followed, with the state that then holds. */
  requestSeal(sealed: boolean): Promise<boolean>
  /** What all workers of the node have measured. */
  gather(): Promise<Gathered>
}

type Options = AppOptions & { readonly metrics: Metrics }

/** One worker's server. */
export interface App {
  listen(): Promise<{ addresses: readonly string[] }>
  /** Another worker wrote: poll now. */
  nudged(): void
  /** Stops accepting, finishes requests, disposes everything. */
  drain(): Promise<void>
  /** Drops every key and the login of the token, or takes them up again. */
  seal(sealed: boolean): Promise<void>
  /** Deletes what ended processes of this node left registered. */
  ended(incarnations: readonly string[]): Promise<void>
  /** What this worker has measured. */
  measured(): Snapshot
}

const anchorEverySeconds = 3600
const proveEverySeconds = 5
const rollMetricsEverySeconds = 30
const sealHeadsEverySeconds = 10
/** Keys that strict mode may keep as token objects, where the token cannot wrap them. */
export const residentLimit = 500

/**
 * The composition root of a worker: builds everything by hand, in the order in which each part needs the one before. A
 * sealed worker has a door and nothing behind it: no token, no database.
 */
export async function createApp(given: AppOptions): Promise<App> {
  const metrics = new Metrics()
  const options = { ...given, metrics }
  const { config, clock, log } = options
  await proveListVerb()
  const workers = config.workers === 'auto' ? availableParallelism() : config.workers
  const seal = () => door.ask(() => options.requestSeal(true))
  const open = (secret?: string) => door.open(() => enter(options, seal, secret))
  const unseal = async (secret: string) => {
    await requireUnsealSecret(options, secret)
    await open(secret)
    return options.requestSeal(false)
  }
  const door = new Door(createSealed({ unseal, workers, clock, log }), clock)
  if (!options.sealed) await open()
  let listeners: readonly Listener[] = []
  return {
    async listen() {
      listeners = await openListeners(config, door, log)
      return { addresses: listeners.map(({ address }) => address) }
    },
    nudged: () => door.interior?.nudged(),
    async drain() {
      await Promise.all(listeners.map((listener) => listener.close(config.limits.drainSeconds * 1000)))
      await door[Symbol.asyncDispose]()
    },
    seal: (sealed) => (sealed ? door.shut() : open()),
    async ended(incarnations) {
      if (door.interior === undefined) throw unavailable('a sealed worker has no database')
      await door.interior.ended(incarnations)
    },
    measured: () => metrics.snapshot(),
  }
}

/**
 * Builds everything that needs keys.
 * @param seal seals the node on behalf of a request
 * @param secret must be the unseal secret, where it is given: only now is the row that says so verified
 */
async function enter(options: Options, seal: () => Promise<boolean>, secret?: string): Promise<Interior> {
  const { clock, log, metrics } = options
  await using ground = new AsyncDisposableStack()
  await using keys = new AsyncDisposableStack()
  const database = ground.use(await openDatabase(options, options.nudge))
  const hsm = keys.use(await openHsm(options, options.onFatal))
  const custody = keys.use(await openCustody(options, database, hsm))
  if (secret !== undefined && !unseals(custody.cluster.unsealHash, secret)) throw wrongUnsealSecret()
  options.announce(database.incarnation)
  await database.start()
  await completeSets(database, hsm, custody)
  const audit = ground.use(new Audit({ database, custody, clock, log, ...options.config.audit }))
  keys.defer(() => audit.trySealHeads())
  const runner = keys.use(new Runner({ database, clock, log, metrics }))
  const guests = keys.use(openGuests(options, hsm, custody, options.onFatal))
  const pipeline = assemble(options, { database, hsm, custody, guests, audit, runner, seal })
  for (const job of custody.jobs) runner.schedule(job)
  runner.scheduleLocal('forget old quantiles', rollMetricsEverySeconds, async () => metrics.roll())
  runner.scheduleLocal('seal heads of audit chains', sealHeadsEverySeconds, () => audit.sealHeads())
  runner.scheduleLocal('prove KEKs', proveEverySeconds, () => custody.rotation.prove())
  // Every node anchors in its own tokens, one of its workers at a time.
  const anchor = async () => void (await custody.anchor())
  runner.schedule(
    { name: `anchor ${hsm.token.serial}`, everySeconds: anchorEverySeconds, run: anchor },
    { atEnd: true },
  )
  const [rest, locked] = [ground.move(), keys.move()]
  return {
    pipeline,
    nudged: () => database.nudged(),
    ended: (incarnations) => database.forget(incarnations),
    lock: () => locked.disposeAsync(),
    async [Symbol.asyncDispose]() {
      await locked.disposeAsync()
      await rest.disposeAsync()
    },
  }
}

/** Sets that a cluster of an earlier program does not have. */
const initialSets = new Map([
  [deviceSet, createInitialDevices],
  [settingsSet, createInitialSettings],
])

/**
 * A cluster from before there were audit devices, or settings of transit mounts, gets their set, which the token then
 * remembers at once. Where it is remembered already it is never made anew: who removed it would have ended the audit.
 */
async function completeSets(database: Database, hsm: Hsm, custody: Custody): Promise<void> {
  const anchor = await readAnchor(hsm, custody.cluster.id)
  if (anchor === undefined) return
  const missing = [...initialSets].filter(([set]) => !(set in anchor.heads))
  if (missing.length === 0) return
  await database.transaction(async (tx) => {
    for (const [, found] of missing) await found(database, tx)
  })
  await custody.anchor()
}

/** Before anybody logs in to the token. */
async function requireUnsealSecret(ground: Ground, secret: string): Promise<void> {
  await using database = await openDatabase(ground)
  if (!unseals(await claimedUnsealHash(database), secret)) throw wrongUnsealSecret()
}

const wrongUnsealSecret = () => badRequest('Unseal failed, invalid key')

/**
 * The cluster's keys, from a database whose schema this program can read.
 * @param acceptRestore the operator vouches for a database that is behind what the token remembers
 */
export function openCustody(
  { config, log, clock, metrics }: Ground,
  database: Database,
  hsm: Hsm,
  acceptRestore = false,
): Promise<Custody> {
  return Custody.open({
    acceptRestore,
    ...{ hsm, database, clock, log, residentLimit },
    ...(metrics ? { metrics } : {}),
    strict: config.strict,
    fips: config.fips,
    handleLimit: config.caches.handles,
  })
}

interface Parts {
  readonly database: Database
  readonly hsm: Hsm
  readonly custody: Custody
  readonly guests: Guests
  readonly audit: Audit
  readonly runner: Runner
  seal(): Promise<boolean>
}

function assemble(
  { config, clock, log, metrics, gather }: Options,
  { database, hsm, custody, guests, audit, runner, seal }: Parts,
): Pipeline {
  const policies = new Policies({ database, clock })
  const onRevoke = (ids: readonly string[]) => leases.revokeByToken(ids)
  const tokens = new Tokens({ database, clock, keys: custody, epoch: custody.epoch, onRevoke })
  const engines = new Map<string, Engine>()
  const revokeInEngine = engineRevoker(() => mounts.list(), engines)
  const leases = new Leases({ database, clock, log, tokens, revokeInEngine })
  const { pins, blobs, materials, approval } = custody
  const registry = new Registry({ database, materials, clock })
  const managed = new ManagedKeys({
    ...{ database, registry, guests, pins, blobs, approval, clock, strict: config.strict },
    mount: (uuid) => mounts.get(uuid),
  })
  const transit = createTransit({ database, custody, managed, clock, ringLimit: config.caches.rings })
  for (const engine of [transit, createPki()]) {
    engines.set(engine.type, withLeases(engine, leases))
  }
  for (const job of [tokens.expiry, leases.expiry]) runner.schedule(job)
  const start = (job: Job) => runner.start(job)
  const builtin = [
    { path: 'sys/', type: 'system', description: 'system endpoints' },
    { path: 'auth/token/', type: 'token', description: 'token based credentials' },
  ]
  const mounts = createMounts({ database, engines, builtin, clock })
  const jobs = [...engines.values()].flatMap((engine) => engine.jobs ?? [])
  for (const job of [mounts.sweep, ...jobs]) runner.schedule(job)
  shareGauges({ metrics, mounts, leases, clock })
  const status = {
    clusterName: custody.cluster.name,
    clusterId: custody.cluster.id,
    createdAt: custody.cluster.createdAt,
    clock,
    sealed: () => false,
    hsmHealthy: () => hsm.healthy,
  }
  const token = tokenMethod({ tokens, policies, clock, start })
  const sections = () => [
    { prefix: 'sys', tag: system.type, routes: system.routes },
    { prefix: 'auth/token', tag: token.type, routes: token.routes },
    ...[...engines.values()].map(sectionOf),
  ]
  const system = createSystem({
    ...{ status, seal, unseal: async () => false, sections },
    ...{ mounts, policies, tokens, audit, engines, leases, start },
    managedKeys: new ManagedAdministration({ registry, guests, pins, keys: managed }),
    metrics: () => nodeMetrics(metrics, gather),
  })
  const authenticator = createAuthenticator({ tokens, policies })
  return createPipeline({
    mounts,
    authenticator,
    audit,
    watch: new Watch({ metrics, clock, log }),
    engines: new Map([...engines, ['system', system], ['token', token]]),
    log,
  })
}

/** An engine can be mounted anywhere, so its section has a parameter for that. */
const sectionOf = ({ type, routes }: Engine): ApiSection => ({
  prefix: `{${type}_mount_path}`,
  tag: type,
  mountDefault: type,
  routes,
})

function openListeners(config: Config, pipeline: Pipeline, log: Ground['log']): Promise<Listener[]> {
  return Promise.all(
    config.listeners.map((listener) => {
      const { tls, ...rest } = listener
      return openListener({ ...rest, ...(tls ? { tls } : {}) }, { pipeline, log, limits: config.limits })
    }),
  )
}
