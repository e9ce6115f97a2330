import type { Clock } from './clock.ts'
import { workersOf } from './config/workers.ts'
import type { Config, Secrets } from './config.ts'
import type { Logger } from './log.ts'
import { type InFlightRequest, longestUnderWay } from './metrics/inflight.ts'
import { Acceptor } from './supervisor/acceptor.ts'
import { Child } from './supervisor/child.ts'
import { Fleet, type Scripts } from './supervisor/fleet.ts'
import { Gathering } from './supervisor/gathering.ts'
import { hiddenDescriptors, type Inherited } from './supervisor/listening.ts'
import type { FromWorker } from './supervisor/messages.ts'
import { Nudges } from './supervisor/nudges.ts'
import type { Output } from './supervisor/output.ts'
import { plan } from './supervisor/plan.ts'
import { afterLoss, noStarts, type Role, type Timing, timingOf } from './supervisor/policy.ts'
import { Relay } from './supervisor/relay.ts'
import { Rounds } from './supervisor/rounds.ts'
import { Sealing } from './supervisor/sealing.ts'
import type { SealState } from './supervisor/state.ts'
import type { PeerMessage } from './supervisor/upgrade/handover.ts'
import type { Peer } from './supervisor/upgrade/peer.ts'

export interface SupervisorOptions {
  readonly config: Config
  readonly secrets: Secrets
  readonly log: Logger
  readonly clock: Clock
  readonly sealState: SealState
  /** Listening sockets that exist already, by the address of their listener. */
  readonly inherited?: ReadonlyMap<string, Inherited>
  /** The supervisor from which this one takes over: it listens when all of its workers serve, and not before. */
  readonly peer?: Peer
  /** Called with the reason when no worker ever served. */
  onFailure?(reason: string): void
  /** Standard output. */
  readonly output: Output
  /** Called when one worker more serves. */
  onProgress?(): void
  /** Called once, when as many workers as configured serve. */
  onReady(addresses: readonly string[]): void
  readonly scripts?: Scripts
  readonly timing?: Partial<Timing>
}

const ownScripts: Scripts = {
  worker: new URL('worker.ts', import.meta.url),
  standIn: new URL('unavailable.ts', import.meta.url),
}
const standInPauseMilliseconds = 1000

/**
 * The parent of a node's processes: starts, watches, replaces and drains them, and carries messages between them. It
 * never loads the PKCS#11 module and has no database, so that no token and no query can hang or kill it.
 */
export class Supervisor {
  /** The exit code, once every process has ended. */
  readonly ended: Promise<number>
  readonly #end: (code: number) => void
  readonly #options: SupervisorOptions
  readonly #fleet: Fleet
  readonly #sealing: Sealing<Child | Peer>
  readonly #relay: Relay<Child>
  readonly #acceptor: Acceptor
  readonly #nudges: Nudges
  readonly #gathering = new Gathering<Child>()
  readonly #listings = new Rounds<Child, readonly InFlightRequest[]>()
  readonly #ticker: NodeJS.Timeout
  #config: Config
  #secrets: Secrets
  #generation = 0
  #starts = noStarts
  #standInNotBefore = 0
  /** The most workers that have served at a time. */
  #mostServing = 0
  #announced = false
  /** The other supervisor of an upgrade. */
  #peer: Peer | undefined
  /** Whether a listener is missing. */
  #unheard = false
  #announcedEnd = false
  #stopping = false

