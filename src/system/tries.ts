import type { Clock } from '../clock.ts'
import { ApiError } from '../errors.ts'

const seconds = { 'a second': 1, 'an hour': 3600 } as const

/** What a node takes of something that may be guessed. */
export interface Allowed {
  readonly tries: number
  readonly in: keyof typeof seconds
  /** How many a worker takes one after the other, after a pause. */
  readonly atOnce: number
}

export interface TriesOptions {
  /** Processes of this node that share the allowance. */
  readonly workers: number
  readonly clock: Clock
  /** Default: four tries in a second. */
  readonly allowed?: Allowed
}

/**
 * A node's allowance of tries of a secret, of which each worker has its share. Successful ones count too, unless given
 * back.
 */
export class Tries {
  readonly #clock: Clock
  readonly #allowed: Allowed
  readonly #perSecond: number
  readonly #most: number
  readonly #what: string
  #left: number
  #last: number

  /** @param what for the refusal: `tries to unseal it` */
  constructor({ workers, clock, allowed }: TriesOptions, what: string) {
    this.#clock = clock
    this.#what = what
    this.#allowed = allowed ?? { tries: 4, in: 'a second', atOnce: 4 / workers }
    this.#perSecond = this.#allowed.tries / seconds[this.#allowed.in] / workers
    this.#most = Math.max(1, this.#allowed.atOnce)
    this.#left = this.#most
    this.#last = clock.monotonic()
  }

  /** @throws ApiError 429 when no try is left */
  take(): void {
    const now = this.#clock.monotonic()
    this.#left = Math.min(this.#most, this.#left + ((now - this.#last) * this.#perSecond) / 1000)
    this.#last = now
    if (this.#left < 1) {
      const { tries, in: period } = this.#allowed
      const wait = Math.ceil((1 - this.#left) / this.#perSecond)
      throw new ApiError(429, `this node takes ${tries} ${this.#what} in ${period}: try again in ${wait} s`, {
        retryAfterSeconds: wait,
      })
    }
    this.#left--
  }

  /** Takes back the last `take`, for a try that was no guess. */
  giveBack(): void {
    this.#left++
  }
}
