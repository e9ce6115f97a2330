import type { Database } from '../../../store/database.ts'
import type { SealedAccess } from '../../../store/sealed/access.ts'
import { numbersTable } from './tables.ts'

/** CRL numbers per epoch of the database; an accepted restore skips the rest of the epoch before. */
const numbersOfEpoch = 2 ** 32

/** Assigns CRL numbers: each is higher than all earlier ones of its CRL issuer (RFC 5280 section 5.2.3). */
export class Numbers {
  readonly #database: Database
  readonly #table: SealedAccess<typeof numbersTable>
  readonly #floor: number

  /** @param epoch the database's, from 1 */
  constructor(database: Database, epoch: number) {
    this.#database = database
    this.#table = database.table(numbersTable)
    this.#floor = (epoch - 1) * numbersOfEpoch
  }

  /**
   * @param published the highest number of a published list, since the row of numbers may have been removed or put back
   * @throws DamagedRow when the row was edited
   */
  next(crlIssuer: string, published: number): Promise<number> {
    return this.#database.transaction(
      async (tx) => {
        const row = await this.#table.lock(tx, { crlIssuer })
        const number = Math.max(row?.number ?? 0, published, this.#floor) + 1
        if (row === undefined) await this.#table.insert(tx, { crlIssuer, number })
        else await this.#table.update(tx, row, { number })
        return number
      },
      { lane: 'counters' },
    )
  }
}
