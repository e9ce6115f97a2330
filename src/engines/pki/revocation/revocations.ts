import type { Clock } from '../../../clock.ts'
import { unavailable } from '../../../errors.ts'
import type { Logger } from '../../../log.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow, DuplicateRow } from '../../../store/faults.ts'
import { Batch } from '../../../store/group.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { SealedAccess } from '../../../store/sealed/access.ts'
import { cacheKey, certificateTable, type RevocationRow, revocationTable } from '../certificates/tables.ts'
import { type LedgerName, type Numbers, openLedgers } from './ledgers.ts'
import { ledgersTable, revocationTally } from './tables.ts'

/**
 * A revocation to record. `site` is the one whose list is to name it, `issuer` the uuid of the issuer's row or '', and
 * `crlIssuer` null while no issuer of the mount is known to have signed the certificate.
 */
export type NewRevocation = Pick<
  RevocationRow,
  'mount' | 'site' | 'serial' | 'issuer' | 'crlIssuer' | 'notAfter' | 'reason'
>

export interface RevocationsOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
}

/** The record of revocations, with their times and order. */
export class Revocations {
  readonly #options: RevocationsOptions
  readonly #table: SealedAccess<typeof revocationTable>
  readonly #writes = new Batch<NewRevocation, RevocationRow>((some) => this.#commit(some))

  constructor(options: RevocationsOptions) {
    this.#options = options
    this.#table = options.database.table(revocationTable)
  }

  /**
   * Records a revocation under the next number of its ledger, in one commit with others made at the same time. When it
   * resolves no cache holds the certificate as valid.
   * @returns the record. The first one counts; a later one only adds the CRL issuer if the first had none
   * @throws ApiError 503 when the ledger was tampered with: lists would miss a revocation whose number they have passed
   */
  async record(order: NewRevocation): Promise<RevocationRow> {
    try {
      return await this.#writes.add(order)
    } catch (error) {
      const damaged =
        error instanceof DuplicateRow || (error instanceof DamagedRow && error.table === ledgersTable.name)
      if (!damaged) throw error
      const { crlIssuer, site } = order
      this.#options.log.error({ err: error, crlIssuer, site }, 'the ledger of revocations was tampered with')
      throw unavailable('the ledger of revocations is damaged; see the log of the server', { cause: error })
    }
  }

  #commit(orders: readonly NewRevocation[]): Promise<RevocationRow[]> {
    const { database } = this.#options
    const wanted = distinct(orders)
    return database.transaction(async (tx) => {
      const [numbers, found] = await Promise.all([
        openLedgers(database, tx, wanted.filter(isAssigned)),
        Promise.all(wanted.map(({ mount, serial }) => this.#table.find(tx, { mount, serial }))),
      ])
      const records = new Map<string, RevocationRow>()
      const fresh: NewRevocation[] = []
      for (const [index, order] of wanted.entries()) {
        // Recorded ones too: the request that recorded them may still be waiting for the caches.
        tx.touch(certificateTable.name, cacheKey(order))
        const row = found[index]
        if (row === undefined) fresh.push(order)
        else records.set(cacheKey(row), await this.#assign(tx, row, order, numbers))
      }
      for (const row of await this.#insert(tx, fresh, numbers)) records.set(cacheKey(row), row)
      await numbers.close()
      return orders.map((one) => records.get(cacheKey(one)) as RevocationRow)
    })
  }

  /** Adds the CRL issuer, once known, to a record without one. */
  async #assign(tx: Transaction, row: RevocationRow, order: NewRevocation, numbers: Numbers): Promise<RevocationRow> {
    if (row.crlIssuer !== null || row.site !== order.site || !isAssigned(order)) return row
    const { crlIssuer, issuer } = order
    return this.#table.update(tx, row, { crlIssuer, issuer, seq: numbers.next(order) })
  }

  #insert(tx: Transaction, fresh: readonly NewRevocation[], numbers: Numbers): Promise<RevocationRow[]> {
    const revokedAt = this.#options.clock.wall()
    for (const { mount, site } of fresh) tx.tally(revocationTally(mount, site), 1)
    return this.#table.insertMany(
      tx,
      fresh.map((order) => {
        const { mount, site, serial, issuer, crlIssuer, notAfter, reason } = order
        const seq = isAssigned(order) ? numbers.next(order) : null
        return { mount, site, serial, issuer, crlIssuer, notAfter, reason, revokedAt, seq }
      }),
    )
  }
}

const isAssigned = (order: NewRevocation): order is NewRevocation & LedgerName => order.crlIssuer !== null

/** Each certificate once, in the original order; of several orders for one, the first that names its CRL issuer. */
function distinct(orders: readonly NewRevocation[]): readonly NewRevocation[] {
  const chosen = new Map<string, NewRevocation>()
  for (const order of orders) {
    const known = chosen.get(cacheKey(order))
    if (known === undefined || (known.crlIssuer === null && isAssigned(order))) chosen.set(cacheKey(order), order)
  }
  return [...chosen.values()]
}
