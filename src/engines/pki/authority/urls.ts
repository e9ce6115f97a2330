import { badRequest } from '../../../errors.ts'
import type { Authority, Issuer } from './authority.ts'
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
 * The URLs after a change: lists that are not given stay, a blank entry removes a list.
 * @throws ApiError 400 naming the parameter, for a value that is no URL and, templating aside, will never be one
 */
export function changeUrls(before: Urls, fields: UrlFields, templating: boolean | undefined): Urls {
  const after = { ...before, templating: templating ?? before.templating }
  for (const [parameter, list] of Object.entries(parameters) as [Parameter, UrlList][]) {
    const given = fields[parameter]
    if (given !== undefined) after[list] = given.map((url) => url.trim()).filter((url) => url !== '')
    // Also those that stay: with templating off they must be URLs as they are.
    if (!after.templating) for (const url of after[list]) checkUrl(parameter, url)
  }
  return after
}

export const describeUrls = (urls: Urls) => ({
  issuing_certificates: urls.issuingCertificates,
  crl_distribution_points: urls.crlDistributionPoints,
  ocsp_servers: urls.ocspServers,
})

/** The expanded URLs that certificates of an issuer carry: its own if it has any, or else the mount's. */
export type AuthorityUrls = Readonly<Record<UrlList, readonly string[]>>

/** @throws ApiError 400 where a template cannot be expanded, or does not expand to a URL */
export function urlsOf(authority: Authority, { row }: Issuer): AuthorityUrls {
  const own = row.aia !== null && hasUrls(row.aia) ? row.aia : undefined
  return expand(own ?? authority.settings.urls ?? noUrls, authority, row.id)
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
      const needsId = urls.templating && url.includes('{{issuer_id}}')
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

/** Tells who adds an issuer that its certificates will point nowhere, while the mount has no URLs at all. */
export function warnOfMissingUrls({ settings }: Authority, warn: (text: string) => void): void {
  if (hasUrls(settings.urls ?? noUrls)) return
  warn(
    "This mount hasn't configured any authority information access (AIA) fields; this may make it harder for systems to find missing certificates in the chain or to validate revocation status of certificates. Consider updating /config/urls or the newly generated issuer with this information.",
  )
}

/** Why certificates could not be issued with these URLs; undefined when they could. */
export function problemOf(authority: Authority, urls: Urls): string | undefined {
  try {
    expand(urls, authority, '00000000-0000-0000-0000-000000000000')
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function expand(urls: Urls, authority: Authority, issuerId: string): AuthorityUrls {
  const expandAll = (parameter: Parameter): string[] =>
    urls[parameters[parameter]].map((url) =>
      urls.templating ? checkUrl(parameter, expandOne(url, authority, issuerId)) : url,
    )
  return {
    issuingCertificates: expandAll('issuing_certificates'),
    crlDistributionPoints: expandAll('crl_distribution_points'),
    ocspServers: expandAll('ocsp_servers'),
  }
}

function expandOne(url: string, { cluster }: Authority, issuerId: string): string {
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

/** An absolute URL in the characters of RFC 3986, which is what an IA5String of a certificate may hold. */
export function isUrl(text: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+$/i.test(text)) return false
  return URL.canParse(text) && new URL(text).host !== ''
}
