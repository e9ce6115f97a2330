import type { Database } from '../../../store/database.ts'
import type { Reader } from '../../../store/reader.ts'
import { unlessDamaged } from '../../../store/sealed/sound.ts'
import { column, defineTable } from '../../../store/table.ts'
import type { LedgerName } from '../revocation/ledgers.ts'
import { type LedgerRow, ledgersTable } from '../revocation/tables.ts'

/** The sites that count revocations, readable even where a count is damaged. */
const sitesTable = defineTable(ledgersTable.name, { crlIssuer: column.hex(), site: column.text() }, { sealed: false })
const mostSites = 1000

/** The sites that have ledgers of a CRL issuer; nothing is verified. */
export async function sitesOf(database: Database, crlIssuer: string): Promise<string[]> {
  const page = { by: 'site', limit: mostSites } as const
  const ledgers = await database.read((q) => database.unverified(sitesTable).list(q, { crlIssuer }, page))
  return ledgers.map(({ site }) => site)
}

/** The last number assigned to a revocation; 0 if the ledger is missing or was edited. */
export async function lastNumber(database: Database, q: Reader, { crlIssuer, site }: LedgerName): Promise<number> {
  const ledger = await unlessDamaged(() => database.table(ledgersTable).find(q, { crlIssuer, site }))
  return ledger?.last ?? 0
}

/** Raises a ledger that was put back, removed or edited to the last number assigned: none is assigned twice. */
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
