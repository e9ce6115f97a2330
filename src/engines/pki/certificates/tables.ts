import { column, defineTable, type Row } from '../../../store/table.ts'

/**
 * Certificates issued by mounts. Rows are not sealed: before a decision rests on one, its DER is compared with the
 * columns and verified under the issuer. `serial` is in hexadecimal (serial.ts), `issuer` the uuid of the issuer's row,
 * `site` the site that issued the certificate.
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

/** The columns of certificates that an index contains. */
export const serialTable = defineTable(
  'pki_certificates',
  { mount: column.text(), site: column.text(), serial: column.hex() },
  { sealed: false },
)

/**
 * Revocations, sealed: a certificate is revoked if it has a row here. `notAfter` is the certificate's, so that editing
 * the certificate's own row cannot move its end; `site` is the one that recorded the revocation and whose list names
 * it.
 */
export const revocationTable = defineTable(
  'pki_revocations',
  {
    site: column.text(),
    serial: column.hex(),
    issuer: column.text(),
    notAfter: column.integer(),
    revokedAt: column.integer(),
    /**
     * The signer of the list that names it (`crlIssuerOf`); null while no issuer of the mount is known to have signed
     * it.
     */
    crlIssuer: column.hex().nullable(),
    /** Its number among the revocations of that CRL issuer at this site, without gaps; null without a CRL issuer. */
    seq: column.integer().nullable(),
    /** CRLReason (RFC 5280 section 5.3.1); null is unspecified. */
    reason: column.integer().nullable(),
  },
  { sealed: true },
)

export type CertificateRow = Row<typeof certificateTable>
export type RevocationRow = Row<typeof revocationTable>

/** A certificate as its lease identifies it. */
export type LeasedCertificate = Pick<RevocationRow, 'mount' | 'site' | 'serial' | 'issuer' | 'notAfter'>

/** The name of a certificate: `mount` is its uuid, `serial` in hexadecimal. */
export interface CertificateName {
  readonly mount: string
  readonly serial: string
}

/**
 * The key under which caches hold a certificate: every change and revocation touches (`certificateTable.name`, this).
 */
export const cacheKey = ({ mount, serial }: CertificateName): string => `${mount} ${serial}`

/** The name from which a `cacheKey` was made. */
export function nameOfKey(key: string): Required<CertificateName> {
  const [mount = '', serial = ''] = key.split(' ')
  return { mount, serial }
}

/**
 * The count of the certificates of a site in a mount, kept with their rows. @param site '' gives the prefix of all
 * sites' names
 */
export const certificateTally = (mount: string, site: string): string => `certificates-${mount}-${site}`
