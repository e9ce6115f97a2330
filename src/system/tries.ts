import type { Clock } from '../clock.ts'
import { ApiError } from '../errors.ts'

/** The node's rate limit for tries of a secret, and its burst. */
const triesPerSecond = 4

/** A node's allowance of tries of a secret, of which each worker has its share. Successful ones count too. */
export class Tries {
  readonly #clock: Clock
  readonly #share: number
  readonly #most: number
  readonly #purpose: string
  #left: number
  #last: number

  /** @param workers processes of this node that share the allowance @param purpose for the refusal: `to unseal it` */
  constructor({ workers, clock }: { readonly workers: number; readonly clock: Clock }, purpose: string) {
    this.#clock = clock
    this.#purpose = purpose
    this.#share = triesPerSecond / workers
    this.#most = Math.max(1, this.#share)
    this.#left = this.#most
    this.#last = clock.monotonic()
  }

  /** @throws ApiError 429 when no try is left */
  take(): void {
    const now = this.#clock.monotonic()
    this.#left = Math.min(this.#most, this.#left + ((now - this.#last) * this.#share) / 1000)
    this.#last = now
    if (this.#left < 1) {
      throw new ApiError(429, `this node takes ${triesPerSecond} tries ${this.#purpose} in a second`, {
        retryAfterSeconds: 1,
      })
    }
    this.#left--
  }
}
