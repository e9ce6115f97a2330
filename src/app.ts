import { availableParallelism } from 'node:os'
import { Audit } from './audit/audit.ts'
import { createInitialDevices, deviceSet } from './audit/bootstrap.ts'
import { createAuthenticator } from './auth/authenticate.ts'
import { tokenMethod } from './auth/methods/token.ts'
import { Policies } from './auth/policies.ts'
import { RootGeneration } from './auth/recovery.ts'
import { Tokens } from './auth/tokens.ts'
import type { Config } from './config.ts'
import { Core, type UnsealedCore } from './core.ts'
import type { Engine, Job } from './engine.ts'
import { authoritySet, createInitialAuthorities } from './engines/pki/authority/bootstrap.ts'
import { createInitialCrls, crlSet } from './engines/pki/crl/bootstrap.ts'
import { createPki } from './engines/pki/index.ts'
import { createTransit } from './engines/transit/index.ts'
import { createInitialSettings, settingsSet } from './engines/transit/ring/bootstrap.ts'
import { badRequest, unavailable } from './errors.ts'
import type { Hsm } from './hsm/hsm.ts'
import { type Listener, openListener } from './http/listeners.ts'
import { proveListVerb } from './http/listproof.ts'
import { Runner } from './jobs/runner.ts'
import { readAnchor } from './keys/cluster/anchor.ts'
import type { Cluster } from './keys/cluster/cluster.ts'
import { claimedUnsealHash, unseals } from './keys/cluster/unsealing.ts'
import type { Custody } from './keys/custody.ts'
import { ManagedAdministration } from './keys/managed/administration.ts'
import type { ManagedHsms } from './keys/managed/hsms.ts'
import { ManagedKeys } from './keys/managed/managedkeys.ts'
import { Registry } from './keys/managed/registry.ts'
import { engineRevoker, withLeases } from './leases/engines.ts'
import { Leases } from './leases/leases.ts'
import { Metrics } from './metrics.ts'
import { openCustody, openDatabase, openHsm, openManagedHsms } from './open.ts'
import type { Pipeline } from './request/exchange.ts'
import { Mounts } from './request/mounts/mounts.ts'
import type { ApiSection } from './request/openapi.ts'
import { createPipeline } from './request/pipeline.ts'
import { Watch } from './request/watch.ts'
import type { Data } from './route.ts'
import type { Database } from './store/database.ts'
import type { Transaction } from './store/reader.ts'
import { nodeMetrics, shareGauges } from './system/gauges.ts'
import { createSystem } from './system/index.ts'
import { createSealedPipeline } from './system/sealed.ts'
import { Tries } from './system/tries.ts'
import type { ProcessContext, Workload, WorkloadOptions } from './workload.ts'

type Options = WorkloadOptions & { readonly metrics: Metrics }

const anchorEverySeconds = 3600
const anchorListsEverySeconds = 60
const proveEverySeconds = 5
const askEverySeconds = 5
const rollMetricsEverySeconds = 30
const sealHeadsEverySeconds = 10

/** Mounts that always exist. */
const builtin = [
  { path: 'sys/', type: 'system', description: 'system endpoints' },
  { path: 'auth/token/', type: 'token', description: 'token based credentials' },
]

/** Sets of rows that a cluster of an earlier version lacks. */
const initialSets = new Map<string, (stores: Stores, tx: Transaction) => Promise<void>>([
  [deviceSet, ({ database }, tx) => createInitialDevices(database, tx)],
  [settingsSet, ({ database }, tx) => createInitialSettings(database, tx)],
  [authoritySet, createInitialAuthorities],
  [crlSet, createInitialCrls],
])

/** What the first rows of a set are made with. */
type Stores = Parameters<typeof createInitialAuthorities>[0]

/**
 * The composition root of a worker: builds everything by hand, in the order of dependency. A sealed worker has only the
 * sealed pipeline: no token, no database.
 */
export async function createApp(processOptions: WorkloadOptions): Promise<Workload> {
  const metrics = new Metrics()
  const options = { ...processOptions, metrics }
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
  const core = new Core(createSealedPipeline({ unseal, workers, clock, log }), clock)
  if (!options.sealed) await unsealWorker()
  let listeners: readonly Listener[] = []
  return {
    async listen() {
      listeners = await openListeners(config, core, log)
      return { addresses: listeners.map(({ address }) => address) }
    },
    hear: (message) => core.hear(message),
    poll: () => core.poll(),
    async drain() {
      await Promise.all(listeners.map((listener) => listener.close(config.limits.drainSeconds * 1000)))
      await core[Symbol.asyncDispose]()
    },
    seal: (sealed) => (sealed ? core.seal() : unsealWorker()),
    async forget(incarnations) {
      if (core.unsealed === undefined) throw unavailable('a sealed worker has no database')
      await core.unsealed.forget(incarnations)
    },
    snapshot: () => metrics.snapshot(),
  }
}

const workersOf = ({ workers }: Config): number => (workers === 'auto' ? availableParallelism() : workers)

/**
 * Builds the part of a worker that needs keys.
 * @param seal seals the node on behalf of a request
 * @param secret the unseal secret, if given: it is checked again here, against the row as verified by its seal
 */
