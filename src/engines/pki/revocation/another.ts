import { badRequest } from '../../../errors.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { withColons } from '../../../x509/serial.ts'
import type { RevocationRow } from '../certificates/tables.ts'

interface Wanted {
  readonly certificate: Pick<Certificate, 'serial' | 'notAfter'>
  /** The signer of the list that is to name it; null if no list of this mount can. */
  readonly crlIssuer: string | null
}

/**
 * A mount records one revocation of a serial number. It is on the list of one issuer, and forgotten when its
 * certificate has ended: a certificate that ends later, or of another issuer, would count as revoked and be on no list.
 * @throws ApiError 400
 */
export function refuseAnother(
  { certificate, crlIssuer }: Wanted,
  revocation: Pick<RevocationRow, 'notAfter' | 'crlIssuer'> | undefined,
): void {
  if (revocation === undefined) return
  const isLater = certificate.notAfter > revocation.notAfter
  const isOfAnother = crlIssuer !== null && revocation.crlIssuer !== null && crlIssuer !== revocation.crlIssuer
  if (!isLater && !isOfAnother) return
  const difference = isLater ? 'ends later' : 'has another issuer'
  throw badRequest(
    `another certificate with serial ${withColons(certificate.serial)} was revoked in this mount; this one ${difference}, and can be revoked after tidy with tidy_revoked_certs has removed that revocation`,
  )
}
