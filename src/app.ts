import { Audit } from './audit/audit.ts'
import { createInitialDevices, deviceSet } from './audit/bootstrap.ts'
import { createAuthenticator } from './auth/authenticate.ts'
import { tokenMethod } from './auth/methods/token.ts'
import { Policies } from './auth/policies.ts'
import { RootGeneration } from './auth/recovery.ts'
import { Tokens } from './auth/tokens.ts'
import { auditDirectory } from './config/places.ts'
import { workersOf } from './config/workers.ts'
import type { Config } from './config.ts'
import { Core, type UnsealedCore } from './core.ts'
import type { Engine } from './engine.ts'
import { authoritySet, createInitialAuthorities } from './engines/pki/authority/bootstrap.ts'
import { createInitialCrls, crlSet } from './engines/pki/crl/bootstrap.ts'
import { createPki } from './engines/pki/index.ts'
import { createTransit } from './engines/transit/index.ts'
import { createInitialSettings, settingsSet } from './engines/transit/ring/bootstrap.ts'
import { badRequest, unavailable } from './errors.ts'
import type { Hsm } from './hsm/hsm.ts'
import { shareMemory } from './http/budget.ts'
import { withCors } from './http/cors.ts'
import { createListener, type Serving } from './http/listeners.ts'
import { proveListVerb } from './http/listproof.ts'
import type { Job } from './job.ts'
import { Runner } from './jobs/runner.ts'
import { readAnchor } from './keys/cluster/anchor.ts'
import type { Cluster } from './keys/cluster/cluster.ts'
import { claimedUnsealHash, unseals } from './keys/cluster/unsealing.ts'
import type { Custody } from './keys/custody.ts'
import { kekSet } from './keys/kek/kekset.ts'
import { ManagedAdministration } from './keys/managed/administration.ts'
import type { ManagedHsms } from './keys/managed/hsms.ts'
import { ManagedKeys } from './keys/managed/managedkeys.ts'
import { Registry } from './keys/managed/registry.ts'
import { engineRevoker, withLeases } from './leases/engines.ts'
import { leaseTally, mountTally } from './leases/lease.ts'
import { Leases } from './leases/leases.ts'
import { Metrics } from './metrics.ts'
import { openCustody, openDatabase, openHsm, openManagedHsms } from './open.ts'
import { LeaseQuotas } from './quota/leasecount.ts'
import { Quotas } from './quota/quotas.ts'
import type { Pipeline } from './request/exchange.ts'
import { InFlight } from './request/inflight.ts'
import { Mounts } from './request/mounts/mounts.ts'
import { Foldings } from './request/names/folding.ts'
import type { ApiSection } from './request/openapi/document.ts'
import { createPipeline } from './request/pipeline.ts'
import { Watch } from './request/watch.ts'
import type { Data } from './route.ts'
import { createSystemSettings, Settings, systemSettingsSet } from './settings/settings.ts'
import type { Database } from './store/database.ts'
import { unlessLate } from './store/late.ts'
import type { Transaction } from './store/reader.ts'
import { nodeMetrics, shareGauges } from './system/gauges.ts'
import { createSystem } from './system/index.ts'
import { createSealedPipeline } from './system/sealed.ts'
import { Tries } from './system/tries.ts'
import type { ProcessContext, Workload, WorkloadOptions } from './workload.ts'

type Options = WorkloadOptions & {
  readonly metrics: Metrics
  readonly underWay: InFlight
  draining(): boolean
}

const anchorEverySeconds = 3600
const anchorChangesEverySeconds = 60
const proveEverySeconds = 5
const askEverySeconds = 5
const rollMetricsEverySeconds = 30
const sealHeadsEverySeconds = 10
/** The expiry job removes what a worker that ends does not. */
const lastRemovalsMilliseconds = 1000

/** Mounts that always exist. */
const builtin = [
  { path: 'sys/', type: 'system', description: 'system endpoints' },
  { path: 'auth/token/', type: 'token', description: 'token based credentials' },
]

/** Sets of rows that a cluster of an earlier version lacks. */
const initialSets = new Map<string, (stores: Stores, tx: Transaction) => Promise<void>>([
  [deviceSet, ({ database }, tx) => createInitialDevices(database, tx)],
  [systemSettingsSet, ({ database }, tx) => createSystemSettings(database, tx)],
  [settingsSet, ({ database }, tx) => createInitialSettings(database, tx)],
  [authoritySet, createInitialAuthorities],
  [crlSet, createInitialCrls],
])

/** The stores needed to make the first rows of a set. */
type Stores = Parameters<typeof createInitialAuthorities>[0]

