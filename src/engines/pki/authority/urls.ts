import { strings } from '../../../answers.ts'
import { badRequest } from '../../../errors.ts'
import { shardName, shardNumber } from '../crl/shards/shard.ts'
import type { Authority, Cluster, Issuer } from './authority.ts'
import type { Urls } from './tables.ts'

/** The three lists by their names on the wire. */
const parameters = {
  issuing_certificates: 'issuingCertificates',
  crl_distribution_points: 'crlDistributionPoints',
  ocsp_servers: 'ocspServers',
} as const
type Parameter = keyof typeof parameters
type UrlList = (typeof parameters)[Parameter]

export const noUrls: Urls = { issuingCertificates: [], crlDistributionPoints: [], ocspServers: [], templating: false }

/** Fields of a request that set URLs. */
export type UrlFields = { readonly [K in Parameter]?: readonly string[] | undefined }

/**
 * The URLs after a change: lists that are not given stay, and a blank entry removes a list.
 * @throws ApiError 400 naming the parameter, for a value that is not a URL while templating is off
 */
export function changeUrls(before: Urls, fields: UrlFields, templating: boolean | undefined): Urls {
  const after = { ...before, templating: templating ?? before.templating }
  for (const [parameter, list] of Object.entries(parameters) as [Parameter, UrlList][]) {
    const given = fields[parameter]
    if (given !== undefined) after[list] = given.map((url) => url.trim()).filter((url) => url !== '')
    // Unchanged lists too: with templating off they must hold complete URLs.
    if (!after.templating) for (const url of after[list]) checkUrl(parameter, url)
  }
  return after
}

/** The members of describeUrls. */
export const urlsAnswer = {
  issuing_certificates: strings,
  crl_distribution_points: strings,
  ocsp_servers: strings,
}

/** URLs as answers show them. */
export const describeUrls = (urls: Urls) => ({
  issuing_certificates: urls.issuingCertificates,
  crl_distribution_points: urls.crlDistributionPoints,
  ocsp_servers: urls.ocspServers,
})

/** The expanded URLs that certificates of an issuer carry: its own if it has any, or else the mount's. */
export interface AuthorityUrls extends Readonly<Record<UrlList, readonly string[]>> {
  /** How many lists the issuer's certificates are spread over, 0 without `{{shard}}`, which is not expanded here. */
  readonly shards: number
}

/** @throws ApiError 400 where a template cannot be expanded, or does not expand to a URL */
export function urlsOf(authority: Authority, { row }: Issuer): AuthorityUrls {
  const own = row.aia !== null && hasUrls(row.aia) ? row.aia : undefined
  return expand(own ?? authority.settings.urls ?? noUrls, authority, row.id)
}

const ofShards = new WeakMap<AuthorityUrls, AuthorityUrls[]>()

/** The URLs of one certificate; the same object for all certificates of a shard. @param serial magnitude */
export function urlsOfSerial(urls: AuthorityUrls, serial: Uint8Array): AuthorityUrls {
  if (urls.shards === 0) return urls
  const number = shardNumber(serial, urls.shards)
  const known = ofShards.get(urls) ?? []
  ofShards.set(urls, known)
  const name = shardName({ number, of: urls.shards })
  known[number] ??= {
    ...urls,
    crlDistributionPoints: urls.crlDistributionPoints.map((url) => url.replaceAll(shardVariable, name)),
    shards: 0,
  }
  return known[number]
}

export const hasUrls = ({ issuingCertificates, crlDistributionPoints, ocspServers }: Urls): boolean =>
  issuingCertificates.length + crlDistributionPoints.length + ocspServers.length > 0

/**
 * The URLs of a root that is about to be made, which has no id yet: those that need one are left out.
 * @param omitted is told of each
 */
export function urlsOfNewRoot(authority: Authority, omitted: (url: string) => void): AuthorityUrls {
  const urls = authority.settings.urls ?? noUrls
  const usable = (list: readonly string[]): string[] =>
    list.filter((url) => {
      const needsId = urls.templating && namesIssuer(url)
      if (needsId) omitted(url)
      return !needsId
    })
  return expand(
    {
      issuingCertificates: usable(urls.issuingCertificates),
      crlDistributionPoints: usable(urls.crlDistributionPoints),
      ocspServers: usable(urls.ocspServers),
      templating: urls.templating,
    },
    authority,
    '',
  )
}

