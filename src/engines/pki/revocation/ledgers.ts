import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Transaction } from '../../../store/reader.ts'
import { column, defineTable } from '../../../store/table.ts'
import { manifestsTable } from '../crl/tables.ts'
import { type LedgerRow, ledgersTable } from './tables.ts'

/** A ledger, and the list entries that it numbers, belong to a CRL issuer (`crlIssuerOf`) at a site. */
export interface LedgerName {
  readonly crlIssuer: string
  readonly site: string
}

/**
 * For each site, the highest number of a revocation that lists have taken in. Read unverified, since a manifest grows
 * with its lists and is too long to be verified for every revocation; an edited one fails where lists are built.
 */
const absorptionTable = defineTable(
  manifestsTable.name,
  { crlIssuer: column.hex(), absorbed: column.json<Readonly<Record<string, number>>>() },
  { sealed: false },
)

/** Numbers that a transaction gives to revocations; valid when it commits. */
export interface Numbers {
  /** The next number. @param name one of the opened ledgers */
  next(name: LedgerName): number
  /** Writes the ledgers whose numbers were taken. */
  close(): Promise<void>
}

const keyOf = ({ crlIssuer, site }: LedgerName): string => `${crlIssuer} ${site}`

/**
 * Locks ledgers, in the same order in all transactions: must be the transaction's first reads.
 * @throws DamagedRow of `ledgersTable` for one that was set back: its numbers would be given twice
 */
export async function openLedgers(database: Database, tx: Transaction, names: readonly LedgerName[]): Promise<Numbers> {
  const table = database.table(ledgersTable)
  const absorptions = database.unverified(absorptionTable)
  const distinct = new Map(names.map(({ crlIssuer, site }) => [keyOf({ crlIssuer, site }), { crlIssuer, site }]))
  const ordered = [...distinct.keys()].sort().flatMap((key) => distinct.get(key) ?? [])
  const [rows, absorbed] = await Promise.all([
    Promise.all(ordered.map((name) => table.lock(tx, { ...name }))),
    Promise.all(ordered.map(({ crlIssuer }) => absorptions.find(tx, { crlIssuer }))),
  ])
  const ledgers = new Map<string, { readonly name: LedgerName; readonly row: LedgerRow | undefined; last: number }>()
  for (const [index, name] of ordered.entries()) {
    const [row, floor] = [rows[index], absorbed[index]?.absorbed[name.site] ?? 0]
    const last = row?.last ?? 0
    if (last < floor) {
      throw new DamagedRow(
        ledgersTable.name,
        row?.id ?? keyOf(name),
        `it ends at ${last}, but lists have reached ${floor}`,
      )
    }
    ledgers.set(keyOf(name), { name, row, last })
  }
  return {
    next(name) {
      const ledger = ledgers.get(keyOf(name))
      if (ledger === undefined) throw new Error('the ledger was not opened')
      ledger.last++
      return ledger.last
    },
    async close() {
      for (const { name, row, last } of ledgers.values()) {
        if (last === (row?.last ?? 0)) continue
        if (row === undefined) await table.insert(tx, { ...name, last })
        else await table.update(tx, row, { last })
      }
    },
  }
}