/**
 * The composition root of a worker: builds everything by hand, in the order of dependency. A sealed worker has only the
 * sealed pipeline: no token, no database.
 */
export async function createApp(processOptions: WorkloadOptions): Promise<Workload> {
  const metrics = new Metrics()
  const underWay = new InFlight(processOptions.clock)
  let draining = false
  const options = { ...processOptions, metrics, underWay, draining: () => draining }
  const { config, clock, log } = options
  await proveListVerb()
  const workers = workersOf(config)
  const sealNode = () => core.whileSealing(() => options.requestSeal(true))
  const unsealWorker = (secret?: string) => core.unseal(() => openCore(options, sealNode, secret))
  const unseal = async (secret: string) => {
    await requireUnsealSecret(options, secret)
    await unsealWorker(secret)
    return options.requestSeal(false)
  }
  const core = new Core(createSealedPipeline({ unseal, workers, clock, log, draining: options.draining }), clock)
  if (!options.sealed) await unsealWorker()
  const listeners = new Map<string, Serving>()
  return {
    async listen() {
      for (const [address, listener] of await createListeners(config, core, log)) listeners.set(address, listener)
    },
    accept(address, connection) {
      const listener = listeners.get(address)
      if (listener) listener.accept(connection)
      else connection.destroy()
    },
    poll: () => core.poll(),
    announceEnd() {
      draining = true
    },
    reopen: () => core.reopen(),
    async drain() {
      const { limits, drain } = config
      const times = [limits.drainSeconds * 1000, drain.keepAliveSeconds * 1000] as const
      await Promise.all([...listeners.values()].map((listener) => listener.close(...times)))
      await core[Symbol.asyncDispose]()
    },
    seal: (sealed) => (sealed ? core.seal() : unsealWorker()),
    async forget(incarnations) {
      if (core.unsealed === undefined) throw unavailable('a sealed worker has no database')
      await core.unsealed.forget(incarnations)
    },
    snapshot: () => metrics.snapshot(),
    inFlight: () => underWay.list(),
  }
}

/**
 * Builds the part of a worker that needs keys.
 * @param seal seals the node on behalf of a request
 * @param secret the unseal secret, if given: it is checked again here, against the row verified by its seal
 */
async function openCore(options: Options, seal: () => Promise<boolean>, secret?: string): Promise<UnsealedCore> {
  const { clock, log, metrics } = options
  await using stores = new AsyncDisposableStack()
  await using keys = new AsyncDisposableStack()
  const database = stores.use(await openDatabase(options, options))
  const hsm = keys.use(await openHsm(options, options.onFatal))
  const custody = keys.use(await openCustody(options, database, hsm))
  if (secret !== undefined && !unseals(custody.cluster.unsealHash, secret)) throw wrongUnsealSecret()
  options.announce(database.incarnation)
  await database.start()
  await createMissingSets({ database, clock }, hsm, custody.cluster)
  const { cluster, macs } = custody
  const directory = auditDirectory(options.config)
  const settings = new Settings(database)
  const auditOptions = {
    ...options.config.audit,
    directory,
    print: options.print,
    settings,
    database,
    keys: macs.audit,
    epoch: cluster.epoch,
    clock,
    log,
    metrics,
  }
  const audit = stores.use(new Audit(auditOptions))
  keys.defer(() => unlessLate(database, clock, audit.trySealHeads()))
  const managedHsms = keys.use(openManagedHsms(options, hsm, cluster, pinTries(options), options.onFatal))
  // Ends first: its last jobs may still sign by managed keys.
  const runner = new Runner({ database, clock, log, metrics })
  keys.defer(() => unlessLate(database, clock, runner[Symbol.asyncDispose]()))
  const foundation = { database, hsm, custody, managedHsms, settings, audit, runner, seal }
  const services = buildServices(options, foundation)
  // Not before the keys are dropped, and not for long: the database may be frozen.
  stores.defer(() => Promise.race([services.tokens.removeRevoked(), clock.sleep(lastRemovalsMilliseconds)]))
  const pipeline = buildPipeline(options, foundation, services)
  scheduleUpkeep(foundation, metrics)
  const [openStores, openKeys] = [stores.move(), keys.move()]
  return {
    pipeline,
    poll: () => database.poll(),
    reopen: () => audit.reopen(),
    forget: (incarnations) => database.forget(incarnations),
    dropKeys: () => openKeys.disposeAsync(),
    async [Symbol.asyncDispose]() {
      await openKeys.disposeAsync()
      await openStores.disposeAsync()
    },
  }
}

