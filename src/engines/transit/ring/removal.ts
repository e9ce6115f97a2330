import type { Claim } from '../../../job.ts'
import type { Materials } from '../../../keys/materials/materials.ts'
import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import { column, defineTable } from '../../../store/table.ts'
import { keysTable, settingsTable, versionsTable } from './tables.ts'

const keysAtOnce = 32
/**
 * Versions and key parts removed of one key, and the number of rows after which a transaction begins no further key.
 */
const rowsAtOnce = 200

const keyTraces = defineTable(
  'transit_keys',
  { id: column.text(), mount: column.text(), name: column.text() },
  { sealed: false },
)

/**
 * Removes the contents of removed mounts, in bounded transactions. No cache is touched, since no request reaches such a
 * mount, and rows are removed unread, edited ones too.
 */
export class Removal {
  readonly #database: Database
  readonly #materials: Materials

  constructor(options: { database: Database; materials: Materials }) {
    this.#database = options.database
    this.#materials = options.materials
  }

  /**
   * Whole keys first. The remaining rows belong to keys with more versions than one transaction removes, to the mount
   * itself, or to a request that had begun before the mount was removed.
   * @returns whether there was anything to remove
   */
  async removeSome({ uuid }: Mount, { job, fence }: Claim): Promise<boolean> {
    const steps = [
      (tx: Transaction) => this.#removeKeys(tx, uuid),
      (tx: Transaction) => this.#materials.removeSome(tx, { mount: uuid }, rowsAtOnce),
      (tx: Transaction) => this.#database.table(versionsTable).removeWhere(tx, { mount: uuid }, { limit: rowsAtOnce }),
      (tx: Transaction) => this.#database.table(settingsTable).removeWhere(tx, { mount: uuid }),
    ]
    return this.#database.transaction(async (tx) => {
      await tx.fence(job, fence)
      for (const step of steps) if ((await step(tx)) > 0) return true
      return false
    })
  }

  /** The row of each key goes first, as in every change of a key. @returns the number of keys found */
  async #removeKeys(tx: Transaction, mount: string): Promise<number> {
    const keys = await this.#database.unverified(keyTraces).list(tx, { mount }, { by: 'name', limit: keysAtOnce })
    let room = rowsAtOnce
    for (const { id } of keys) {
      if (room <= 0) break
      await this.#database.table(keysTable).discard(tx, { id })
      room -= await this.#database.table(versionsTable).removeWhere(tx, { keyId: id }, { limit: rowsAtOnce })
      room -= await this.#materials.removeSome(tx, { owner: id }, rowsAtOnce)
    }
    return keys.length
  }
}
