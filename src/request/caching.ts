import { wholeSeconds } from '../clock/moment.ts'
import type { Caching } from '../route.ts'
import { readHttpDate } from './httpdate.ts'

/** A client's conditions on its cached answer. */
export interface Conditions {
  readonly ifNoneMatch: string | undefined
  readonly ifModifiedSince: string | undefined
}

/**
 * Whether the client's cached answer is still current. If-Modified-Since counts only without If-None-Match, and only if
 * it is a date (RFC 9110 sections 13.1.2, 13.1.3 and 13.2.2).
 */
export function isUnchanged({ etag, lastModified }: Caching, { ifNoneMatch, ifModifiedSince }: Conditions): boolean {
  if (ifNoneMatch !== undefined) return names(ifNoneMatch, etag)
  if (ifModifiedSince === undefined || lastModified === undefined) return false
  const since = readHttpDate(ifModifiedSince)
  return since !== undefined && wholeSeconds(lastModified.getTime()) <= since
}

/**
 * Whether an If-None-Match contains the tag, by the weak comparison (RFC 9110 section 8.8.3.2); `*` matches any answer.
 */
function names(ifNoneMatch: string, etag: string | undefined): boolean {
  if (ifNoneMatch.trim() === '*') return true
  if (etag === undefined) return false
  for (const [, tag] of ifNoneMatch.matchAll(/[ \t,]*(?:W\/)?"([\x21\x23-\x7e]*)"[ \t]*(?=,|$)/gy)) {
    if (tag === etag) return true
  }
  return false
}

/**
 * The caching headers of an answer, for 200 and 304 alike (RFC 9110 section 15.4.5).
 * @param weak whether answers with the same tag differ in bytes, as envelopes do by their request's id
 * @throws {Error} for a tag that a header cannot contain
 */
export function cachingHeaders({ etag, lastModified, maxAgeSeconds }: Caching, weak: boolean): Record<string, string> {
  if (etag !== undefined && !/^[\w.:-]+$/.test(etag)) throw new Error('an entity tag has an invalid character')
  return {
    ...(maxAgeSeconds === undefined
      ? {}
      : { 'Cache-Control': `public, max-age=${Math.max(0, Math.floor(maxAgeSeconds))}` }),
    ...(etag === undefined ? {} : { ETag: weak ? `W/"${etag}"` : `"${etag}"` }),
    ...(lastModified === undefined
      ? {}
      : { 'Last-Modified': new Date(wholeSeconds(lastModified.getTime())).toUTCString() }),
  }
}
