import { badRequest } from '../../../errors.ts'
import type { CrlSettings, ShardPoint } from '../crl/settings.ts'
import type { Authority, Cluster } from './authority.ts'
import { checkAdded, deletedIssuersAfter } from './deletedissuers.ts'
import { outlivedIssuers } from './outlived.ts'
import type { Urls } from './tables.ts'
import { hasUrls, shardVariable, withShardVariable } from './urls.ts'

/** Per issuer and shard count: each URL adds a name to every shard. */
const mostUrls = 16

/**
 * The list settings with every distribution point that an authority can put into certificates, so that shards name all
 * those of their certificates.
 * @param before its certificates keep their distribution points
 * @param site this node's
 * @param now milliseconds since 1970
 * @returns undefined if nothing changes @throws ApiError 400 for too many
 */
export function withShardPoints(
  before: Authority,
  after: Authority,
  site: string,
  now: number,
): CrlSettings | undefined {
  const { crl } = after.settings
  if (crl === null) return undefined
  const { points = [] } = crl
  const deletedIssuers = deletedIssuersAfter(before, after, now)
  const outlived = [...outlivedIssuers(before, after)].filter((id) => after.issuers.has(id))
  const deleted = new Set(deletedIssuers.map(({ id }) => id))
  const standing = points.filter(({ issuer }) => issuer === '' || after.issuers.has(issuer) || deleted.has(issuer))
  const known = new Set(standing.map(keyOf))
  const added = [...movedPoints(before, after, site), ...currentPoints(after)].filter((point) => {
    const isNew = !known.has(keyOf(point))
    known.add(keyOf(point))
    return isNew
  })
  checkAdded(before, after, deletedIssuers)
  const isSame = added.length === 0 && standing.length === points.length
  const isRemembered = areEqual(deletedIssuers, crl.deletedIssuers) && areEqual(outlived, crl.outlived)
  if (isSame && isRemembered) return undefined
  if (added.length > 0) checkCounts([...standing, ...added])
  return { ...crl, points: [...standing, ...added], deletedIssuers, outlived }
}

const areEqual = (one: readonly unknown[], other: readonly unknown[] = []): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

const keyOf = ({ shards, issuer, site, url }: ShardPoint): string => `${shards} ${issuer} ${site} ${url}`

/** The distribution points of new certificates. */
function currentPoints({ settings, issuers }: Authority): ShardPoint[] {
  const shards = settings.crl?.shards ?? 0
  if (shards === 0) return []
  const points = (issuer: string, urls: Urls | null): ShardPoint[] =>
    templatesOf(urls).map((url) => ({ shards, issuer, site: '', url }))
  const own = [...issuers.values()].flatMap(({ row }) =>
    row.aia !== null && hasUrls(row.aia) ? points(row.id, row.aia) : [],
  )
  return [...points('', settings.urls), ...own]
}

const templatesOf = (urls: Urls | null): readonly string[] =>
  urls?.templating ? urls.crlDistributionPoints.map(withShardVariable).filter((url) => url.includes(shardVariable)) : []

/** The distribution points of certificates that this site issued at its former address. */
function movedPoints(before: Authority, after: Authority, site: string): ShardPoint[] {
  const left = changedParts(before, after).filter((part) => before.cluster[part] !== '')
  return pointsWith(before, left).map((point) => ({ ...point, site, url: atAddress(point.url, before.cluster) }))
}

/** Whether this site's certificates get other distribution points than before because its address changed. */
export const areMoved = (before: Authority, after: Authority): boolean =>
  pointsWith(after, changedParts(before, after)).length > 0

const changedParts = (before: Authority, after: Authority): AddressPart[] =>
  (['path', 'aiaPath'] as const).filter((part) => before.cluster[part] !== after.cluster[part])

/** The points of all sites that contain one of these parts of the address. */
const pointsWith = ({ settings }: Authority, parts: readonly AddressPart[]): ShardPoint[] =>
  (settings.crl?.points ?? []).filter(({ site, url }) => site === '' && parts.some((part) => variables[part].test(url)))

type AddressPart = keyof typeof variables
const variables = { path: /\{\{\s*cluster_path\s*\}\}/, aiaPath: /\{\{\s*cluster_aia_path\s*\}\}/ } as const

function atAddress(url: string, cluster: Cluster): string {
  let at = url
  for (const part of ['path', 'aiaPath'] as const) {
    const all = new RegExp(variables[part], 'g')
    // An unknown part stays a variable: no certificate was made with it.
    if (cluster[part] !== '') at = at.replaceAll(all, () => cluster[part])
  }
  return at
}

/** @throws ApiError 400 */
function checkCounts(points: readonly ShardPoint[]): void {
  const urls = Map.groupBy(points, ({ shards, issuer, site }) => `${shards} ${issuer} ${site}`)
  for (const [{ shards } = { shards: 0 }, ...others] of urls.values()) {
    if (others.length < mostUrls) continue
    throw badRequest(
      `crl_distribution_points: certificates of ${shards} shards were given ${mostUrls} URLs with {{shard}}, and their lists name all of them; for further ones set another crl_shards, and leave ${shards} out of crl_former_shards`,
    )
  }
}
