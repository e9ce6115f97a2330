import type { Clock } from '../clock.ts'

/** All in milliseconds. */
const firstPause = 100
const longestPause = 5000
/** A channel that works for so long has recovered. */
const steady = 1000

/** When a channel that failed may be tried again: 100 ms later at first, then twice as long each time, up to 5 s. */
export class Backoff {
  readonly #clock: Clock
  #pause = 0
  #notBefore = 0
  #since = 0
  #reason: unknown

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @throws the last failure, while it is too early to try again */
  check(): void {
    if (this.#pause > 0 && this.#clock.monotonic() < this.#notBefore) throw this.#reason
  }

  /** It works now. */
  began(): void {
    this.#since = this.#clock.monotonic()
  }

  /** It may be tried at once, whatever happened before. */
  reset(): void {
    this.#pause = 0
  }

  /** It has failed, or ended. */
  failed(reason: unknown): void {
    const now = this.#clock.monotonic()
    const recovered = this.#since > 0 && now - this.#since >= steady
    this.#since = 0
    this.#pause = recovered || this.#pause === 0 ? firstPause : Math.min(longestPause, 2 * this.#pause)
    this.#notBefore = now + this.#pause
    this.#reason = reason
  }
}

/** @throws Error when it takes longer. @param late is called then */
export async function within<T>(milliseconds: number, work: Promise<T>, late: () => void): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    reject(new Error(`it took longer than ${milliseconds} ms`))
    late()
  }, milliseconds)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
    work.catch(() => undefined)
  }
}
