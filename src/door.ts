import type { Clock } from './clock.ts'
import type { Pipeline, RawReply, RawRequest } from './request/exchange.ts'
import type { MaybePromise } from './route.ts'

/** What stands behind the door: everything that needs keys. Disposing it ends what `lock` has left. */
export interface Interior extends AsyncDisposable {
  readonly pipeline: Pipeline
  /** Another worker wrote: poll now. */
  nudged(): void
  /** Deletes what ended processes of this node left registered. */
  ended(incarnations: readonly string[]): Promise<void>
  /** Drops every key and the login of the token. */
  lock(): Promise<void>
}

/** An interior, and the requests in it. */
interface Room {
  readonly interior: Interior
  inside: number
  /** Of those, the ones that wait for the door to be shut. */
  asking: number
}

/** How long requests may finish before the keys are taken from them; the supervisor kills who takes 5 s to seal. */
const graceMilliseconds = 2000
const lookMilliseconds = 10

/**
 * The way into a worker that may be sealed: the pipeline as a whole is the one of the interior, or the one that stands
 * outside and has neither keys nor token. Opening and shutting happen one after the other.
 */
export class Door implements Pipeline {
  readonly #outside: Pipeline
  readonly #clock: Clock
  #room: Room | undefined
  #turn: Promise<unknown> = Promise.resolve()
  /** What is left of the last interior, which ends when whoever asked for the door to be shut has his answer. */
  #leaving: Promise<void> = Promise.resolve()

  constructor(outside: Pipeline, clock: Clock) {
    this.#outside = outside
    this.#clock = clock
  }

  /** Undefined while the door is shut. */
  get interior(): Interior | undefined {
    return this.#room?.interior
  }

  handle(request: RawRequest): MaybePromise<RawReply> {
    const room = this.#room
    if (room === undefined) return this.#outside.handle(request)
    const reply = room.interior.pipeline.handle(request)
    if (!(reply instanceof Promise)) return reply
    room.inside++
    return reply.finally(() => {
      room.inside--
    })
  }

  /**
   * Opens unless it is open.
   * @param enter builds the interior, logging in to the token; when it throws, the door stays shut
   */
  open(enter: () => Promise<Interior>): Promise<void> {
    return this.#inTurn(async () => {
      await this.#leaving
      this.#room ??= { interior: await enter(), inside: 0, asking: 0 }
    })
  }

  /** Shuts; resolves when keys and login are gone. */
  shut(): Promise<void> {
    return this.#inTurn(async () => {
      const room = this.#room
      this.#room = undefined
      if (room === undefined) return
      await this.#until(() => room.inside <= room.asking)
      await room.interior.lock()
      this.#leaving = this.#leave(room)
    })
  }

  /** Runs work that waits for this door to be shut, for a request inside: shutting does not wait for that request. */
  async ask<T>(work: () => Promise<T>): Promise<T> {
    const room = this.#room
    if (room === undefined) return work()
    room.asking++
    try {
      return await work()
    } finally {
      room.asking--
    }
  }

  /** Shuts for good. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.shut()
    await this.#leaving
  }

  async #leave(room: Room): Promise<void> {
    await this.#until(() => room.inside === 0)
    await room.interior[Symbol.asyncDispose]()
  }

  async #until(holds: () => boolean): Promise<void> {
    const end = this.#clock.monotonic() + graceMilliseconds
    while (!holds() && this.#clock.monotonic() < end) await this.#clock.sleep(lookMilliseconds)
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work)
    this.#turn = result.catch(() => undefined)
    return result
  }
}
