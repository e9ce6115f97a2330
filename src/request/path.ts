import { badRequest } from '../errors.ts'

/** A request path as mounts, routes, policies and audit see it: no leading slash, no `v1/`, no trailing slash. */
export interface CanonicalPath {
  readonly path: string
  /** Whether it ended in a slash, as clients write the path of a list. */
  readonly trailingSlash: boolean
}

/** Characters of an undecoded path; all others must be percent-encoded (RFC 3986). */
const printableAscii = /^[\x21-\x7e]*$/
/** Characters that Go's unicode.IsPrint accepts: the reference's rule for paths. */
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u
const emptyOrDots = /(?:^|\/)\.{0,2}(?:\/|$)/

/**
 * Splits a request target into path and query. The absolute form (`http://host/path`, RFC 9112 3.2.2) loses its
 * scheme and host.
 */
export function splitTarget(target: string): { rawPath: string; query: string } {
  const relative = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '')
  const mark = relative.indexOf('?')
  if (mark < 0) return { rawPath: relative, query: '' }
  return { rawPath: relative.slice(0, mark), query: relative.slice(mark + 1) }
}

/**
 * The canonical path, the only form used after the edge. Percent-encoding is undone once, segment by segment, so that
 * an encoded slash can never move a segment's border; `/v1/x` and `/x` are the same path.
 * @throws {ApiError} 400 for an empty, `.` or `..` segment, an encoded slash, bad encoding, or an unprintable character
 */
export function canonicalPath(rawPath: string): CanonicalPath {
  if (!rawPath.startsWith('/')) throw badRequest('the request path must begin with "/"')
  if (!printableAscii.test(rawPath)) throw badRequest('the path contains a character that must be percent-encoded')
  const trailingSlash = rawPath.length > 1 && rawPath.endsWith('/')
  const encoded = rawPath.slice(1, trailingSlash ? -1 : undefined)
  const decoded = encoded.includes('%') ? encoded.split('/').map(decodeSegment).join('/') : encoded
  if (rawPath !== '/' && emptyOrDots.test(decoded)) throw badRequest(unclean(decoded))
  if (decoded === 'v1') return { path: '', trailingSlash }
  return { path: decoded.startsWith('v1/') ? decoded.slice(3) : decoded, trailingSlash }
}

/** Lists that the specification writes without their mount: the default mount of its type. */
const mountless = 'certs/'
const defaultMount = 'pki/'

/** The path as routes and policies see it, for one of these lists with its mount. @param path canonical */
export const withMount = (path: string): string => (path.startsWith(mountless) ? `${defaultMount}${path}` : path)

/** Of a refused path, the segments before the first one at fault, decoded and without `v1/`. */
export function cleanHead(rawPath: string): string {
  if (!rawPath.startsWith('/') || !printableAscii.test(rawPath)) return ''
  const clean: string[] = []
  for (const segment of rawPath.slice(1).split('/')) {
    if (!isClean(segment)) break
    clean.push(decodeSegment(segment))
  }
  return (clean[0] === 'v1' ? clean.slice(1) : clean).join('/')
}

/** The canonical form of a path, or of the segments before its fault. */
export function readablePath(rawPath: string): string {
  try {
    return canonicalPath(rawPath).path
  } catch {
    return cleanHead(rawPath)
  }
}

function isClean(segment: string): boolean {
  try {
    return !emptyOrDots.test(decodeSegment(segment))
  } catch {
    return false
  }
}

function unclean(path: string): string {
  const segments = path.split('/')
  if (segments.includes('..')) return 'path cannot contain parent references'
  return segments.includes('.')
    ? 'the path must not contain a "." segment'
    : 'the path must not contain an empty segment ("//")'
}

function decodeSegment(segment: string): string {
  let text: string
  try {
    text = decodeURIComponent(segment)
  } catch {
    throw badRequest('the path contains a percent-encoding that is not UTF-8')
  }
  if (text.includes('/')) throw badRequest('the path must not contain an encoded slash (%2F)')
  if (!printable.test(text)) throw badRequest('the path contains a character that cannot be printed')
  return text
}
