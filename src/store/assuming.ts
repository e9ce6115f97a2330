import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import { DuplicateRow, Outdated } from './faults.ts'
import { Batch } from './group.ts'
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
/**
 * A third of the changes that are under way with sixteen clients: while the database commits these and clients read
 * their answers, others are prepared.
 */
const worthAnother = 5
const groupsAtOnce = 3
/** Longer than a commit: others do not wait for changes that wait for something. */
const patienceMilliseconds = 100

type Commit = <T>(work: Work<T>, blind: boolean) => Promise<Settling<T>>

/** The end of an attempt without reading: which of several changes has failed is not known. */
type Attempt = Settling<unknown> | 'outdated' | 'one of several'

/**
 * Changes by what caches hold: a round trip instead of two, and as few commits as possible. Whether the assumptions
 * were right is checked by the database before each COMMIT.
 */
export class Assumptions {
  readonly #commit: Commit
  /** The next group need not wait until the one before has settled. */
  readonly #batch: Batch<Work<unknown>, Attempt>
  /** How many changes of a thing are under way. */
  readonly #underWay = new Map<string, number>()
  /** Until when things are read, in monotonic milliseconds. */
  readonly #resting = new LRUCache<string, number>({ max: thingsResting })
  readonly #clock: Clock

  constructor(commit: Commit, clock: Clock) {
    this.#commit = commit
    this.#clock = clock
    this.#batch = new Batch((works) => this.#together(works), {
      ...{ queueLimit, worthAnother, atOnce: groupsAtOnce, patienceMilliseconds },
      sharesFate: true,
    })
  }

  /** @returns the result of the form that was committed, when it has settled */
  async run<T>({ name, blind, reading }: Assuming<T>): Promise<T> {
    const { result, settled } = await this.#marked(name, async (alone) => {
      if (!alone) this.#rest(name)
      const assumed = blind && !this.#rests(name) ? await this.#tried(name, blind) : undefined
      return assumed ?? (await this.#commit(reading, false))
    })
    await settled
    return result
  }

  async #tried<T>(name: string, blind: Work<T>): Promise<Settling<T> | undefined> {
    let attempt = await this.#batch.add(blind)
    if (attempt === 'one of several') attempt = await this.#alone(blind)
    if (attempt !== 'outdated') return attempt as Settling<T>
    this.#rest(name)
    return undefined
  }

  /** All or none. */
  async #together(works: readonly Work<unknown>[]): Promise<Attempt[]> {
    try {
      const { result, settled } = await this.#commit((tx) => atOnce(tx, works), true)
      return result.map((one) => ({ result: one, settled }))
    } catch (error) {
      if (!isOutdated(error)) throw error
      return works.map(() => (works.length === 1 ? 'outdated' : 'one of several'))
    }
  }

  async #alone(work: Work<unknown>): Promise<Attempt> {
    try {
      return await this.#commit(work, true)
    } catch (error) {
      if (!isOutdated(error)) throw error
      return 'outdated'
    }
  }

  #rest(name: string): void {
    this.#resting.set(name, this.#clock.monotonic() + restMilliseconds)
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

const isOutdated = (error: unknown): boolean => error instanceof Outdated || error instanceof DuplicateRow

/**
 * A token may need time for each seal. All have ended when it does, even where one throws before it returns a promise.
 * @throws Outdated when one of them fails, whose own error it meets alone
 */
async function atOnce(tx: Transaction, works: readonly Work<unknown>[]): Promise<unknown[]> {
  const ends = await Promise.allSettled(works.map(async (work) => work(tx)))
  return ends.map((end) => {
    if (end.status === 'rejected') throw new Outdated(undefined, { cause: end.reason })
    return end.value
  })
}
