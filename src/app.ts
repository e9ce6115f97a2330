import { createAuthenticator } from './auth/authenticate.ts'
import { tokenMethod } from './auth/methods/token.ts'
import { Policies } from './auth/policies.ts'
import { Tokens } from './auth/tokens.ts'
import type { Config } from './config.ts'
import type { Engine } from './engine.ts'
import { createPki } from './engines/pki/index.ts'
import { createTransit } from './engines/transit/index.ts'
import { unavailable } from './errors.ts'
import type { Hsm } from './hsm/hsm.ts'
import { type Listener, openListener } from './http/listeners.ts'
import { proveListVerb } from './http/listproof.ts'
import { Runner } from './jobs/runner.ts'
import { Custody } from './keys/custody.ts'
import { type Ground, openDatabase, openHsm } from './open.ts'
import type { Pipeline } from './request/exchange.ts'
import { createMounts } from './request/mounts.ts'
import { createPipeline } from './request/pipeline.ts'
import type { Database } from './store/database.ts'
import { createSystem } from './system/index.ts'

export interface AppOptions extends Ground {
  readonly sealed: boolean
  /** Tells the other workers of the node to poll. */
  nudge(): void
  /** The process must exit. */
  onFatal(reason: Error): void
  /** Names the incarnation under which this process registers with the database. */
  announce(incarnation: string): void
}

/** One worker's server. */
export interface App {
  listen(): Promise<{ addresses: readonly string[] }>
  /** Another worker wrote: poll now. */
  nudged(): void
  /** Stops accepting, finishes requests, disposes everything. */
  drain(): Promise<void>
  seal(sealed: boolean): void
  /** Deletes what ended processes of this node left registered. */
  ended(incarnations: readonly string[]): Promise<void>
}

const anchorEverySeconds = 3600
const proveEverySeconds = 5
/** Keys that strict mode may keep as token objects, where the token cannot wrap them. */
export const residentLimit = 500

/** The composition root of a worker: builds everything by hand, in the order in which each part needs the one before. */
export async function createApp(options: AppOptions): Promise<App> {
  const { config, clock, log } = options
  if (options.sealed) throw unavailable('this node was sealed, and unsealing is not available yet')
  await proveListVerb()
  await using built = new AsyncDisposableStack()
  const database = built.use(await openDatabase(options, options.nudge))
  const hsm = built.use(await openHsm(options, options.onFatal))
  const custody = built.use(await openCustody(options, database, hsm))
  options.announce(database.incarnation)
  await database.start()
  const pipeline = assemble(options, { database, hsm, custody })
  const runner = built.use(new Runner({ database, clock, log }))
  for (const job of custody.jobs) runner.lead(job)
  runner.each('prove KEKs', proveEverySeconds, () => custody.rotation.prove())
  // Every node anchors in its own tokens, one of its workers at a time.
  const anchor = async () => void (await custody.anchor())
  runner.lead({ name: `anchor ${hsm.token.serial}`, everySeconds: anchorEverySeconds, run: anchor }, { atEnd: true })
  const parts = built.move()
  let listeners: readonly Listener[] = []
  return {
    async listen() {
      listeners = await openListeners(config, pipeline, log)
      return { addresses: listeners.map(({ address }) => address) }
    },
    nudged: () => database.nudged(),
    async drain() {
      await Promise.all(listeners.map((listener) => listener.close(config.limits.drainSeconds * 1000)))
      await parts.disposeAsync()
    },
    seal() {
      throw unavailable('sealing is not available yet')
    },
    ended: (incarnations) => database.forget(incarnations),
  }
}

/**
 * The cluster's keys, from a database whose schema this program can read.
 * @param acceptRestore the operator vouches for a database that is behind what the token remembers
 */
export function openCustody(
  { config, log, clock }: Ground,
  database: Database,
  hsm: Hsm,
  acceptRestore = false,
): Promise<Custody> {
  return Custody.open({
    acceptRestore,
    ...{ hsm, database, clock, log, residentLimit },
    strict: config.strict,
    fips: config.fips,
    handleLimit: config.caches.handles,
  })
}

function assemble(
  { config, clock, log }: AppOptions,
  { database, hsm, custody }: { database: Database; hsm: Hsm; custody: Custody },
): Pipeline {
  const policies = new Policies({ database, clock })
  const tokens = new Tokens({ database, clock, keys: custody, epoch: custody.epoch, onRevoke: async () => {} })
  const engines = new Map<string, Engine>()
  for (const engine of [createTransit({ database, custody, clock, ringLimit: config.caches.rings }), createPki()]) {
    engines.set(engine.type, engine)
  }
  const builtin = [
    { path: 'sys/', type: 'system', description: 'system endpoints' },
    { path: 'auth/token/', type: 'token', description: 'token based credentials' },
  ]
  const mounts = createMounts({ database, engines, builtin, clock })
  const status = {
    clusterName: custody.cluster.name,
    clusterId: custody.cluster.id,
    clock,
    sealed: () => false,
    hsmHealthy: () => hsm.healthy,
  }
  const system = createSystem({ status, mounts, policies, engines })
  const authenticator = createAuthenticator({ tokens, policies })
  return createPipeline({
    mounts,
    authenticator,
    engines: new Map([...engines, ['system', system], ['token', tokenMethod({ tokens, policies, clock })]]),
    log,
  })
}

function openListeners(config: Config, pipeline: Pipeline, log: Ground['log']): Promise<Listener[]> {
  return Promise.all(
    config.listeners.map((listener) => {
      const { tls, ...rest } = listener
      return openListener({ ...rest, ...(tls ? { tls } : {}) }, { pipeline, log, limits: config.limits })
    }),
  )
}
