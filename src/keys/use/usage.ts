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
 * Counts encryptions per key version. Each worker reserves numbers in blocks before it uses them, so that a crash counts too
 * many, never too few; blocks grow with use, so that a busy key costs one statement in 65,536 encryptions.
 */
export class Usage {
  readonly #database: Database
  readonly #tallies: LRUCache<string, Tally>
  readonly #reserving = new Map<string, Promise<void>>()

  constructor(database: Database, limit: number) {
    this.#database = database
    this.#tallies = new LRUCache({ max: limit })
  }

  /** The number of this encryption, from 1, over all workers; synchronous while the reserved block lasts. */
  take(material: string): MaybePromise<number> {
    const tally = this.#tallies.get(material)
    if (tally !== undefined && tally.next < tally.end) {
      tally.next += 1
      return tally.next
    }
    return this.#reserve(material).then(() => this.take(material))
  }

  #reserve(material: string): Promise<void> {
    const under = this.#reserving.get(material)
    if (under !== undefined) return under
    const reserving = this.#reserved(material).finally(() => this.#reserving.delete(material))
    this.#reserving.set(material, reserving)
    return reserving
  }

  async #reserved(material: string): Promise<void> {
    const block = Math.min(2 * (this.#tallies.get(material)?.block ?? smallestBlock / 2), largestBlock)
    const counters = this.#database.table(usageTable)
    const materials = this.#database.table(materialsTable)
    const end = await this.#database.transaction(
      async (tx) => {
        const found = await counters.add(tx, { material }, { used: block })
        // A key that is being removed is used until every worker has heard of it: its row is gone already, and does not come back.
        if (found === 0 && (await materials.get(tx, material))) await counters.insert(tx, { material, used: block })
        return (await counters.find(tx, { material }))?.used ?? block
      },
      { lane: 'counters' },
    )
    this.#tallies.set(material, { next: end - block, end, block })
  }
}
