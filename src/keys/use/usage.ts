import { LRUCache } from 'lru-cache'
import type { MaybePromise } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import { materialsTable, usageTable } from '../tables.ts'

/** SP 800-38D section 8.3: with random 96-bit IVs no key encrypts more often than 2^32 times. */
export const usageLimit = 2 ** 32
export const usageWarning = 2 ** 31

const smallestBlock = 256
const largestBlock = 65_536

interface Tally {
  next: number
  end: number
  block: number
}

/**
 * Counts encryptions per key version. Each worker reserves numbers in blocks before it uses them, so that a crash
 * counts too many, never too few; blocks grow with use, so that a busy key costs one statement in 65,536 encryptions.
 */
export class Usage {
  readonly #database: Database
  readonly #tallies: LRUCache<string, Tally>
  readonly #reserving = new Map<string, Promise<void>>()

  constructor(database: Database, limit: number) {
    this.#database = database
    this.#tallies = new LRUCache({ max: limit })
  }

  /**
   * The number of this encryption, from 1, over all workers; synchronous while the reserved block lasts.
   * @param counter the counter's name: the material's id, or one that several materials share
   */
  take(material: string, counter: string = material): MaybePromise<number> {
    const tally = this.#tallies.get(counter)
    if (tally !== undefined && tally.next < tally.end) {
      tally.next += 1
      return tally.next
    }
    return this.#reserve(material, counter).then(() => this.take(material, counter))
  }

  #reserve(material: string, counter: string): Promise<void> {
    const under = this.#reserving.get(counter)
    if (under !== undefined) return under
    const reserving = this.#reserved(material, counter).finally(() => this.#reserving.delete(counter))
    this.#reserving.set(counter, reserving)
    return reserving
  }

  async #reserved(material: string, counter: string): Promise<void> {
    const block = Math.min(2 * (this.#tallies.get(counter)?.block ?? smallestBlock / 2), largestBlock)
    const counters = this.#database.table(usageTable)
    const materials = this.#database.table(materialsTable)
    const end = await this.#database.transaction(
      async (tx) => {
        const found = await counters.add(tx, { material: counter }, { used: block })
        // A key being removed is used until every worker has heard of it: its counter is gone already, and must not
        // come back.
        if (found === 0 && (await materials.get(tx, material)))
          await counters.insert(tx, { material: counter, used: block })
        return (await counters.find(tx, { material: counter }))?.used ?? block
      },
      { lane: 'counters' },
    )
    this.#tallies.set(counter, { next: end - block, end, block })
  }
}
