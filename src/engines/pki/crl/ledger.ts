import type { Database } from '../../../store/database.ts'
import type { Reader } from '../../../store/reader.ts'
import { unlessDamaged } from '../../../store/sealed/sound.ts'
import { column, defineTable } from '../../../store/table.ts'
import { type LedgerRow, ledgersTable } from '../revocation/tables.ts'

/** Where revocations are counted, whether or not the count is sound. */
const sitesTable = defineTable(ledgersTable.name, { crlIssuer: column.hex(), site: column.text() }, { sealed: false })
const mostSites = 1000

export interface LedgerName {
  readonly crlIssuer: string
  readonly site: string
}

/** The sites that have ledgers of a CRL issuer; nothing is verified. */
export async function sitesOf(database: Database, crlIssuer: string): Promise<string[]> {
  const page = { by: 'site', limit: mostSites } as const
  const ledgers = await database.read((q) => database.unverified(sitesTable).list(q, { crlIssuer }, page))
  return ledgers.map(({ site }) => site)
}

/** The last number that was given to a revocation; 0 for a ledger that is missing, or was edited. */
export async function lastNumber(database: Database, q: Reader, { crlIssuer, site }: LedgerName): Promise<number> {
  const ledger = await unlessDamaged(() => database.table(ledgersTable).find(q, { crlIssuer, site }))
  return ledger?.last ?? 0
}

/** Brings a ledger that somebody put back, removed or edited to a number that has been given: none is given twice. */
export function mendLedger(database: Database, { crlIssuer, site }: LedgerName, last: number): Promise<void> {
  const ledgers = database.table(ledgersTable)
  return database.transaction(async (tx) => {
    const ledger: LedgerRow | undefined = await unlessDamaged(() => ledgers.lock(tx, { crlIssuer, site }))
    if (ledger === undefined) {
      await ledgers.removeWhere(tx, { crlIssuer, site })
      await ledgers.insert(tx, { crlIssuer, site, last })
    } else if (ledger.last < last) await ledgers.update(tx, ledger, { last })
  })
}
