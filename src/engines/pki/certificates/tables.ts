import { column, defineTable, type Row } from '../../../store/table.ts'

/**
 * Certificates that mounts have issued. Rows are not sealed: where one decides something, its DER is compared with the columns
 * and verified under the issuer. `serial` is in hexadecimal (serial.ts), `issuer` the uuid of the issuer's row, `site` where
 * it was issued.
 */
export const certificateTable = defineTable(
  'pki_certificates',
  {
    id: column.text(),
    mount: column.text(),
    site: column.text(),
    serial: column.hex(),
    issuer: column.text(),
    der: column.bytes(),
    notAfter: column.integer(),
    createdAt: column.integer(),
  },
  { sealed: false },
)

/** What an index holds of certificates. */
export const serialTable = defineTable(
  'pki_certificates',
  { mount: column.text(), site: column.text(), serial: column.hex() },
  { sealed: false },
)

/**
 * Revocations, sealed: a certificate is revoked because its row is here, and when. `notAfter` is the certificate's, so that
 * nobody moves its end by the certificate's own row; `site` is the one that recorded it, and whose list names it.
 */
export const revocationTable = defineTable(
  'pki_revocations',
  {
    site: column.text(),
    serial: column.hex(),
    issuer: column.text(),
    notAfter: column.integer(),
    revokedAt: column.integer(),
    /** Whose list names it (`crlIssuerOf`); null while no issuer of the mount is known to have signed it. */
    crlIssuer: column.hex().nullable(),
    /** Its number among the revocations of that CRL issuer at this site, without a gap; null while there is none. */
    seq: column.integer().nullable(),
    /** CRLReason (RFC 5280 section 5.3.1); null is unspecified. */
    reason: column.integer().nullable(),
  },
  { sealed: true },
)

export type CertificateRow = Row<typeof certificateTable>
export type RevocationRow = Row<typeof revocationTable>

/** A certificate as its lease names it. */
export type LeasedCertificate = Pick<RevocationRow, 'mount' | 'site' | 'serial' | 'issuer' | 'notAfter'>

/** What names a certificate: `mount` is its uuid, `serial` in hexadecimal. */
export interface CertificateName {
  readonly mount: string
  readonly serial: string
}

/** The key under which caches hold a certificate: whoever changes or revokes it touches (`certificateTable.name`, this). */
export const cacheKey = ({ mount, serial }: CertificateName): string => `${mount} ${serial}`

/** What a `cacheKey` was made of. */
export function nameOfKey(key: string): Required<CertificateName> {
  const [mount = '', serial = ''] = key.split(' ')
  return { mount, serial }
}

/** The count of the certificates of a site in a mount, kept with their rows. @param site '' for the beginning of all sites' names */
export const certificateTally = (mount: string, site: string): string => `certificates-${mount}-${site}`