/**
 * A cluster that predates one of these sets gets it now, and the token records it at once. A recorded set is never
 * created again: otherwise removing the set of audit devices would end the audit.
 */
async function createMissingSets(stores: Stores, hsm: Hsm, cluster: Cluster): Promise<void> {
  const { database } = stores
  const anchor = await readAnchor(hsm, cluster.id)
  if (anchor === undefined) return
  const missing = [...initialSets].filter(([set]) => !(set in anchor.heads))
  if (missing.length === 0) return
  await database.transaction(async (tx) => {
    for (const [, create] of missing) await create(stores, tx)
  })
  await cluster.anchor()
}

/** Checks the secret before the first login to the token. */
async function requireUnsealSecret(context: ProcessContext, secret: string): Promise<void> {
  await using database = await openDatabase(context)
  if (!unseals(await claimedUnsealHash(database), secret)) throw wrongUnsealSecret()
}

const wrongUnsealSecret = () => badRequest('Unseal failed, invalid key')

/** The open stores and keys of an unsealed worker. */
interface Foundation {
  readonly database: Database
  readonly hsm: Hsm
  readonly custody: Custody
  readonly managedHsms: ManagedHsms
  readonly settings: Settings
  readonly audit: Audit
  readonly runner: Runner
  seal(): Promise<boolean>
}

type Services = ReturnType<typeof buildServices>

/** Tokens, policies, leases, engines and mounts, with their jobs. */
function buildServices(
  { config, clock, log, metrics }: Options,
  { database, custody, managedHsms, settings, audit, runner }: Foundation,
) {
  const policies = new Policies({ database, clock })
  const { cluster, macs, operations, materials, transfer } = custody
  const { pins, blobs } = custody.managed
  const tokens = new Tokens({ database, clock, log, keys: macs, epoch: cluster.epoch, leases: () => leases })
  const engines = new Map<string, Engine>()
  const revokeInEngine = engineRevoker(() => mounts.list(), engines)
  const removed = (uuid: string) => mounts.removed(uuid)
  const leaseQuotas = new LeaseQuotas({
    ...{ settings, database, tallies: { all: leaseTally, of: mountTally } },
    mountOf: (path) => mounts.find(path),
    stored: (q, mount) => leases.countStored(q, mount),
    violations: metrics.counter('vault.quota.lease_count.violation', 'Leases refused by a lease-count quota.'),
  })
  const limits = () => leaseQuotas.limits()
  const leases = new Leases({ database, clock, log, tokens, revokeInEngine, removed, limits })
  const registry = new Registry({ database, materials, clock })
  const managed = new ManagedKeys({
    ...{ database, registry, hsms: managedHsms, pins, blobs, clock, strict: config.strict },
    ...{ approval: operations.approval, certification: operations.certification, cipher: operations.cipher },
    mount: (uuid) => mounts.get(uuid),
  })
  const transit = createTransit({
    ...{ database, operations, materials, transfer, managed, clock },
    ringLimit: config.caches.rings,
  })
  const pki = createPki({
    ...{ database, operations, materials, managed, clock, leases, log, metrics, epoch: cluster.epoch },
    start: (job) => runner.start(job),
    report: (path, text) => void audit.alarm(path, text),
    ...{ site: config.site, transients: custody.transients, authorityKeys: custody.authorityKeys },
  })
  for (const engine of [transit, pki]) engines.set(engine.type, withLeases(engine, leases))
  const mounts = new Mounts({ database, engines, builtin, clock })
  const engineJobs = [...engines.values()].flatMap((engine) => engine.jobs ?? [])
  for (const job of [tokens.expiry, leases.expiry, mounts.sweep, mounts.retention, ...engineJobs]) runner.schedule(job)
  for (const job of [tokens.tidying, leases.tidying]) runner.resume(job)
  const managedKeys = new ManagedAdministration({ registry, hsms: managedHsms, pins, keys: managed })
  return { policies, tokens, leases, leaseQuotas, engines, mounts, managedKeys }
}

