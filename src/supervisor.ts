import { availableParallelism } from 'node:os'
import type { Clock } from './clock.ts'
import type { Config, Secrets } from './config.ts'
import type { Logger } from './log.ts'
import type { Child } from './supervisor/child.ts'
import { Fleet, type Scripts } from './supervisor/fleet.ts'
import { Gathering } from './supervisor/gathering.ts'
import type { FromWorker } from './supervisor/messages.ts'
import { Nudges } from './supervisor/nudges.ts'
import { plan } from './supervisor/plan.ts'
import { afterLoss, defaultTiming, noStarts, type Timing } from './supervisor/policy.ts'
import { Relay } from './supervisor/relay.ts'
import { Sealing } from './supervisor/sealing.ts'
import type { SealState } from './supervisor/state.ts'

export interface SupervisorOptions {
  readonly config: Config
  readonly secrets: Secrets
  readonly log: Logger
  readonly clock: Clock
  readonly sealState: SealState
  /** Called once, when as many workers as configured serve. */
  onReady(addresses: readonly string[]): void
  readonly scripts?: Scripts
  readonly timing?: Partial<Timing>
}

const ownScripts: Scripts = {
  worker: new URL('worker.ts', import.meta.url),
  standIn: new URL('unavailable.ts', import.meta.url),
}
/** A worker cuts off its clients when its time is up, and then has this long to let go of token and database. */
const farewellMilliseconds = 5000
const standInPauseMilliseconds = 1000

/**
 * The parent of a node's processes: starts, watches, replaces and drains them, and carries messages between them. It
 * never loads the PKCS#11 module and has no database, so that nothing a token or a query does can hang or kill it.
 */
export class Supervisor {
  /** The exit code, once every process has ended. */
  readonly ended: Promise<number>
  readonly #end: (code: number) => void
  readonly #options: SupervisorOptions
  readonly #fleet: Fleet
  readonly #sealing: Sealing<Child>
  readonly #relay: Relay<Child>
  readonly #nudges: Nudges
  readonly #gathering = new Gathering<Child>()
  readonly #ticker: NodeJS.Timeout
  #config: Config
  #secrets: Secrets
  #generation = 0
  #starts = noStarts
  #standInNotBefore = 0
  #announced = false
  #stopping = false