/** Warns that a new issuer's certificates will point nowhere, if the mount has no URLs at all. */
export function warnOfMissingUrls({ settings }: Authority, warn: (text: string) => void): void {
  if (hasUrls(settings.urls ?? noUrls)) return
  warn(
    "This mount hasn't configured any authority information access (AIA) fields; this may make it harder for systems to find missing certificates in the chain or to validate revocation status of certificates. Consider updating /config/urls or the newly generated issuer with this information.",
  )
}

/** Why certificates could not be issued with these URLs, if so. */
export function problemOf(authority: Authority, urls: Urls): string | undefined {
  try {
    expand(urls, authority, '00000000-0000-0000-0000-000000000000')
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Why distribution points are left out for now, if any are. */
export function unusedPointsOf(
  { settings }: Authority,
  { templating, crlDistributionPoints }: Urls,
): string | undefined {
  const isSpread = templating && crlDistributionPoints.some((url) => withShardVariable(url).includes(shardVariable))
  if (!isSpread || (settings.crl?.shards ?? 0) > 0) return undefined
  return 'crl_distribution_points with {{shard}} are left out of certificates while crl_shards of config/crl is 0'
}

function expand(urls: Urls, authority: Authority, issuerId: string): AuthorityUrls {
  const shards = authority.settings.crl?.shards ?? 0
  const expandAll = (parameter: Parameter): string[] =>
    urls[parameters[parameter]].map((url) =>
      urls.templating ? checkUrl(parameter, expandVariables(url, authority.cluster, issuerId)) : url,
    )
  const points = urls.templating ? urls.crlDistributionPoints.map(withShardVariable) : urls.crlDistributionPoints
  const isSpread = (url: string): boolean => url.includes(shardVariable)
  return {
    issuingCertificates: expandAll('issuing_certificates'),
    // Without shards these URLs would lead nowhere.
    crlDistributionPoints: points
      .filter((url) => shards > 0 || !isSpread(url))
      .map((url) => (urls.templating ? expandPoint(url, authority.cluster, issuerId) : url)),
    ocspServers: expandAll('ocsp_servers'),
    shards: points.some(isSpread) ? shards : 0,
  }
}

/** Whether a template expands to a different URL for each issuer. */
export const namesIssuer = (url: string): boolean => /\{\{\s*issuer_id\s*\}\}/.test(url)

/** Stands for the shard of a certificate, in distribution points only. */
export const shardVariable = '{{shard}}'

/** Normalises the variable's spelling. */
export const withShardVariable = (url: string): string => url.replaceAll(/\{\{\s*shard\s*\}\}/g, shardVariable)

/**
 * A distribution point with its shard left open.
 * @throws ApiError 400 where a template cannot be expanded, or does not expand to a URL
 */
export function expandPoint(url: string, cluster: Cluster, issuerId: string): string {
  const expanded = expandVariables(url, cluster, issuerId)
  checkUrl('crl_distribution_points', expanded.replaceAll(shardVariable, shardName({ number: 1, of: 2 })))
  return expanded
}

/** @throws ApiError 400 */
function expandVariables(url: string, cluster: Cluster, issuerId: string): string {
  const known = (value: string, field: string): string => {
    if (value !== '') return value
    throw badRequest(
      `unable to template AIA URLs as we lack local cluster address information (${field}): set it by config/cluster`,
    )
  }
  return url.replaceAll(/\{\{\s*(issuer_id|cluster_path|cluster_aia_path)\s*\}\}/g, (_, name: string) => {
    if (name === 'issuer_id') return issuerId
    return name === 'cluster_path' ? known(cluster.path, 'path') : known(cluster.aiaPath, 'aia_path')
  })
}

function checkUrl(parameter: Parameter, url: string): string {
  if (isUrl(url)) return url
  throw badRequest(`invalid URL found in Authority Information Access (AIA) parameter ${parameter}: ${url}`)
}

/** An absolute URL in the characters of RFC 3986, as certificates require (RFC 5280 section 4.2.1.6). */
export function isUrl(text: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+$/i.test(text)) return false
  return URL.canParse(text) && new URL(text).host !== ''
}
