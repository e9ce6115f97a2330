import { nextTurn } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import type { MaybePromise } from '../../../route.ts'

export interface AllowanceOptions {
  readonly clock: Clock
  /** The share of this thread's time for signatures that need no credentials. */
  readonly share?: number
  /** The most unused time that can be spent at once. */
  readonly burstMilliseconds?: number
  /** Signatures inside a token at the same time, for tokens called in other threads. */
  readonly atOnce?: number
  /** The most signatures waiting for their turn. */
  readonly mostWaiting?: number
}

/** Too many signatures wait already. */
export class Exhausted extends Error {}

/** The shortest pause before another check whether the next signature may begin. */
const shortestRestMilliseconds = 2

/**
 * A limit on signatures that need no credentials: together they get a share of the worker's time and one place in the
 * token, so that authenticated requests continue.
 */
export class Allowance {
  readonly #clock: Clock
  readonly #share: number
  readonly #burst: number
  readonly #atOnce: number
  readonly #mostWaiting: number
  readonly #waiting: (() => void)[] = []
  /** Milliseconds. */
  #credit: number
  #since: number
  #underWay = 0
  #serving = false

  constructor({ clock, share = 1 / 4, burstMilliseconds = 250, atOnce = 1, mostWaiting = 100 }: AllowanceOptions) {
    this.#clock = clock
    this.#share = share
    this.#burst = burstMilliseconds
    this.#atOnce = atOnce
    this.#mostWaiting = mostWaiting
    this.#credit = burstMilliseconds
    this.#since = clock.monotonic()
  }

  /** Whether a signature may be made at this moment: there is time and a place for it, and no other waits. */
  get open(): boolean {
    return this.#waiting.length === 0 && this.#free
  }

  /** Runs work at once. Only while `open`. */
  spend<T>(work: () => MaybePromise<T>): MaybePromise<T> {
    const began = this.#clock.monotonic()
    this.#underWay++
    let result: MaybePromise<T>
    try {
      result = work()
    } catch (error) {
      this.#underWay--
      throw error
    } finally {
      this.#credit -= this.#clock.monotonic() - began
    }
    if (result instanceof Promise) return result.finally(() => this.#underWay--)
    this.#underWay--
    return result
  }

  /**
   * Runs work when its turn comes; at once while `open`.
   * @throws Exhausted when too many wait
   */
  wait<T>(work: () => MaybePromise<T>): MaybePromise<T> {
    if (this.open) return this.spend(work)
    if (this.#waiting.length >= this.#mostWaiting) throw new Exhausted('too many signatures are waiting')
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          resolve(this.spend(work))
        } catch (error) {
          reject(error)
        }
      })
      void this.#serve()
    })
  }

  get #free(): boolean {
    const now = this.#clock.monotonic()
    this.#credit = Math.min(this.#burst, this.#credit + (now - this.#since) * this.#share)
    this.#since = now
    return this.#credit > 0 && this.#underWay < this.#atOnce
  }

  /** Serves the waiting signatures, each after all other work of the event loop. */
  async #serve(): Promise<void> {
    if (this.#serving) return
    this.#serving = true
    while (this.#waiting.length > 0) {
      await nextTurn()
      if (this.#free) this.#waiting.shift()?.()
      else await this.#clock.sleep(Math.max(shortestRestMilliseconds, -this.#credit / this.#share))
    }
    this.#serving = false
  }
}
