import { showMoment } from '../../../clock/moment.ts'
import { badRequest } from '../../../errors.ts'
import type { Issuer } from '../authority/authority.ts'

/** Milliseconds since the Unix epoch; certificates hold whole seconds. */
export interface Validity {
  readonly notBefore: number
  readonly notAfter: number
}

/**
 * The validity of a leaf within that of its issuer, by the issuer's own rule.
 * @throws ApiError 400
 */
export function withinIssuer({ row, certificate }: Issuer, wanted: Validity, now: number): Validity {
  if (wanted.notAfter <= certificate.notAfter || row.leafNotAfterBehavior === 'permit') return wanted
  const end = showMoment(certificate.notAfter)
  if (row.leafNotAfterBehavior !== 'truncate') {
    throw badRequest(
      `cannot satisfy request, as TTL would result in notAfter of ${showMoment(wanted.notAfter)} that is beyond the expiration of the CA certificate at ${end}`,
    )
  }
  if (certificate.notAfter <= now) throw badRequest(`cannot satisfy request, as NotAfter date ${end} is in the past`)
  return { ...wanted, notAfter: certificate.notAfter }
}
