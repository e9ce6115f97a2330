import { Type } from 'typebox'
import { data, orNull, strings, titled } from '../../../answers.ts'
import type { Data } from '../../../route.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { pemLine } from '../authority/pem.ts'
import { describeUrls, noUrls, urlsAnswer } from '../authority/urls.ts'
import { revocationTimes, revocationTimesAnswer } from '../certificates/describe.ts'

/** The members of describeIssuer. */
export const issuerAnswer = data(
  titled('Issuer', {
    issuer_id: Type.String(),
    issuer_name: Type.String(),
    key_id: Type.String(),
    certificate: Type.String(),
    ca_chain: strings,
    manual_chain: orNull(strings),
    leaf_not_after_behavior: Type.String(),
    usage: Type.String(),
    revocation_signature_algorithm: Type.String(),
    ...urlsAnswer,
    enable_aia_url_templating: Type.Optional(Type.Boolean()),
    revoked: Type.Boolean(),
    ...Type.Partial(Type.Object(revocationTimesAnswer)).properties,
  }),
)

/** An issuer as its owners see it. */
export function describeIssuer(authority: Authority, issuer: Issuer): Data {
  const { row } = issuer
  return {
    issuer_id: row.id,
    issuer_name: row.name ?? '',
    key_id: row.keyId,
    certificate: pemLine(issuer),
    ca_chain: authority.chainOf(issuer).map(pemLine),
    manual_chain: row.manualChain,
    leaf_not_after_behavior: row.leafNotAfterBehavior,
    usage: row.usages.toSorted().join(','),
    revocation_signature_algorithm: row.revocationSignatureAlgorithm,
    ...describeUrls(row.aia ?? noUrls),
    ...(row.aia === null ? {} : { enable_aia_url_templating: row.aia.templating }),
    ...describeRevocation(row.revokedAt),
  }
}

function describeRevocation(revokedAt: number | null): Data {
  if (revokedAt === null) return { revoked: false }
  return { revoked: true, ...revocationTimes(revokedAt) }
}