/** The routes of sys/, auth/token/ and every engine, behind authentication, policies and audit. */
function buildPipeline(
  { config, clock, log, metrics, underWay: inFlight, gather, listInFlight, draining }: Options,
  { database, hsm, custody: { cluster, macs, operations }, settings, audit, runner, seal }: Foundation,
  services: Services,
): Pipeline {
  const { policies, tokens, leases, engines, mounts } = services
  shareGauges({ metrics, mounts, leases })
  const start = (job: Job) => runner.start(job)
  const status = {
    clusterName: cluster.name,
    clusterId: cluster.id,
    createdAt: cluster.createdAt,
    clock,
    sealed: () => false,
    draining,
    hsmHealthy: () => hsm.healthy,
    databaseHealthy: () => database.healthy,
    details: () => detailsOf(engines),
  }
  const token = tokenMethod({ tokens, policies, clock, start })
  const sections = () => [
    { prefix: 'sys', tag: system.type, routes: system.routes },
    { prefix: 'auth/token', tag: token.type, routes: token.routes },
    ...[...engines.values()].map(sectionOf),
  ]
  const system = createSystem({
    ...{ ...services, status, audit, start, sections, seal, settings, foldings: () => foldings },
    ...{ approval: operations.approval, random: operations.random },
    unseal: async () => false,
    keyStatus: () => cluster.keyStatus(),
    rootGeneration: new RootGeneration({ database, keys: macs, clock, cluster: cluster.id, epoch: cluster.epoch }),
    tries: new Tries({ workers: workersOf(config), clock }, 'tries of its recovery secret'),
    metrics: () => nodeMetrics(metrics, gather, log),
    inFlight: listInFlight,
  })
  const all = new Map([...engines, ['system', system], ['token', token]])
  const foldings = new Foldings(all.values())
  const pipeline = createPipeline({
    ...{ mounts, audit, log },
    authenticator: createAuthenticator({ tokens, policies, hashAccessor: macs.audit.hashAccessor }),
    watch: new Watch({ metrics, inFlight, clock, log }),
    engines: all,
    quotas: new Quotas({
      ...{ settings, clock, workers: workersOf(config) },
      violations: metrics.counter('vault.quota.rate_limit.violation', 'Requests refused by a rate-limit quota.'),
    }),
  })
  return withCors(pipeline, settings)
}

/**
 * Wrong PINs of our own token in managed keys: never shown to the token, whose own count then does not end the
 * guessing.
 */
const pinTries = ({ config, clock }: Options): Tries => {
  const allowed = { tries: 30, in: 'an hour', atOnce: 5 } as const
  return new Tries({ workers: workersOf(config), clock, allowed }, 'wrong PINs of its own token')
}

/** Health details of the engines, by type. */
async function detailsOf(engines: ReadonlyMap<string, Engine>): Promise<Record<string, Data>> {
  const told = [...engines.values()].flatMap(({ type, health }) => (health ? [{ type, health }] : []))
  return Object.fromEntries(await Promise.all(told.map(async ({ type, health }) => [type, await health()] as const)))
}

/** The worker's own jobs, and those of its keys. */
function scheduleUpkeep({ database, custody, hsm, audit, runner }: Foundation, metrics: Metrics): void {
  for (const job of [...database.jobs, ...custody.jobs]) runner.schedule(job)
  runner.scheduleLocal('forget old quantiles', rollMetricsEverySeconds, async () => metrics.roll())
  runner.schedule(audit.retention)
  runner.scheduleLocal('seal heads of audit chains', sealHeadsEverySeconds, () => audit.sealHeads())
  runner.scheduleLocal('prove KEKs', proveEverySeconds, () => custody.rotation.prove())
  // On an idle node the loss of the token would go unnoticed.
  const askToken = async () => void (hsm.healthy && (await hsm.random(1)))
  runner.scheduleLocal('ask the token', askEverySeconds, askToken)
  // Every node anchors in its own token, through one of its workers at a time.
  const anchor = async () => void (await custody.cluster.anchor())
  runner.schedule(
    { name: `anchor ${hsm.token.serial}`, everySeconds: anchorEverySeconds, run: anchor },
    { atEnd: true },
  )
  // After a list was published or a KEK changed, on any node: an older database is detected from then on.
  const anchorChanges = async () => {
    for (const set of [crlSet, kekSet]) await custody.cluster.anchorChanges(set)
  }
  const name = `anchor changes ${hsm.token.serial}`
  runner.schedule({ name, everySeconds: anchorChangesEverySeconds, run: anchorChanges })
}

/**
 * An engine can be mounted anywhere; two of one type would have paths of the same form, so each type is shown at its
 * default path.
 */
const sectionOf = ({ type, routes }: Engine): ApiSection => ({ prefix: type, tag: type, routes })

function createListeners(config: Config, pipeline: Pipeline, log: ProcessContext['log']) {
  const budgets = shareMemory(config.limits.workerMemoryMebibytes)
  return Promise.all(
    config.listeners.map(async ({ tls, ...rest }): Promise<[address: string, Serving]> => {
      const context = { pipeline, log, limits: config.limits, budgets }
      return [rest.address, await createListener({ ...rest, ...(tls ? { tls } : {}) }, context)]
    }),
  )
}
