import type { Data } from '../../../route.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { pemLine } from '../authority/pem.ts'
import { describeUrls, noUrls } from '../authority/urls.ts'
import { revocationTimes } from '../certificates/describe.ts'

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
