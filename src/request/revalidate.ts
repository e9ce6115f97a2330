import { Answer, type Caching, type Mount, type Outcome } from '../route.ts'
import { cachingHeaders, isUnchanged } from './caching.ts'
import type { CanonicalRequest } from './canonicalise.ts'
import { namesIn } from './headers.ts'
import type { Target } from './routetable.ts'

/**
 * Adds the caching headers to a cacheable answer, or replaces it by a 304. As in the reference, If-Modified-Since
 * counts only if the mount passes it, and Last-Modified is sent only if the mount allows it; tags and ages need no
 * tuning.
 */
export function revalidate(outcome: Outcome, { method, raw }: CanonicalRequest, { mount, match }: Target): Outcome {
  if (!(outcome instanceof Answer) || outcome.caching === undefined) return outcome
  if (outcome.status !== 200 || (method !== 'GET' && method !== 'HEAD')) return outcome
  const isPublic = match.endpoint.access === 'public'
  const { lastModified, etag, maxAgeSeconds } = outcome.caching
  const passed = names(mount, 'passthrough_request_headers', 'if-modified-since')
  const conditions = {
    ifNoneMatch: text(raw.headers['if-none-match']),
    ifModifiedSince: passed ? text(raw.headers['if-modified-since']) : undefined,
  }
  const shown: Caching = {
    etag,
    lastModified: names(mount, 'allowed_response_headers', 'last-modified') ? lastModified : undefined,
    maxAgeSeconds: isPublic ? maxAgeSeconds : undefined,
  }
  const headers = { ...outcome.headers, ...cachingHeaders(shown, outcome.raw === undefined) }
  return isUnchanged({ etag, lastModified }, conditions)
    ? new Answer({ status: 304, headers })
    : outcome.withHeaders(headers)
}

/** Built-in mounts cannot be tuned; they may use all headers. */
const names = (mount: Mount, setting: string, header: string): boolean =>
  mount.uuid === '' || namesIn(mount, setting).includes(header)

const text = (header: string | readonly string[] | undefined): string | undefined =>
  header === undefined || typeof header === 'string' ? header : header.join(', ')
