import { nextTurn } from '../../../after.ts'
import type { Transaction } from '../../../store/reader.ts'
import { atMost } from '../../../store/table.ts'
import type { Authority } from '../authority/authority.ts'
import { describeDifferences, examine } from '../certificates/examine.ts'
import { type CertificateRow, cacheKey, certificateTable, certificateTally } from '../certificates/tables.ts'
import type { TidyDeps } from './deps.ts'
import { lastEnd, type Part, portionOf } from './part.ts'

/** Signatures verified in one turn of the event loop. */
const verifiedPerTurn = 16

/**
 * Removes certificates that ended long enough ago, in the order of their expiry. The certificate itself decides, not
 * the column that found it: a certificate that differs from its row stays, and is logged.
 */
export function certStorePart({ database, clock, log, site, authorities, certificates }: TidyDeps): Part {
  const table = database.table(certificateTable)
  return async ({ mount, run, cursor, checked, total: known }) => {
    const notAfter = atMost(lastEnd(clock.wall(), run.order.safetyBuffer))
    const order = { by: ['notAfter', 'serial'], index: 'by_expiry', limit: portionOf(run.order) } as const
    const page = cursor === null ? order : { ...order, after: [cursor.notAfter, cursor.serial] as const }
    const rows = await database.read((q) => table.list(q, { mount, site, notAfter }, page))
    const last = rows.at(-1)
    const total = cursor === null ? await certificates.count(mount) : known
    if (last === undefined) return async () => ({ done: true, message: null })
    const { genuine, mismatched } = await sift(rows, await authorities.of({ uuid: mount }))
    for (const { serial, reason } of mismatched)
      log.warn({ mount, serial, reason }, 'tidy leaves a stored certificate that differs from its row')
    return async (tx) => ({
      done: false,
      cursor: { site, notAfter: last.notAfter, serial: last.serial },
      checked: checked + rows.length,
      total,
      message: `Tidying certificate store: checking entry ${checked + rows.length} of ${total}`,
      counts: {
        certStoreDeleted: await discardCertificates(tx, table, genuine),
        certStoreMismatched: mismatched.length,
      },
    })
  }
}

interface Sifted {
  readonly genuine: readonly CertificateRow[]
  readonly mismatched: readonly { readonly serial: string; readonly reason: string }[]
}

/** Separates the certificates that agree with their rows from the others. */
export async function sift(rows: readonly CertificateRow[], authority: Authority): Promise<Sifted> {
  const genuine: CertificateRow[] = []
  const mismatched: { serial: string; reason: string }[] = []
  for (const [index, row] of rows.entries()) {
    if (index > 0 && index % verifiedPerTurn === 0) await nextTurn()
    const { differences } = examine(row, authority.issuers)
    if (differences.size === 0) genuine.push(row)
    else mismatched.push({ serial: row.serial, reason: describeDifferences(differences) })
  }
  return { genuine, mismatched }
}

/** Removes certificates of one mount and site, from caches too; returns how many there were. */
export async function discardCertificates(
  tx: Transaction,
  table: { removeAll(tx: Transaction, ids: readonly string[]): Promise<number> },
  rows: readonly CertificateRow[],
): Promise<number> {
  const [first] = rows
  if (first === undefined) return 0
  const ids = rows.map(({ id }) => id)
  const removed = await table.removeAll(tx, ids)
  for (const row of rows) tx.touch(certificateTable.name, cacheKey(row))
  tx.tally(certificateTally(first.mount, first.site), -removed)
  return removed
}
