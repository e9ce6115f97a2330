import { setImmediate as turn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../clock.ts'
import type { Made } from './making.ts'

/** Sorts of keys that are made ahead at a time. */
const sortsHeld = 20
/** Of each sort. */
const mostReady = 16
/** A key made ahead is used within this time or never. */
const longestMilliseconds = 60_000

/**
 * Turns of the event loop before each: the statements of the request that took a key leave in the first or second
 * (store/group.ts), and the next key is made while the database works on them.
 */
const turnsBefore = 3

interface Sort {
  make: () => Promise<Made>
  readonly ready: { readonly made: Made; readonly at: number }[]
  /** How many to make. */
  wanted: number
}

/**
 * Wrapped keys, each made when the one before it of its sort was taken: requests that come one after the other wait for
 * no generation. They lie in memory as they would in the database, and nothing of them in the token.
 */
export class MadeAhead implements Disposable {
  readonly #clock: Clock
  readonly #sorts = new LRUCache<string, Sort>({ max: sortsHeld })
  #filling = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * @param sort names everything that `make` depends on, the KEK too
   * @throws whatever `make` throws
   */
  take(sort: string, make: () => Promise<Made>): Promise<Made> | Made {
    const known = this.#sorts.get(sort) ?? { make, ready: [], wanted: 0 }
    known.make = make
    this.#sorts.set(sort, known)
    const found = this.#newest(known)
    if (known.ready.length + known.wanted < mostReady) known.wanted++
    if (!this.#filling) void this.#fill()
    return found ?? make()
  }

  /** How many are ready. */
  count(sort: string): number {
    return this.#sorts.peek(sort)?.ready.length ?? 0
  }

  [Symbol.dispose](): void {
    this.#sorts.clear()
  }

  #newest({ ready }: Sort): Made | undefined {
    const newest = ready.pop()
    if (newest && this.#clock.monotonic() - newest.at < longestMilliseconds) return newest.made
    // The others are older still.
    ready.length = 0
    return undefined
  }

  /** One at a time, so that requests wait for one at most. */
  async #fill(): Promise<void> {
    this.#filling = true
    try {
      for (let sort = this.#next(); sort !== undefined; sort = this.#next()) {
        for (let count = 0; count < turnsBefore; count++) await turn()
        sort.wanted--
        const made = await sort.make()
        sort.ready.push({ made, at: this.#clock.monotonic() })
      }
    } catch {
      // The next request that makes one gets the error, and begins this again.
    } finally {
      this.#filling = false
    }
  }

  #next(): Sort | undefined {
    for (const sort of this.#sorts.values()) if (sort.wanted > 0) return sort
    return undefined
  }
}
