import type { Clock } from '../../../clock.ts'
import { unavailable } from '../../../errors.ts'

const streamsAtOnce = 16
/** Time between the promise of an answer and its first byte, in which audit writes a line. */
const promisedMilliseconds = 1000
/**
 * Slower clients are cut off, after a first minute: they hold a place that others wait for, and segments of a list that
 * was replaced meanwhile are kept for ten minutes.
 */
const slowestBytesPerSecond = 128 * 1024
const startMilliseconds = 60_000
const retryAfterSeconds = 5

/** Limits the long lists that a worker sends at once: each holds a segment in memory. */
export class Streams {
  readonly #clock: Clock
  readonly #most: number
  #begun = 0
  /** Times of promises whose answers have not begun. */
  #promised: number[] = []

  constructor(clock: Clock, most: number = streamsAtOnce) {
    this.#clock = clock
    this.#most = most
  }

  /** Promises a place. @throws ApiError 503 while all are taken */
  promise(): void {
    const now = this.#clock.monotonic()
    this.#promised = this.#promised.filter((at) => now - at < promisedMilliseconds)
    if (this.#begun + this.#promised.length >= this.#most) {
      throw unavailable(`this worker already sends ${this.#most} long lists`, { retryAfterSeconds })
    }
    this.#promised.push(now)
  }

  /**
   * Passes on what a client reads, as long as it reads.
   * @param length of everything, in bytes
   * @throws {Error} for a client that is too slow
   */
  async *send(length: number, parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
    const began = this.#clock.monotonic()
    const last = began + startMilliseconds + (length / slowestBytesPerSecond) * 1000
    this.#promised.shift()
    this.#begun++
    try {
      for await (const part of parts) {
        if (this.#clock.monotonic() > last) throw new Error('a client read a list too slowly')
        yield part
      }
    } finally {
      this.#begun--
    }
  }
}
