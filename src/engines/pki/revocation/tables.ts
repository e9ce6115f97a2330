import { column, defineTable, type Row } from '../../../store/table.ts'

/**
 * The last number given to a revocation of a CRL issuer at a site. A revocation takes its number in its own
 * transaction, so a missing number means that a revocation was removed.
 */
export const ledgersTable = defineTable(
  'pki_ledgers',
  { crlIssuer: column.hex(), site: column.text(), last: column.integer() },
  { sealed: true },
)
export type LedgerRow = Row<typeof ledgersTable>

/** Serial numbers that a site was asked to revoke and does not know: the site that has the certificate revokes it. */
export const queueTable = defineTable(
  'pki_revocation_queue',
  {
    serial: column.hex(),
    /** The requesting site. */
    site: column.text(),
    requestedAt: column.integer(),
    /** The site that revoked it. */
    confirmedBy: column.text().nullable(),
    confirmedAt: column.integer().nullable(),
  },
  { sealed: true },
)
export type QueueRow = Row<typeof queueTable>

/**
 * The count of the revocations of a site in a mount, kept with their rows. @param site '' gives the prefix of all
 * sites' names
 */
export const revocationTally = (mount: string, site: string): string => `revocations-${mount}-${site}`