  constructor(options: SupervisorOptions) {
    const ended = Promise.withResolvers<number>()
    this.ended = ended.promise
    this.#end = ended.resolve
    this.#options = options
    this.#config = options.config
    this.#secrets = options.secrets
    this.#sealing = new Sealing(options.sealState)
    this.#fleet = new Fleet({
      scripts: options.scripts ?? ownScripts,
      clock: options.clock,
      log: options.log,
      onMessage: (child, message) => this.#receive(child, message),
      onEnd: (child, ending) => this.#onEnd(child, ending),
    })
    this.#relay = new Relay(
      () => this.#fleet.serving,
      () => this.#fleet.measuring,
    )
    this.#nudges = new Nudges(() => this.#relay.poll(), options.log)
    this.#nudges.configure(options.config.cluster.nudge)
    this.#ticker = setInterval(() => this.#tick(), this.#timing.tickMilliseconds)
    this.#act()
  }

  /** Drains every process; those that have not ended by the deadline are killed. */
  stop(): void {
    this.#stopping = true
    this.#act()
  }

  /** Ends everything at once. */
  kill(): void {
    for (const child of this.#fleet.all) child.kill()
    this.stop()
  }

  /** Goes over to a new configuration: each worker is replaced by one that has it, the new one up first. */
  replace(config: Config, secrets: Secrets): void {
    this.#config = config
    this.#nudges.configure(config.cluster.nudge)
    this.#secrets = secrets
    this.#generation++
    this.#starts = { ...this.#starts, pinRefused: false, notBefore: 0 }
    this.#act()
  }

  get #now(): number {
    return this.#options.clock.monotonic()
  }

  get #timing(): Timing {
    const { drainSeconds, workerMemoryMebibytes } = this.#config.limits
    return {
      ...defaultTiming,
      drainMilliseconds: drainSeconds * 1000 + farewellMilliseconds,
      rssLimitBytes: workerMemoryMebibytes * 2 ** 20,
      ...this.#options.timing,
    }
  }

  get #wanted(): number {
    return this.#config.workers === 'auto' ? availableParallelism() : this.#config.workers
  }

  #tick(): void {
    for (const { child, reason } of this.#fleet.examine(this.#timing)) this.#discard(child, reason)
    for (const child of this.#sealing.late(this.#now)) this.#discard(child, 'holds its keys though the node is sealed')
    // A sealed node has no database to tidy: what ended before the seal is said again when it is open.
    if (!this.#options.sealState.sealed) this.#relay.remind()
    this.#act()
  }

  #act(): void {
    const { served, notBefore, pinRefused } = this.#starts
    const steps = plan({
      members: this.#fleet.members(this.#generation),
      // The first one alone shows whether the configuration serves at all.
      wanted: served ? this.#wanted : 1,
      mayStart: !pinRefused && this.#now >= notBefore,
      mayStandIn: served && this.#now >= this.#standInNotBefore,
      stopping: this.#stopping,
    })
    for (const step of steps) {
      if (step.do === 'drain') this.#fleet.drain(step.id)
      else this.#fleet.start(step.role, this.#launch)
    }
    if (this.#stopping && this.#fleet.all.length === 0) {
      clearInterval(this.#ticker)
      this.#nudges.close()
      this.#end(this.#starts.hopeless ? 1 : 0)
    }
  }

  get #launch() {
    const { sealed } = this.#options.sealState
    return { config: this.#config, secrets: this.#secrets, sealed, generation: this.#generation }
  }

  #receive(child: Child, message: FromWorker): void {
    switch (message.type) {
      case 'beat':
        child.lastBeat = this.#now
        child.rssBytes = message.rssBytes
        break
      case 'ready':
        this.#admit(child, message.addresses)
        break
      case 'failed':
        child.failure = message
        break
      case 'versions':
        this.#relay.carry(child, message.message)
        if (message.message.kind === 'written') this.#nudges.send()
        break
      case 'incarnation':
        child.incarnations.push(message.id)
        break
      case 'forgotten':
        this.#relay.forgotten(message.ids)
        break
      case 'seal':
        this.#seal(child, message.sealed)
        break
      case 'sealed':
        this.#sealing.followed(child, message.sequence)
        break
      case 'gather':
        this.#gathering.request(child, this.#fleet.measuring)
        break
      case 'measured':
        this.#gathering.measured(child, message.sequence, message.snapshot)
    }
  }

  #seal(requester: Child | undefined, sealed: boolean): void {
    this.#options.log.warn({ worker: requester?.id, sealed }, 'seal state of this node changes')
    // One that is being drained still holds its keys.
    const { all, workers } = this.#fleet
    const followers = sealed ? all.filter((child) => child.role === 'worker') : workers
    this.#sealing.request(requester, sealed, followers, this.#now)
  }

  #admit(child: Child, addresses: readonly string[]): void {
    if (child.phase !== 'starting') return
    child.enter('ready', this.#now)
    child.lastBeat = this.#now
    if (child.role === 'worker') this.#starts = { ...this.#starts, served: true }
    this.#options.log.info({ worker: child.id, role: child.role, addresses }, 'process serves')
    if (!this.#announced && this.#fleet.serving.length >= this.#wanted) {
      this.#announced = true
      this.#options.onReady(addresses)
    }
    this.#relay.remind()
    this.#act()
  }

  /** A process that does not answer is killed; another takes its place at once, whether the kill takes or not. */
  #discard(child: Child, reason: string): void {
    child.kill()
    if (child.phase !== 'leaving') this.#lose(child, reason)
    child.enter('leaving', this.#now)
  }

  #onEnd(child: Child, ending: string): void {
    if (child.phase === 'leaving') this.#options.log.info({ worker: child.id, ending }, 'process ended')
    else this.#lose(child, child.failure?.reason ?? ending)
    this.#sealing.gone(child)
    this.#gathering.gone(child)
    this.#relay.departed(child.incarnations)
    this.#act()
  }

  #lose(child: Child, reason: string): void {
    const { log } = this.#options
    log.error({ worker: child.id, role: child.role, phase: child.phase, reason }, 'process is lost')
    if (child.role === 'standIn') {
      this.#standInNotBefore = this.#now + standInPauseMilliseconds
      return
    }
    this.#starts = afterLoss(this.#starts, child, this.#now)
    setTimeout(() => this.#act(), this.#starts.notBefore - this.#now).unref()
    // Whoever still waits to be unsealed would try the same PIN.
    if (this.#starts.pinRefused && this.#sealing.unsealing) this.#seal(undefined, true)
    if (this.#starts.hopeless) {
      log.fatal({ reason }, 'the server cannot start')
      this.#stopping = true
    }
  }
}
