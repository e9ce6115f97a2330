import { after } from '../../../after.ts'
import type { MaybePromise } from '../../../route.ts'
import { DamagedRow } from '../../../store/faults.ts'
import { type Certificate, readCertificate } from '../../../x509/certificate.ts'
import { isSignedBy } from '../../../x509/chain.ts'
import { Malformed } from '../../../x509/malformed.ts'
import type { CertStatus, RevokedStatus } from '../../../x509/ocsp/response.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import { type CertificateRow, certificateTable, type RevocationRow } from '../certificates/tables.ts'
import type { Scope } from '../crl/tables.ts'
import type { KnownSerial } from './serials.ts'

/** What revocation lists name. */
export interface ListedSerials {
  /**
   * Whether the current lists of a CRL issuer name a serial number.
   * @param crlIssuer of `crlIssuerOf`
   * @param serial in hexadecimal
   */
  find(crlIssuer: string, serial: string): MaybePromise<(RevokedStatus & { readonly site: string }) | undefined>
  /** Stands for all that they name: another object once they have changed. */
  state(crlIssuer: string): MaybePromise<object | undefined>
}

export interface StatusQuestion {
  readonly authority: Authority
  /** Whom the request is about. */
  readonly issuer: Issuer
  /** In hexadecimal. */
  readonly serial: string
  readonly scope: Scope
}

/**
 * The status of a certificate (RFC 6960 section 2.2). `good` also means that nothing is known of the serial number; it is never
 * the answer while a list names it, whatever became of the row of its revocation.
 * @param site this node's
 * @throws DamagedRow for a stored certificate that is not what its columns say, or that its issuer did not sign
 */
export async function statusOf(
  { authority, issuer, serial, scope }: StatusQuestion,
  known: KnownSerial | undefined,
  { listed, site }: { readonly listed: Pick<ListedSerials, 'find'>; readonly site: string },
): Promise<CertStatus> {
  const inScope = <T extends { readonly site: string }>(found: T | undefined): T | undefined =>
    found !== undefined && (scope === 'unified' || found.site === site) ? found : undefined
  const revocation = inScope(known?.revocation)
  const certificate = inScope(known?.certificate)
  // Of two issuers of a mount one alone has issued under a serial number: the other knows nothing of it.
  const isOfIssuer = () => certificate === undefined || isIssuedBy(certificate, issuer, authority)
  if (revocation !== undefined) {
    const isTheirs = concerns(revocation, issuer, authority) ?? (certificate !== undefined && isOfIssuer())
    return isTheirs ? { revokedAt: revocation.revokedAt, reason: revocation.reason ?? undefined } : 'unknown'
  }
  return isOfIssuer() ? listedStatus({ issuer, serial, scope }, { listed, site }) : 'unknown'
}

/** What lists say of a certificate whose mount has no revocation: another mount of the same CA may have revoked it. */
export const listedStatus = (
  { issuer, serial, scope }: Omit<StatusQuestion, 'authority'>,
  { listed, site }: { readonly listed: Pick<ListedSerials, 'find'>; readonly site: string },
): MaybePromise<'good' | RevokedStatus> =>
  after(listed.find(crlIssuerOf(issuer.certificate), serial), (entry) =>
    entry === undefined || (scope === 'local' && entry.site !== site)
      ? 'good'
      : { revokedAt: entry.revokedAt, reason: entry.reason },
  )

/** Whether a revocation is one of this issuer's certificates; undefined where the record does not say. */
function concerns(revocation: RevocationRow, issuer: Issuer, authority: Authority): boolean | undefined {
  const recorded = authority.issuers.get(revocation.issuer)
  const theirs = revocation.crlIssuer ?? (recorded && crlIssuerOf(recorded.certificate))
  return theirs === undefined ? undefined : theirs === crlIssuerOf(issuer.certificate)
}

/** Rows of certificates are not sealed: the signature of the issuer is. @throws DamagedRow */
function isIssuedBy(row: CertificateRow, issuer: Issuer, authority: Authority): boolean {
  const certificate = readStored(row)
  if (isSignedBy(certificate, issuer.certificate)) return true
  const recorded = authority.issuers.get(row.issuer)
  const isOfAnother = recorded === undefined || (recorded !== issuer && isSignedBy(certificate, recorded.certificate))
  if (!isOfAnother) throw new DamagedRow(certificateTable.name, row.id, 'its issuer did not sign it')
  return false
}

function readStored(row: CertificateRow): Certificate {
  try {
    const certificate = readCertificate(row.der)
    if (certificate.serial.toString('hex') === row.serial && certificate.notAfter === row.notAfter) return certificate
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
  }
  throw new DamagedRow(certificateTable.name, row.id, 'the certificate is not what its columns say')
}