async function openCore(options: Options, seal: () => Promise<boolean>, secret?: string): Promise<UnsealedCore> {
  const { clock, log, metrics } = options
  await using stores = new AsyncDisposableStack()
  await using keys = new AsyncDisposableStack()
  const database = stores.use(await openDatabase(options, options.send))
  const hsm = keys.use(await openHsm(options, options.onFatal))
  const custody = keys.use(await openCustody(options, database, hsm))
  if (secret !== undefined && !unseals(custody.cluster.unsealHash, secret)) throw wrongUnsealSecret()
  options.announce(database.incarnation)
  await database.start()
  await createMissingSets({ database, clock }, hsm, custody.cluster)
  const { cluster, macs } = custody
  const auditOptions = { ...options.config.audit, database, keys: macs.audit, epoch: cluster.epoch, clock, log }
  const audit = stores.use(new Audit(auditOptions))
  keys.defer(() => audit.trySealHeads())
  const runner = keys.use(new Runner({ database, clock, log, metrics }))
  const managedHsms = keys.use(openManagedHsms(options, hsm, cluster, options.onFatal))
  const foundation = { database, hsm, custody, managedHsms, audit, runner, seal }
  const pipeline = buildPipeline(options, foundation, buildServices(options, foundation))
  scheduleUpkeep(foundation, metrics)
  const [openStores, openKeys] = [stores.move(), keys.move()]
  return {
    pipeline,
    hear: (message) => database.hear(message),
    poll: () => database.poll(),
    forget: (incarnations) => database.forget(incarnations),
    dropKeys: () => openKeys.disposeAsync(),
    async [Symbol.asyncDispose]() {
      await openKeys.disposeAsync()
      await openStores.disposeAsync()
    },
  }
}

/**
 * A cluster created before there were audit devices, or settings of transit mounts, gets their set, which the token then
 * records at once. A recorded set is never created again, or removing it would end the audit.
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
  readonly audit: Audit
  readonly runner: Runner
  seal(): Promise<boolean>
}

type Services = ReturnType<typeof buildServices>

/** Tokens, policies, leases, engines and mounts, with their jobs. */
function buildServices(
  { config, clock, log, metrics }: Options,
  { database, custody, managedHsms, audit, runner }: Foundation,
) {
  const policies = new Policies({ database, clock })
  const onRevoke = (ids: readonly string[]) => leases.revokeByToken(ids)
  const { cluster, macs, operations, materials, transfer } = custody
  const { pins, blobs } = custody.managed
  const tokens = new Tokens({ database, clock, keys: macs, epoch: cluster.epoch, onRevoke })
  const engines = new Map<string, Engine>()
  const revokeInEngine = engineRevoker(() => mounts.list(), engines)
  const removed = (uuid: string) => mounts.removed(uuid)
  const leases = new Leases({ database, clock, log, tokens, revokeInEngine, removed })
  const registry = new Registry({ database, materials, clock })
  const managed = new ManagedKeys({
    ...{ database, registry, hsms: managedHsms, pins, blobs, clock, strict: config.strict },
    ...{ approval: operations.approval, certification: operations.certification },
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
  return { policies, tokens, leases, engines, mounts, managedKeys }
}

/** The routes of sys/, auth/token/ and every engine, behind sign-in, policies and audit. */
function buildPipeline(
  { config, clock, log, metrics, gather }: Options,
  { database, hsm, custody: { cluster, macs }, audit, runner, seal }: Foundation,
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
    ...{ ...services, status, audit, start, sections, seal },
    unseal: async () => false,
    rootGeneration: new RootGeneration({ database, keys: macs, clock, cluster: cluster.id, epoch: cluster.epoch }),
    tries: new Tries({ workers: workersOf(config), clock }, 'of its recovery secret'),
    metrics: () => nodeMetrics(metrics, gather),
  })
  return createPipeline({
    ...{ mounts, audit, log },
    authenticator: createAuthenticator({ tokens, policies }),
    watch: new Watch({ metrics, clock, log }),
    engines: new Map([...engines, ['system', system], ['token', token]]),
  })
}

/** What engines say of their own health, by their type. */
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
  // On a node that nobody asks anything a lost token would not show.
  const askToken = async () => void (hsm.healthy && (await hsm.random(1)))
  runner.scheduleLocal('ask the token', askEverySeconds, askToken)
  // Every node anchors in its own tokens, one of its workers at a time.
  const anchor = async () => void (await custody.cluster.anchor())
  runner.schedule(
    { name: `anchor ${hsm.token.serial}`, everySeconds: anchorEverySeconds, run: anchor },
    { atEnd: true },
  )
  // After lists came out on whichever node: an older database is noticed from there on.
  const anchorLists = () => custody.cluster.anchorChanges(crlSet)
  runner.schedule({ name: `anchor lists ${hsm.token.serial}`, everySeconds: anchorListsEverySeconds, run: anchorLists })
}

/** An engine can be mounted anywhere; two of them have paths of the same form, so that each is shown at its default one. */
const sectionOf = ({ type, routes }: Engine): ApiSection => ({ prefix: type, tag: type, routes })

function openListeners(config: Config, pipeline: Pipeline, log: ProcessContext['log']): Promise<Listener[]> {
  return Promise.all(
    config.listeners.map((listener) => {
      const { tls, ...rest } = listener
      return openListener({ ...rest, ...(tls ? { tls } : {}) }, { pipeline, log, limits: config.limits })
    }),
  )
}
