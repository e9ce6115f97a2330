import { nextTurn } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import type { MaybePromise } from '../../../route.ts'

export interface AllowanceOptions {
  readonly clock: Clock
  /** Of this thread's time, what strangers' signatures may take. */
  readonly share?: number
  /** How much unused time they may take at once. */
  readonly burstMilliseconds?: number
  /** Signatures inside a token at the same time, where the token is asked from other threads. */
  readonly atOnce?: number
  /** Signatures that wait for their turn. */
  readonly mostWaiting?: number
}

/** Too many wait already. */
export class Exhausted extends Error {}

/** Between two looks at whether the next one may go on. */
const shortestRestMilliseconds = 2

/**
 * What strangers may spend of a CA's key: signatures that anybody can ask for take a share of the worker's time and one place
 * in the token, so that however many are asked for, the work of those who have signed in goes on.
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

  /** Whether a signature may be made at this moment: there is time left, and nobody waits for it. */
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
    if (this.#waiting.length >= this.#mostWaiting) throw new Exhausted('too many signatures are asked for')
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

  /** Serves those who wait, and lets everybody else go first. */
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