  constructor(options: SupervisorOptions) {
    const ended = Promise.withResolvers<number>()
    this.ended = ended.promise
    this.#end = ended.resolve
    this.#options = options
    this.#config = options.config
    this.#secrets = options.secrets
    this.#peer = options.peer
    this.#sealing = new Sealing(options.sealState)
    this.#fleet = new Fleet({
      scripts: options.scripts ?? ownScripts,
      clock: options.clock,
      log: options.log,
      hiddenDescriptors: hiddenDescriptors(options.inherited, options.peer !== undefined),
      // Each may be replaced by another one that starts beside it.
      workers: 2 * workersOf(options.config),
      onMessage: (child, message) => this.#receive(child, message),
      onEnd: (child, ending) => this.#onEnd(child, ending),
      onReturned: (address, connection) => this.#acceptor.returned(address, connection),
    })
    this.#relay = new Relay(
      () => this.#fleet.serving,
      () => this.#fleet.measuring,
    )
    this.#acceptor = new Acceptor(() => this.#fleet.takers, options.inherited)
    this.#nudges = new Nudges(() => this.#relay.poll(), options.log)
    this.#nudges.configure(options.config.cluster.nudge)
    this.#ticker = setInterval(() => this.#tick(), this.#timing.tickMilliseconds)
    this.#act()
  }

  /**
   * Announces the end in sys/health for as long as configured, then drains every process; those that have not ended by
   * the deadline are killed.
   */
  stop(): void {
    if (this.#stopping) return
    const { announceSeconds } = this.#config.drain
    if (announceSeconds === 0 || !this.#starts.served) this.#drain()
    else if (!this.#announcedEnd) {
      this.#announcedEnd = true
      this.#options.log.info(`this node ends: sys/health says so for ${announceSeconds} s`)
      for (const child of this.#fleet.all) child.send({ type: 'announceEnd' })
      setTimeout(() => this.#drain(), announceSeconds * 1000)
    }
  }

  #drain(): void {
    this.#stopping = true
    // A supervisor that never took over leaves the sockets to the running server.
    this.#acceptor.close(this.#options.peer && !this.#announced ? 'bound here' : 'all')
    this.#act()
  }

  /** Ends everything at once. */
  kill(): void {
    for (const child of this.#fleet.all) child.kill()
    this.#drain()
  }

  /** Changes to a new configuration: each worker is replaced by one that has it, which is started first. */
  replace(config: Config, secrets: Secrets): void {
    this.#config = config
    this.#nudges.configure(config.cluster.nudge)
    this.#secrets = secrets
    this.#generation++
    this.#starts = { ...this.#starts, pinRefused: false, notBefore: 0 }
    this.#act()
  }

  /** Whether every worker served once. */
  get started(): boolean {
    return this.#announced
  }

  /** Whether every worker serves and no end was requested. */
  get serving(): boolean {
    return this.#announced && !this.#stopping && !this.#announcedEnd
  }

  get sockets(): Acceptor['sockets'] {
    return this.#acceptor.sockets
  }

  /** Another supervisor starts beside this one: from now on both are sealed and unsealed together. */
  meet(peer: Peer): void {
    this.#peer = peer
  }

  /** The other supervisor is gone. */
  leave(peer: Peer | undefined): void {
    if (peer) this.#sealing.gone(peer)
    if (this.#peer === peer) this.#peer = undefined
  }

  hearPeer(message: PeerMessage): void {
    if (this.#peer === undefined) return
    if (message.type === 'sealed') this.#sealing.followed(this.#peer, message.sequence)
    else {
      this.#peer.asks(message.sequence)
      this.#seal(this.#peer, message.sealed)
    }
  }

  /** Another supervisor serves on the same sockets: drains every process, unannounced. */
  retire(): void {
    this.#nudges.close()
    this.#fleet.retire()
    this.#stopping = true
    this.#acceptor.close('none')
    this.#act()
  }

  /** Whether no worker starts because the token refused the PIN. */
  get pinRefused(): boolean {
    return this.#starts.pinRefused
  }

  /** Every worker reopens its audit files, including those that are starting or being drained. */
  reopen(): void {
    for (const child of this.#fleet.all) if (child.role === 'worker') child.send({ type: 'reopen' })
  }

  get #now(): number {
    return this.#options.clock.monotonic()
  }

  get #timing(): Timing {
    return { ...timingOf(this.#config.limits), ...this.#options.timing }
  }

  get #wanted(): number {
    return workersOf(this.#config)
  }

  #tick(): void {
    for (const { child, reason } of this.#fleet.examine(this.#timing)) this.#discard(child, reason)
    for (const late of this.#sealing.late(this.#now)) {
      if (late instanceof Child) this.#discard(late, 'holds its keys though the node is sealed')
      else late.kill()
    }
    // A sealed node has no database to tidy: processes that ended before are reported again once it is unsealed.
    if (!this.#options.sealState.sealed) this.#relay.remind()
    if (this.#unheard) void this.#listen()
    this.#act()
  }

  #act(): void {
    const { served, notBefore, pinRefused } = this.#starts
    const steps = plan({
      members: this.#fleet.members(this.#generation),
      // The first worker alone shows whether the configuration works at all.
      wanted: served ? this.#wanted : 1,
      mayStart: !pinRefused && this.#now >= notBefore,
      mayStandIn: served && this.#now >= this.#standInNotBefore,
      stopping: this.#stopping,
    })
    for (const step of steps) {
      if (step.do === 'drain') this.#fleet.drain(step.id)
      else this.#start(step.role)
    }
    if (this.#stopping && this.#fleet.all.length === 0) {
      clearInterval(this.#ticker)
      this.#nudges.close()
      this.#end(this.#starts.hopeless ? 1 : 0)
    }
  }

  #start(role: Role): void {
    const { sealed } = this.#options.sealState
    const started = { config: this.#config, secrets: this.#secrets, sealed, generation: this.#generation }
    const child = this.#fleet.start(role, started)
    if (this.#announcedEnd) child.send({ type: 'announceEnd' })
  }

  #receive(child: Child, message: FromWorker): void {
    switch (message.type) {
      case 'beat':
        child.beat(this.#now, message.rssBytes)
        this.#acceptor.distribute()
        break
      case 'ready':
        this.#admit(child)
        break
      case 'taken':
        child.taken()
        this.#acceptor.distribute()
        break
      case 'failed':
        child.failure = message
        break
      case 'nudge':
        this.#nudges.send()
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
      case 'print': {
        const { sequence, lines } = message
        this.#options.output.write(lines, (written) => child.send({ type: 'printed', sequence, written }))
        break
      }
      case 'gather':
        this.#gathering.request(child, this.#fleet.measuring, message.question)
        break
      case 'measured':
        this.#gathering.measured(child, message.sequence, message.snapshot)
        break
      case 'askRequests':
        this.#listRequests(child, message.question)
        break
      case 'listed':
        this.#listings.answered(child, message.sequence, message.requests)
    }
  }

  #listRequests(requester: Child, question: number | undefined): void {
    const put = (worker: Child, sequence: number): void => worker.send({ type: 'listRequests', sequence })
    this.#listings.ask(this.#fleet.measuring, put, (lists, silent) =>
      requester.send({ type: 'requests', requests: longestUnderWay(lists), missing: silent.length, question }),
    )
  }

  #seal(requester: Child | Peer | undefined, sealed: boolean): void {
    const worker = requester instanceof Child ? requester.id : undefined
    this.#options.log.warn({ worker, sealed }, 'seal state of this node changes')
    // A worker that is being drained still holds its keys.
    const { all, workers } = this.#fleet
    const followers: (Child | Peer)[] = sealed ? all.filter((child) => child.role === 'worker') : [...workers]
    if (this.#peer && this.#peer !== requester) followers.push(this.#peer)
    const problem = this.#sealing.request(requester, sealed, followers, this.#now)
    if (problem) this.#options.log.error({ error: problem }, 'the seal state of this node cannot be written')
  }

  #admit(child: Child): void {
    if (child.phase !== 'starting') return
    child.enter('ready', this.#now)
    child.lastBeat = this.#now
    if (child.role === 'worker') this.#starts = { ...this.#starts, served: true }
    this.#options.log.info({ worker: child.id, role: child.role }, 'process serves')
    if (this.#fleet.serving.length > this.#mostServing) this.#options.onProgress?.()
    this.#mostServing = Math.max(this.#mostServing, this.#fleet.serving.length)
    this.#acceptor.distribute()
    void this.#listen()
    this.#relay.remind()
    this.#act()
  }

  /** Opens the listeners of the current configuration, the first time when a worker serves. */
  async #listen(): Promise<void> {
    const { listeners } = this.#config
    const { log, onReady, peer } = this.#options
    if (peer && !this.#announced && this.#fleet.serving.length < this.#wanted) return
    try {
      await this.#acceptor.listen(listeners.map(({ address }) => address))
    } catch (error) {
      if (!this.#announced) this.#giveUp((error as Error).message)
      else if (!this.#unheard)
        log.error({ err: error }, 'a listener of the new configuration cannot be opened; trying again')
      this.#unheard = true
      return
    }
    this.#unheard = false
    if (this.#announced || this.#fleet.serving.length < this.#wanted) return
    this.#announced = true
    const { sockets } = this.#acceptor
    onReady(listeners.map(({ address, tls }) => sockets.get(address)?.shown(tls !== undefined) ?? address))
  }

  #giveUp(reason: string): void {
    this.#options.log.fatal({ reason }, 'the server cannot start')
    this.#options.onFailure?.(reason)
    this.#starts = { ...this.#starts, hopeless: true }
    this.#drain()
  }

  /** A process that does not answer is killed; another takes its place at once, whether or not the kill succeeds. */
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
    this.#listings.gone(child)
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
    setTimeout(() => this.#act(), Math.max(0, this.#starts.notBefore - this.#now)).unref()
    // Workers still waiting to be unsealed would try the same PIN.
    if (this.#starts.pinRefused && this.#sealing.unsealing) this.#seal(undefined, true)
    if (this.#starts.hopeless) this.#giveUp(reason)
  }
}
