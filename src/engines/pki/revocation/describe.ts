import type { Data } from '../../../route.ts'
import { revocationTimes } from '../certificates/describe.ts'
import type { Outcome } from './revoker.ts'

/** The answer of a revocation; null where nothing was recorded. */
export function describeOutcome(outcome: Outcome): Data | null {
  switch (outcome.state) {
    case 'revoked':
      return { ...revocationTimes(outcome.row.revokedAt), state: 'revoked' }
    case 'elsewhere':
      return revocationTimes(outcome.row.revokedAt)
    case 'pending':
      return { state: 'pending' }
    case 'expired':
      return null
  }
}

/** What a caller should know of it besides. @param serial as it was asked for, with colons */
export function warningOf(outcome: Outcome, serial: string): string | undefined {
  if (outcome.state === 'expired') {
    return `certificate with serial ${serial} already expired; refusing to add to CRL. Set allow_expired_cert_revocation in config/crl to revoke it all the same.`
  }
  if (outcome.state === 'pending') {
    return `certificate with serial ${serial} is not known at this site; it is revoked when a site that has it finds this request, which certs/revocation-queue shows meanwhile.`
  }
  if (outcome.state === 'revoked' && outcome.row.crlIssuer === null) {
    return `No issuer of this mount is known to have signed certificate ${serial}: no list names it until the issuer is imported again.`
  }
  if (outcome.state === 'revoked' && outcome.unlisted !== undefined) {
    return `no list of this mount will name certificate ${serial}: ${outcome.unlisted}`
  }
  return undefined
}
