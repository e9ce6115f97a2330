import { nextTurn } from '../after.ts'
import { ApiError } from '../errors.ts'
import { busy } from './faults.ts'
import type { New, Row, Table } from './table.ts'

/** Inserts rows in groups: one COMMIT for many callers, each answered when its own row is committed. */
export interface GroupInsert<T extends Table> {
  /** Returns the row as stored. */
  insert(row: New<T>): Promise<Row<T>>
}

interface Waiting<In, Out> {
  readonly write: In
  readonly resolve: (out: Out) => void
  readonly reject: (error: unknown) => void
}

const largestGroup = 64
/** Groups under way at the same time where earlier ones do not end. */
const mostGroups = 8

interface BatchOptions {
  /** The most writes of a group; 64 by default. */
  readonly largest?: number
  /** Groups under way at the same time, 2 by default: while one waits for the disk another is written. */
  readonly atOnce?: number
  /**
   * How many writes are worth another group at the same time, 16 by default: each group is a transaction of a fixed
   * cost, and the wait for the first one fills it; but that wait leaves a core idle.
   */
  readonly worthAnother?: number
  /** How many may wait; the next one is refused. */
  readonly queueLimit?: number
  /** When the database is out of reach, refuses the waiting writes too: each group would fail in turn. */
  readonly sharesFate?: boolean
  /** Writes that have waited for so long behind groups that do not end are a group of their own. */
  readonly patienceMilliseconds?: number
}

/** For changes of which each waits for the one before: a second group would only wait for the first one's locks. */
export const oneByOne: BatchOptions = { atOnce: 1, sharesFate: true, queueLimit: 512 }

/**
 * Collects writes, or reads, while earlier groups are under way and makes them together, in their order. When a group
 * fails its members are tried one by one, so that a bad one harms only its own caller.
 * @param commit makes the writes in one transaction and returns one result for each
 */
export class Batch<In, Out> {
  readonly #commit: (writes: In[]) => Promise<Out[]>
  readonly #largest: number
  readonly #atOnce: number
  readonly #worthAnother: number
  readonly #queueLimit: number
  readonly #sharesFate: boolean
  readonly #patienceMilliseconds: number | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #queue: Waiting<In, Out>[] = []
  #busy = 0

  constructor(
    commit: (writes: In[]) => Promise<Out[]>,
    {
      largest = largestGroup,
      atOnce = 2,
      worthAnother = 16,
      queueLimit = Number.POSITIVE_INFINITY,
      sharesFate = false,
      patienceMilliseconds,
    }: BatchOptions = {},
  ) {
    this.#patienceMilliseconds = patienceMilliseconds
    this.#commit = commit
    this.#largest = largest
    this.#atOnce = atOnce
    this.#worthAnother = worthAnother
    this.#queueLimit = queueLimit
    this.#sharesFate = sharesFate
  }

  /** Resolves when this write is committed. @throws ApiError 503 when too many wait */
  add(write: In): Promise<Out> {
    if (this.#queue.length >= this.#queueLimit) {
      return Promise.reject(busy(new Error(`${this.#queueLimit} others wait for the database already`)))
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ write, resolve, reject })
      if (this.#busy < this.#atOnce && this.#isWorth(this.#busy)) this.#begin()
      else this.#wait()
    })
  }

  #begin(): void {
    this.#busy++
    void this.#work()
  }

  #wait(): void {
    if (this.#patienceMilliseconds === undefined) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      if (this.#queue.length === 0) return
      if (this.#busy < mostGroups) this.#begin()
      this.#wait()
    }, this.#patienceMilliseconds)
  }

  /** Whether the queue is worth a group of its own beside this many others. */
  #isWorth(others: number): boolean {
    return this.#queue.length >= (others === 0 ? 1 : this.#worthAnother)
  }

  async #work(): Promise<void> {
    do {
      await this.#gathered()
      const group = this.#queue.splice(0, this.#largest)
      // Another group has taken all.
      if (group.length === 0) break
      if (!(await this.#together(group))) for (const one of group) await this.#alone(one)
    } while (this.#isWorth(this.#busy - 1))
    this.#busy--
  }

  /** Requests that arrive together are often read in two turns of the event loop: they become one group. */
  async #gathered(): Promise<void> {
    const before = this.#queue.length
    await nextTurn()
    if (this.#queue.length > before && !this.#isWorth(1)) await nextTurn()
  }

  /** False when the writes are to be tried one by one. */
  async #together(group: readonly Waiting<In, Out>[]): Promise<boolean> {
    if (group.length === 1) return false
    try {
      const results = await this.#commit(group.map(({ write }) => write))
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Out)
    } catch (error) {
      // Out of reach, or the outcome unknown: repeating each write would be useless or wrong.
      if (!isOutOfReach(error)) return false
      this.#refuse(group, error)
    }
    return true
  }

  async #alone({ write, resolve, reject }: Waiting<In, Out>): Promise<void> {
    try {
      const [result] = await this.#commit([write])
      resolve(result as Out)
    } catch (error) {
      if (isOutOfReach(error)) this.#refuse([{ write, resolve, reject }], error)
      else reject(error)
    }
  }

  #refuse(group: readonly Waiting<In, Out>[], error: unknown): void {
    const all = this.#sharesFate ? [...group, ...this.#queue.splice(0)] : group
    for (const { reject } of all) reject(error)
  }
}

const isOutOfReach = (error: unknown): boolean => error instanceof ApiError && error.status >= 500
