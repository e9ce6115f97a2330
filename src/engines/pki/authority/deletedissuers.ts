import { badRequest } from '../../../errors.ts'
import type { DeletedIssuer } from '../crl/settings.ts'
import type { Authority } from './authority.ts'
import { crlIssuerOf } from './crlissuer.ts'
import { outlivedIssuers } from './outlived.ts'
import { namesIssuer } from './urls.ts'

/** Per name and key: each adds names to every shard, as existing issuers do. */
const mostDeleted = 16

/**
 * The deleted issuers whose URLs shards still name: those whose name and key another issuer shares, until their
 * certificates have expired. Lists are removed with the last issuer of their name and key.
 * @param now milliseconds since 1970
 */
export function deletedIssuersAfter(before: Authority, after: Authority, now: number): readonly DeletedIssuer[] {
  const { points = [], deletedIssuers = [] } = after.settings.crl ?? {}
  const gone = [...before.issuers.values()].filter(({ row }) => !after.issuers.has(row.id))
  if (gone.length + deletedIssuers.length === 0) return deletedIssuers
  const outlived = outlivedIssuers(before, after)
  const left = gone.flatMap(({ row: { id }, certificate }): DeletedIssuer[] => {
    const own = points.filter(({ issuer, url }) => issuer === id || (issuer === '' && namesIssuer(url)))
    const shards = [...new Set(own.map((point) => point.shards))]
    if (shards.length === 0) return []
    const until = outlived.has(id) ? {} : { until: certificate.notAfter }
    return [{ id, crlIssuer: crlIssuerOf(certificate), shards, ...until }]
  })
  const living = new Set([...after.issuers.values()].map(({ certificate }) => crlIssuerOf(certificate)))
  return [...deletedIssuers, ...left].filter(
    ({ crlIssuer, until = Number.POSITIVE_INFINITY }) => living.has(crlIssuer) && until > now,
  )
}

/**
 * Refuses issuers instead of deletions: a deletion adds no name to any list.
 * @throws ApiError 400 for a further issuer of a name and key with too many deleted issuers
 */
export function checkAdded(before: Authority, after: Authority, deletedIssuers: readonly DeletedIssuer[]): void {
  if (deletedIssuers.length < mostDeleted) return
  for (const { row, certificate } of after.issuers.values()) {
    if (before.issuers.has(row.id)) continue
    const crlIssuer = crlIssuerOf(certificate)
    const twins = deletedIssuers.filter((deleted) => deleted.crlIssuer === crlIssuer)
    if (twins.length < mostDeleted) continue
    const counts = [...new Set(twins.flatMap(({ shards }) => shards))].toSorted((a, b) => a - b).join(', ')
    throw badRequest(
      `lists of ${counts} shards name the distribution points of ${twins.length} deleted issuers of this name and key; for a further issuer set another crl_shards, and leave ${counts} out of crl_former_shards`,
    )
  }
}
