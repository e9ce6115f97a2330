import { after } from '../../../after.ts'
import type { MaybePromise } from '../../../route.ts'
import { DamagedRow } from '../../../store/faults.ts'
import { isSignedBy } from '../../../x509/chain.ts'
import type { CertStatus, RevokedStatus } from '../../../x509/ocsp/response.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import { damagedCertificate, examine } from '../certificates/examine.ts'
import type { CertificateRow, RevocationRow } from '../certificates/tables.ts'
import type { Scope } from '../crl/tables.ts'
import type { KnownSerial } from './serials.ts'

/** The serial numbers on revocation lists. */
export interface ListedSerials {
  /**
   * Whether the current lists of a CRL issuer name a serial number.
   * @param crlIssuer of `crlIssuerOf`
   * @param serial in hexadecimal
   * @param site the site of the lists; undefined for the lists of all sites
   */
  find(crlIssuer: string, serial: string, site: string | undefined): MaybePromise<RevokedStatus | undefined>
  /** Identifies the contents of the lists: another object once they have changed. */
  state(crlIssuer: string): MaybePromise<object | undefined>
}

/** The rows from which the lists of a CRL issuer are made were edited: no status can be read from them. */
export class DamagedLists extends Error {
  readonly crlIssuer: string
  readonly damage: DamagedRow

  constructor(crlIssuer: string, damage: DamagedRow) {
    super(damage.message, { cause: damage })
    this.name = 'DamagedLists'
    this.crlIssuer = crlIssuer
    this.damage = damage
  }
}

/** The same serial numbers, throwing DamagedLists instead of DamagedRow. */
export function namingDamage(listed: ListedSerials): ListedSerials {
  const naming = <T>(crlIssuer: string, read: () => MaybePromise<T>): MaybePromise<T> => {
    const failed = (error: unknown): never => {
      throw error instanceof DamagedRow ? new DamagedLists(crlIssuer, error) : error
    }
    try {
      const found = read()
      return found instanceof Promise ? found.catch(failed) : found
    } catch (error) {
      return failed(error)
    }
  }
  return {
    find: (crlIssuer, serial, site) => naming(crlIssuer, () => listed.find(crlIssuer, serial, site)),
    state: (crlIssuer) => naming(crlIssuer, () => listed.state(crlIssuer)),
  }
}

export interface StatusQuestion {
  readonly authority: Authority
  /** The issuer of the certificate in question. */
  readonly issuer: Issuer
  /** In hexadecimal. */
  readonly serial: string
  readonly scope: Scope
}

/**
 * The status of a certificate (RFC 6960 section 2.2). `good` can also mean that the serial number is unknown. It is
 * never the answer while a list names the serial number, even if the row of the revocation is gone.
 * @param site this node's
 * @throws DamagedRow for a stored certificate that differs from its columns or was not signed by its issuer
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
  // A serial number belongs to one issuer of a mount: the others answer `unknown`.
  const isOfIssuer = () => certificate === undefined || isIssuedBy(certificate, issuer, authority)
  if (revocation !== undefined) {
    const isTheirs = concerns(revocation, issuer, authority) ?? (certificate !== undefined && isOfIssuer())
    return isTheirs ? { revokedAt: revocation.revokedAt, reason: revocation.reason ?? undefined } : 'unknown'
  }
  return isOfIssuer() ? listedStatus({ issuer, serial, scope }, { listed, site }) : 'unknown'
}

/**
 * The status by lists, if the mount has no revocation: another mount of the same CA may have revoked the certificate.
 */
export const listedStatus = (
  { issuer, serial, scope }: Omit<StatusQuestion, 'authority'>,
  { listed, site }: { readonly listed: Pick<ListedSerials, 'find'>; readonly site: string },
): MaybePromise<'good' | RevokedStatus> =>
  after(listed.find(crlIssuerOf(issuer.certificate), serial, scope === 'local' ? site : undefined), (entry) =>
    entry === undefined ? 'good' : { revokedAt: entry.revokedAt, reason: entry.reason },
  )

/** Whether a revocation concerns a certificate of this issuer; undefined if the record does not tell. */
function concerns(revocation: RevocationRow, issuer: Issuer, authority: Authority): boolean | undefined {
  const recorded = authority.issuers.get(revocation.issuer)
  const theirs = revocation.crlIssuer ?? (recorded && crlIssuerOf(recorded.certificate))
  return theirs === undefined ? undefined : theirs === crlIssuerOf(issuer.certificate)
}

/** Decides by the signature: the issuer in a row may have been edited. @throws DamagedRow */
function isIssuedBy(row: CertificateRow, issuer: Issuer, authority: Authority): boolean {
  const { certificate, issuer: signer, differences } = examine(row, authority.issuers)
  const isAnother = differences.has('serial') || differences.has('end')
  if (certificate === undefined || isAnother) throw damagedCertificate(row, differences)
  if (signer !== undefined) return crlIssuerOf(signer.certificate) === crlIssuerOf(issuer.certificate)
  if (isSignedBy(certificate, issuer.certificate)) return true
  if (differences.has('issuer')) throw damagedCertificate(row, differences)
  return false
}
