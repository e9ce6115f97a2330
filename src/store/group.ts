import { ApiError } from '../errors.ts'
import { largestInsert } from './sealed/statements.ts'
import type { New, Row, Table } from './table.ts'

/** Inserts rows in groups: one COMMIT for many callers, each answered when its own row is committed. */
export interface GroupInsert<T extends Table> {
  /** Answers the row as it is stored. */
  insert(row: New<T>): Promise<Row<T>>
}

interface Waiting<In, Out> {
  readonly write: In
  readonly resolve: (out: Out) => void
  readonly reject: (error: unknown) => void
}

/** Groups on their way at the same time: while one waits for the disk another is written. */
const groupsAtOnce = 2
/** So many writes are worth a second group: each is a transaction, whatever is in it, and waiting for the first one fills it. */
const worthAnother = 16

/**
 * Collects writes while earlier groups are on their way and commits up to 64 of them together, in their order. When a group
 * fails they are tried one by one, so that a bad one harms only its own caller.
 * @param commit makes the writes in one transaction and answers one result for each
 */
export class Batch<In, Out> {
  readonly #commit: (writes: In[]) => Promise<Out[]>
  readonly #queue: Waiting<In, Out>[] = []
  #busy = 0

  constructor(commit: (writes: In[]) => Promise<Out[]>) {
    this.#commit = commit
  }

  /** Answers when this write is committed. */
  add(write: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ write, resolve, reject })
      if (this.#busy < groupsAtOnce && this.#isWorth(this.#busy)) {
        this.#busy++
        setImmediate(() => void this.#work())
      }
    })
  }

  /** Whether what waits is a group of its own beside so many others. */
  #isWorth(others: number): boolean {
    return this.#queue.length >= (others === 0 ? 1 : worthAnother)
  }

  async #work(): Promise<void> {
    while (this.#isWorth(this.#busy - 1)) {
      const group = this.#queue.splice(0, largestInsert)
      if (!(await this.#together(group))) for (const one of group) await this.#alone(one)
    }
    this.#busy--
  }

  /** Answers false when they are to be tried one by one. */
  async #together(group: readonly Waiting<In, Out>[]): Promise<boolean> {
    if (group.length === 1) return false
    try {
      const results = await this.#commit(group.map(({ write }) => write))
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Out)
    } catch (error) {
      // Unreachable, or in doubt: repeating them would be wrong, or as vain for each.
      if (!(error instanceof ApiError)) return false
      for (const { reject } of group) reject(error)
    }
    return true
  }

  async #alone({ write, resolve, reject }: Waiting<In, Out>): Promise<void> {
    try {
      const [result] = await this.#commit([write])
      resolve(result as Out)
    } catch (error) {
      reject(error)
    }
  }
}
