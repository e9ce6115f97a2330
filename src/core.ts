import type { Clock } from './clock.ts'
import type { BodyLimit, Pipeline, RawReply, RawRequest } from './request/exchange.ts'
import type { MaybePromise } from './route.ts'

/** The part of a worker that needs keys. Disposing it ends the rest, after `dropKeys`. */
export interface UnsealedCore extends AsyncDisposable {
  readonly pipeline: Pipeline
  poll(): void
  /** Deletes the coherence registrations of processes that have ended. */
  forget(incarnations: readonly string[]): Promise<void>
  /** Reopens audit files that were moved. */
  reopen(): Promise<void>
  /** Drops every key and the token login. */
  dropKeys(): Promise<void>
}

/** An unsealed core and its requests under way. */
interface Serving {
  readonly core: UnsealedCore
  requests: number
  /** Those of them that wait for this worker to be sealed. */
  sealRequests: number
}

/** Time for requests to finish before the keys are dropped; the supervisor kills a worker that takes 5 s to seal. */
const graceMilliseconds = 2000
const pollMilliseconds = 10

/**
 * A worker that can be sealed: its requests go to the unsealed core's pipeline, or to the sealed one, which has neither
 * keys nor token. Sealing and unsealing happen one after the other.
 */
export class Core implements Pipeline {
  readonly #sealedPipeline: Pipeline
  readonly #clock: Clock
  #serving: Serving | undefined
  /** Takes no more requests, but finishes those under way. */
  #leaving: UnsealedCore | undefined
  #turn: Promise<unknown> = Promise.resolve()
  /** The last core's disposal, which waits until the request that sealed this worker is answered. */
  #disposal: Promise<void> = Promise.resolve()

  constructor(sealedPipeline: Pipeline, clock: Clock) {
    this.#sealedPipeline = sealedPipeline
    this.#clock = clock
  }

  /** Undefined while sealed. */
  get unsealed(): UnsealedCore | undefined {
    return this.#serving?.core
  }

  /** Polls: another node may have committed. */
  poll(): void {
    ;(this.unsealed ?? this.#leaving)?.poll()
  }

  /** Reopens audit files that were moved; also those of a core that is being built now. */
  async reopen(): Promise<void> {
    const current = this.unsealed ?? this.#leaving
    await current?.reopen()
    await this.#inTurn(async () => {
      if (this.unsealed !== current) await this.unsealed?.reopen()
    })
  }

  bodyLimit(request: RawRequest): MaybePromise<BodyLimit | undefined> {
    return this.#serving?.core.pipeline.bodyLimit?.(request)
  }

  refused(request: RawRequest): MaybePromise<RawReply | undefined> {
    return this.#serving?.core.pipeline.refused?.(request)
  }

  handle(request: RawRequest): MaybePromise<RawReply> {
    const serving = this.#serving
    if (serving === undefined) return this.#sealedPipeline.handle(request)
    const reply = serving.core.pipeline.handle(request)
    if (!(reply instanceof Promise)) return reply
    serving.requests++
    return reply.finally(() => {
      serving.requests--
    })
  }

  /**
   * Unseals; without effect if already unsealed.
   * @param build builds the unsealed core, logging in to the token; when it throws, this worker stays sealed
   */
  unseal(build: () => Promise<UnsealedCore>): Promise<void> {
    return this.#inTurn(async () => {
      await this.#disposal
      this.#serving ??= { core: await build(), requests: 0, sealRequests: 0 }
    })
  }

  /** Seals; resolves when keys and login are gone. */
  seal(): Promise<void> {
    return this.#inTurn(async () => {
      const serving = this.#serving
      this.#serving = undefined
      if (serving === undefined) return
      this.#leaving = serving.core
      await this.#until(() => serving.requests <= serving.sealRequests)
      await serving.core.dropKeys()
      this.#disposal = this.#dispose(serving)
    })
  }

  /**
   * Does work that waits for this worker to be sealed, on behalf of a request: sealing does not wait for that request.
   */
  async whileSealing<T>(work: () => Promise<T>): Promise<T> {
    const serving = this.#serving
    if (serving === undefined) return work()
    serving.sealRequests++
    try {
      return await work()
    } finally {
      serving.sealRequests--
    }
  }

  /** Seals permanently. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.seal()
    await this.#disposal
  }

  async #dispose(serving: Serving): Promise<void> {
    await this.#until(() => serving.requests === 0)
    await serving.core[Symbol.asyncDispose]()
    this.#leaving = undefined
  }

  async #until(holds: () => boolean): Promise<void> {
    const end = this.#clock.monotonic() + graceMilliseconds
    while (!holds() && this.#clock.monotonic() < end) await this.#clock.sleep(pollMilliseconds)
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work)
    this.#turn = result.catch(() => undefined)
    return result
  }
}
