import { Type } from 'typebox'
import { data, orNull } from '../../../answers.ts'
import type { Data } from '../../../route.ts'
import { revocationTimes, revocationTimesAnswer } from '../certificates/describe.ts'
import type { Outcome } from './revoker.ts'

/** The members of describeOutcome. */
export const revocationAnswer = data(
  orNull(
    Type.Object({
      ...Type.Partial(Type.Object(revocationTimesAnswer)).properties,
      state: Type.Optional(Type.String()),
    }),
  ),
)

/** The answer of a revocation; null if nothing was recorded. */
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

/** A warning for the caller. @param serial as requested, with colons */
export function warningOf(outcome: Outcome, serial: string): string | undefined {
  if (outcome.state === 'expired') {
    return `certificate with serial ${serial} already expired; refusing to add to CRL. Set allow_expired_cert_revocation in config/crl to revoke it nevertheless.`
  }
  if (outcome.state === 'pending') {
    return `certificate with serial ${serial} is not known at this site; it will be revoked when a site that has it finds this request, which is listed in certs/revocation-queue until then.`
  }
  if (outcome.state === 'revoked' && outcome.row.crlIssuer === null) {
    return `No issuer of this mount is known to have signed certificate ${serial}: no list names it until the issuer is imported again.`
  }
  if (outcome.state === 'revoked' && outcome.unlisted !== undefined) {
    return `no list of this mount will name certificate ${serial}: ${outcome.unlisted}`
  }
  return undefined
}
