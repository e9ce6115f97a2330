/** How slow a client may be. */
export interface Pace {
  /** A client that neither takes of its answer nor sends for so long is cut off. */
  readonly idleMilliseconds: number
  /** Bodies that come more slowly, and answers that are taken more slowly, are ended. */
  readonly leastBytesPerSecond: number
}

/** Over so long the rate is measured: networks have pauses. */
const spanMilliseconds = 10_000

/** How long is waited for a client to take so many bytes. */
export const timeFor = (pace: Pace, bytes: number): number =>
  Math.max(spanOf(pace), (bytes / pace.leastBytesPerSecond) * 1000)

/** Adds up the bytes that a client takes and the time spent waiting for it. */
export class TakenPace {
  readonly #pace: Pace
  #bytes = 0
  #waitedMilliseconds = 0

  constructor(pace: Pace) {
    this.#pace = pace
  }

  /** Adds bytes that were waited for, or not. @returns whether the client is fast enough */
  add(bytes: number, waitedMilliseconds: number): boolean {
    this.#bytes += bytes
    this.#waitedMilliseconds += waitedMilliseconds
    if (this.#waitedMilliseconds < spanOf(this.#pace)) return true
    const isFast = this.#bytes >= (this.#pace.leastBytesPerSecond * this.#waitedMilliseconds) / 1000
    this.#bytes = 0
    this.#waitedMilliseconds = 0
    return isFast
  }
}

const spanOf = ({ idleMilliseconds }: Pace): number => Math.min(spanMilliseconds, idleMilliseconds)

/**
 * Watches bytes come in.
 * @param received how many have come so far; undefined while we do not read
 * @param tooSlow called once, when fewer have come than must
 * @returns ends the watch
 */
export function watchPace(pace: Pace, received: () => number | undefined, tooSlow: () => void): () => void {
  const span = spanOf(pace)
  const least = (pace.leastBytesPerSecond * span) / 1000
  let before = received()
  let ended = false
  const check = (): void => {
    const now = received()
    const isSlow = now !== undefined && before !== undefined && now - before < least
    before = now
    if (ended || !isSlow) return
    end()
    tooSlow()
  }
  // After the bytes that wait at the socket were read: this thread itself may have been busy.
  const timer = setInterval(() => setImmediate(check), span)
  const end = (): void => {
    ended = true
    clearInterval(timer)
  }
  return end
}
