import type { Socket } from 'node:net'
import type { Clock } from '../clock.ts'
import type { Config, Secrets } from '../config.ts'
import type { Logger } from '../log.ts'
import { Slots } from '../store/coherence/slots.ts'
import type { SharedLogPlace } from '../workload.ts'
import { Child, sharedLogDescriptor } from './child.ts'
import { type Envelope, unwrapMessage } from './envelope.ts'
import type { FromWorker } from './messages.ts'
import type { Member } from './plan.ts'
import { type Role, type Timing, verdict, wasSuspended } from './policy.ts'

export interface Scripts {
  readonly worker: URL
  readonly standIn: URL
}

export interface FleetOptions {
  readonly scripts: Scripts
  readonly clock: Clock
  readonly log: Logger
  /** As ChildOptions.hiddenDescriptors. */
  readonly hiddenDescriptors: number
  /** The most workers at a time, as expected: memory for their shared log is taken at once. */
  readonly workers: number
  onMessage(child: Child, message: FromWorker): void
  onEnd(child: Child, ending: string): void
  /** As ChildOptions.onReturned. */
  onReturned(address: string, connection: Socket): void
}

/** The start parameters of a process. */
export interface Launch {
  readonly config: Config
  readonly secrets: Secrets
  readonly sealed: boolean
  readonly generation: number
}

/** The processes of the node and their health; decisions about them are made elsewhere. */
export class Fleet {
  readonly #options: FleetOptions
  readonly #children = new Map<number, Child>()
  #slots: Slots | undefined
  #lastId = 0
  #lastExamined: number

  constructor(options: FleetOptions) {
    this.#options = options
    this.#lastExamined = options.clock.monotonic()
    this.#slots = openSlots(options.log, options.workers)
  }

  /** In the shared log. A worker without one serves, but changes wait for its polls. */
  #place(): SharedLogPlace | undefined {
    try {
      return this.#slots?.take(new Set(this.all.map(({ sharedLog }) => sharedLog?.slot)), sharedLogDescriptor)
    } catch (err) {
      this.#options.log.warn({ err }, withoutLog)
      return undefined
    }
  }

  /** No worker will start any more: the shared log is theirs alone. */
  retire(): void {
    this.#slots?.[Symbol.dispose]()
    this.#slots = undefined
  }

  get all(): readonly Child[] {
    return [...this.#children.values()]
  }

  /** Workers that are not leaving. */
  get workers(): readonly Child[] {
    return this.all.filter((child) => child.role === 'worker' && child.phase !== 'leaving')
  }

  get serving(): readonly Child[] {
    return this.workers.filter((child) => child.phase === 'ready')
  }

  /** Processes that are given connections: workers, or the stand-in while none serves. */
  get takers(): readonly Child[] {
    const { serving } = this
    return serving.length > 0 ? serving : this.all.filter((child) => child.phase === 'ready')
  }

  /** Workers that have metrics, including those being drained. */
  get measuring(): readonly Child[] {
    return this.all.filter((child) => child.role === 'worker' && child.phase !== 'starting')
  }

  /** As planning sees them: a child of an earlier generation, or grown too big, is stale. */
  members(generation: number): Member[] {
    return this.all.map((child) => ({
      id: child.id,
      role: child.role,
      phase: child.phase,
      fresh: child.generation === generation && !child.oversized,
    }))
  }

  start(role: Role, { config, secrets, sealed, generation }: Launch): Child {
    const { scripts, clock, log } = this.#options
    const sharedLog = role === 'worker' ? this.#place() : undefined
    const child = new Child({
      id: ++this.#lastId,
      role,
      script: scripts[role],
      environment: role === 'worker' ? config.pkcs11.environment : {},
      addresses: config.listeners.map(({ address }) => address),
      hiddenDescriptors: this.#options.hiddenDescriptors,
      descriptor: this.#slots?.descriptor,
      sharedLog,
      generation,
      now: clock.monotonic(),
      onMessage: (envelope) => this.#receive(child, envelope),
      onEnd: (ending) => {
        this.#children.delete(child.id)
        this.#options.onEnd(child, ending)
      },
      onReturned: (address, connection) => {
        if (child.full)
          log.warn({ worker: child.id }, 'worker has no descriptor left: it is offered a connection a second')
        this.#options.onReturned(address, connection)
      },
    })
    this.#children.set(child.id, child)
    log.info({ worker: child.id, workerPid: child.pid, role }, 'process started')
    // The stand-in gets no secret.
    const revealed = role === 'worker' ? secrets.reveal() : { pin: '' }
    child.send({ type: 'start', config, secrets: revealed, sealed, sharedLog })
    return child
  }

  #receive(child: Child, envelope: Envelope<FromWorker>): void {
    let message: FromWorker
    try {
      message = unwrapMessage(envelope)
    } catch (error) {
      child.failure ??= { reason: (error as Error).message, kind: 'other' }
      child.kill()
      return
    }
    this.#options.onMessage(child, message)
  }

  drain(id: number): void {
    const child = this.#children.get(id)
    child?.enter('leaving', this.#options.clock.monotonic())
    child?.send({ type: 'drain' })
  }

  /** Examines every process once; returns those to be killed, with the reason. */
  examine(timing: Timing): { child: Child; reason: string }[] {
    const now = this.#options.clock.monotonic()
    const late = wasSuspended(now - this.#lastExamined, timing)
    this.#lastExamined = now
    const doomed: { child: Child; reason: string }[] = []
    for (const child of this.all) {
      if (late) child.lastBeat = now
      const found = verdict(child, now, timing)
      if (found === 'silent' || found === 'overdue') doomed.push({ child, reason: `${found} while ${child.phase}` })
      if (found === 'oversized' && !child.oversized) {
        child.oversized = true
        this.#options.log.warn({ worker: child.id, rssBytes: child.rssBytes }, 'worker is above its memory limit')
      }
    }
    return doomed
  }
}

const withoutLog = 'a worker cannot share memory with the others: each change waits for polls'

function openSlots(log: Logger, workers: number): Slots | undefined {
  try {
    return new Slots(workers)
  } catch (err) {
    log.warn({ err }, withoutLog)
    return undefined
  }
}
