import { performance } from 'node:perf_hooks'
import type { Clock } from '../../clock.ts'
import type { PairAlgorithm } from '../algorithms/algorithm.ts'
import { destroyPair, generateReadable, type ReadableSource, type TokenPair } from './readable.ts'

/** Ready pairs of each type; under SoftHSM each takes 16 kB of the process. */
const mostReady = 8
/** Between looks at whether this worker is idle. */
const pauseMilliseconds = 100
/** How busy an idle worker's event loop may be, as a share of its time. */
const idleUtilization = 0.5

export interface PairStockOptions extends ReadableSource {
  readonly clock: Clock
}

/**
 * Ready pairs of the types that take long to make, as session objects of the token: no byte of them is in memory. Pairs
 * of requested types are made ahead, one at a time, and only while no request waits and this worker has little to do.
 */
export class PairStock implements Disposable {
  readonly #options: PairStockOptions
  readonly #ready = new Map<PairAlgorithm, TokenPair[]>()
  /** Requests that wait for a pair. */
  #waiting = 0
  /** Being made ahead, for the next request of the type. */
  #coming: { readonly algorithm: PairAlgorithm; readonly pair: Promise<TokenPair> } | undefined
  #filling = false
  #closed = false
  #loop = performance.eventLoopUtilization()

  constructor(options: PairStockOptions) {
    this.#options = options
  }

  /** A pair that the caller destroys. @throws as generateReadable */
  async take(algorithm: PairAlgorithm): Promise<TokenPair> {
    const ready = this.#readyOf(algorithm).pop()
    if (ready !== undefined && this.#isLive(ready)) {
      void this.#fill()
      return ready
    }
    this.#waiting += 1
    try {
      return await (this.#claim(algorithm) ?? generateReadable(this.#options, algorithm))
    } finally {
      this.#waiting -= 1
      void this.#fill()
    }
  }

  /** How many pairs of the type are ready. */
  count(algorithm: PairAlgorithm): number {
    return this.#readyOf(algorithm).filter((pair) => this.#isLive(pair)).length
  }

  [Symbol.dispose](): void {
    this.#closed = true
    const pairs = [...this.#ready.values()].flat()
    this.#ready.clear()
    for (const pair of pairs) this.#drop(pair)
  }

  #readyOf(algorithm: PairAlgorithm): TokenPair[] {
    const known = this.#ready.get(algorithm)
    if (known !== undefined) return known
    const pairs: TokenPair[] = []
    this.#ready.set(algorithm, pairs)
    return pairs
  }

  /** Session objects do not survive the loss of their token. */
  #isLive({ privateKey }: TokenPair): boolean {
    return privateKey.epoch === this.#options.hsm.epoch
  }

  #claim(algorithm: PairAlgorithm): Promise<TokenPair> | undefined {
    const coming = this.#coming
    if (coming?.algorithm !== algorithm) return undefined
    this.#coming = undefined
    return coming.pair
  }

  /** Ends when every type has its pairs, or the token refuses one: the next request begins it again. */
  async #fill(): Promise<void> {
    if (this.#filling) return
    this.#filling = true
    try {
      for (let next = this.#next(); next !== undefined && !this.#closed; next = this.#next()) {
        await this.#options.clock.sleep(pauseMilliseconds)
        if (this.#isIdle()) await this.#makeAhead(next)
      }
    } catch {
      // The next request gets the error.
    } finally {
      this.#filling = false
    }
  }

  async #makeAhead(algorithm: PairAlgorithm): Promise<void> {
    const coming = { algorithm, pair: generateReadable(this.#options, algorithm) }
    this.#coming = coming
    try {
      const pair = await coming.pair
      if (this.#coming !== coming) return
      if (this.#closed) this.#drop(pair)
      else this.#readyOf(algorithm).push(pair)
    } finally {
      if (this.#coming === coming) this.#coming = undefined
    }
  }

  #next(): PairAlgorithm | undefined {
    for (const [algorithm, pairs] of this.#ready) {
      const live = pairs.filter((pair) => this.#isLive(pair))
      this.#ready.set(algorithm, live)
      if (live.length < mostReady) return algorithm
    }
    return undefined
  }

  #isIdle(): boolean {
    const before = this.#loop
    this.#loop = performance.eventLoopUtilization()
    return this.#waiting === 0 && performance.eventLoopUtilization(this.#loop, before).utilization < idleUtilization
  }

  /** Not awaited; a lost token forgets the pair by itself. */
  #drop(pair: TokenPair): void {
    destroyPair(this.#options.hsm, pair).catch(() => {})
  }
}
