import type { Clock } from '../../clock.ts'
import type { ApiError } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import { type Counter, Metrics } from '../../metrics.ts'
import type { MaybePromise } from '../../route.ts'
import { Failure, type Fate, outcome, tokenLost } from '../faults.ts'
import type { Link } from './link.ts'
import { type Arguments, type Operation, operations, type Result } from './operations.ts'
import { recover } from './recovery.ts'
import type { Threads } from './threads.ts'

/** Told when handles of earlier epochs are void; the HSM is healthy again once all have resolved. */
export type EpochListener = (epoch: number) => MaybePromise<void>

export interface ServiceOptions {
  readonly log: Logger
  readonly clock: Clock
  readonly metrics?: Metrics
  /** A lost token is not waited for. */
  readonly foreign?: boolean
  onFatal(reason: Error): void
}

/**
 * Runs operations on the token, inline or in a thread, and reconnects to it when it is lost. Meanwhile every operation
 * is refused without a call.
 */
export class Service implements AsyncDisposable {
  readonly link: Link
  readonly executor: 'inline' | 'threads'
  /** False from the moment the token is lost until it is back and every epoch listener has finished. */
  healthy = true
  readonly #threads: Threads
  readonly #options: ServiceOptions
  readonly #listeners = new Set<EpochListener>()
  readonly #counts: Readonly<Record<Operation, Counter>>
  readonly #failures: (fate: Fate) => Counter
  #lost: Failure | undefined
  #closed = false

  constructor(link: Link, threads: Threads, executor: 'inline' | 'threads', options: ServiceOptions) {
    this.link = link
    this.executor = executor
    this.#threads = threads
    this.#options = options
    const metrics = options.metrics ?? new Metrics()
    this.#counts = countsIn(metrics)
    this.#failures = (fate) =>
      metrics.counter('strongroom.hsm.failures', 'Calls into the token that failed, by what came of it.', { fate })
    const healthy = () => (this.healthy ? 1 : 0)
    metrics.gauge('strongroom.hsm.healthy_workers', 'Workers whose token answers.', healthy)
  }

  get busy(): boolean {
    return this.#threads.busy
  }

  get lost(): boolean {
    return this.#lost !== undefined
  }

  /** Calls the listener at every new epoch, in the order of subscription. Returns a function that unsubscribes it. */
  onEpoch(listener: EpochListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** @throws ApiError 503 while the token is lost */
  check(): void {
    if (this.#lost !== undefined) throw tokenLost(this.#lost)
  }

  /**
   * One operation; in a thread, with copies of its arguments, when it is heavy or everything is.
   * @throws what `outcome` makes of a failure
   */
  perform<N extends Operation>(name: N, args: Arguments<N>, heavy: boolean): MaybePromise<Result<N>> {
    this.check()
    this.#counts[name].value++
    if (heavy || this.executor === 'threads') {
      const { token, epoch } = this.link
      return this.#threads.run(token.slot, epoch, name, args).catch((error: unknown) => {
        throw this.#settled(error)
      })
    }
    try {
      return this.link.connection.run(name, args)
    } catch (error) {
      throw this.#settled(error)
    }
  }

  /** As `Hsm.vanished`. */
  vanished(reason: string): ApiError {
    const failure = new Failure('lost', 0, reason)
    this.#lose(failure)
    return tokenLost(failure)
  }

  /** Another user of the module has ended our sessions. */
  invalidated(): void {
    this.#lose(new Failure('lost', 0, 'the module was renewed for another of its users'))
  }

  /** Ends threads and sessions. A call inside the token cannot be stopped: it is waited for. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    this.#lost = new Failure('lost', 0, 'the HSM is closed')
    this.healthy = false
    await this.#threads[Symbol.asyncDispose]()
    this.link.close()
  }

  #settled(error: unknown): unknown {
    if (!(error instanceof Failure)) return error
    this.#failures(error.fate).value++
    if (error.fate === 'lost') this.#lose(error)
    return outcome(error)
  }

  #lose(failure: Failure): void {
    if (this.#closed || this.#lost !== undefined) return
    const recovering = !this.healthy
    this.#lost = failure
    this.healthy = false
    this.#options.log.error({ reason: failure.message, serial: this.link.token.serial }, 'the HSM is lost')
    this.#threads.cancel(tokenLost(failure))
    if (!recovering && !this.#options.foreign) void this.#recover()
  }

  async #recover(): Promise<void> {
    const { clock, log, onFatal } = this.#options
    await recover({
      clock,
      log,
      onFatal,
      ended: () => this.#closed,
      busy: () => this.#threads.busy,
      reconnect: () => this.link.renew(),
      rebuild: () => this.#rebuild(),
    })
    this.healthy = this.#lost === undefined
  }

  /** Allows the listeners' own calls; false if the token was lost again during them. */
  async #rebuild(): Promise<boolean> {
    this.#lost = undefined
    try {
      for (const listener of this.#listeners) await listener(this.link.epoch)
    } catch (error) {
      this.#lost ??= new Failure('lost', 0, 'rebuilding the handles failed')
      throw error
    }
    return this.#lost === undefined
  }
}

const countsIn = (metrics: Metrics): Readonly<Record<Operation, Counter>> =>
  Object.fromEntries(
    Object.keys(operations).map((operation) => [
      operation,
      metrics.counter('strongroom.hsm.operations', 'Calls into the token, by operation.', { operation }),
    ]),
  ) as Record<Operation, Counter>
