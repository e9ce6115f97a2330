import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import { DuplicateRow, Outdated } from './faults.ts'
import { Batch } from './group.ts'
import { WriteSession } from './pool/session.ts'
import type { Transaction } from './reader.ts'

type Work<T> = (tx: Transaction) => Promise<T>

/** A change in two forms, of which one is committed. */
export interface Assuming<T> {
  /** Names the thing that is changed: of two changes under way in this process only the first one assumes anything. */
  readonly name: string
  /**
   * Makes the change without reading, by rows and values from coherent caches, which it assumes (`SealedAccess.assume`,
   * `CoherentCache.assume`), or by nothing but inserts. Undefined when nothing is cached.
   */
  readonly blind: Work<T> | undefined
  /** Reads and locks. Runs when there is nothing to assume, something else is there, or a unique key is taken. */
  readonly reading: Work<T>
}

/** A transaction that has committed. */
export interface Settling<T> {
  readonly result: T
  /** Resolves when no worker's cache holds a value it replaced. Never rejects. */
  readonly settled: Promise<void>
}

/**
 * A thing that another worker has just changed is likely to be changed there again: for so long it is read at once. An
 * assumption that fails costs as much as a change.
 */
const restMilliseconds = 500
const thingsResting = 1000

/** More changes than this do not wait for their commit; the next one is refused. */
const queueLimit = 512

type Commit = <T>(work: Work<T>, blind: boolean) => Promise<Settling<T>>

/**
 * Changes by what caches hold: a round trip instead of two, and as few commits as possible. Whether the assumptions
 * were right is checked by the database before each COMMIT.
 */
export class Assumptions {
  readonly #commit: Commit
  /** The next group need not wait until the one before has settled. */
  readonly #batch: Batch<Work<unknown>, Settling<unknown>>
  /** Those whose group has failed. */
  readonly #again = new WeakSet<Work<unknown>>()
  /** How many changes of a thing are under way. */
  readonly #underWay = new Map<string, number>()
  /** Until when things are read, in monotonic milliseconds. */
  readonly #resting = new LRUCache<string, number>({ max: thingsResting })
  readonly #clock: Clock

  constructor(commit: Commit, clock: Clock) {
    this.#commit = commit
    this.#clock = clock
    this.#batch = new Batch((works) => this.#together(works), { queueLimit, sharesFate: true })
  }

  /** @returns the result of the form that was committed, when it has settled */
  async run<T>({ name, blind, reading }: Assuming<T>): Promise<T> {
    const { result, settled } = await this.#marked(name, async (alone) => {
      const assumed = alone && blind && !this.#rests(name) ? await this.#tried(name, blind) : undefined
      return assumed ?? (await this.#commit(reading, false))
    })
    await settled
    return result
  }

  async #together(works: readonly Work<unknown>[]): Promise<Settling<unknown>[]> {
    // Others wait behind one that is tried again alone.
    const shared = works.length > 1 || works.some((work) => this.#again.has(work))
    try {
      const { result, settled } = await this.#commit((tx) => inOrder(tx, works, shared), true)
      return result.map((one) => ({ result: one, settled }))
    } catch (error) {
      for (const work of works) this.#again.add(work)
      throw error
    }
  }

  async #tried<T>(name: string, blind: Work<T>): Promise<Settling<T> | undefined> {
    try {
      return (await this.#batch.add(blind)) as Settling<T>
    } catch (error) {
      if (!(error instanceof Outdated || error instanceof DuplicateRow)) throw error
      this.#resting.set(name, this.#clock.monotonic() + restMilliseconds)
      return undefined
    }
  }

  #rests(name: string): boolean {
    return this.#clock.monotonic() < (this.#resting.get(name) ?? 0)
  }

  /** @param work is told whether no other change of the same thing is under way */
  async #marked<T>(name: string, work: (alone: boolean) => Promise<T>): Promise<T> {
    const others = this.#underWay.get(name) ?? 0
    this.#underWay.set(name, others + 1)
    try {
      return await work(others === 0)
    } finally {
      const left = (this.#underWay.get(name) ?? 1) - 1
      if (left === 0) this.#underWay.delete(name)
      else this.#underWay.set(name, left)
    }
  }
}

async function inOrder(tx: Transaction, works: readonly Work<unknown>[], shared: boolean): Promise<unknown[]> {
  if (shared) WriteSession.of(tx).share()
  const results: unknown[] = []
  for (const work of works) results.push(await work(tx))
  return results
}
