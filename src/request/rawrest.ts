import { badRequest } from '../errors.ts'
import type { Routes } from '../route.ts'

/**
 * The fixed paths before raw rests, with their slash: `ocsp/`. No other route may be below one, or one policy path
 * could stand for two requests.
 * @throws {Error} at start, when there is another route below one, or a path before a raw rest is not fixed
 */
export function rawPrefixes(routes: Routes<unknown>): readonly string[] {
  const raw = routes.filter(({ path }) => path.endsWith('**'))
  const prefixes = new Set(raw.map(({ path }) => path.slice(0, path.lastIndexOf(':'))))
  for (const prefix of prefixes) {
    if (!/^(?:[^:/]+\/)+$/.test(prefix)) throw new Error(`${prefix}: the path before a raw rest must be fixed`)
    const segments = prefix.split('/').slice(0, -1)
    const stranger = routes.find((route) => !raw.includes(route) && reaches(route.path.split('/'), segments))
    if (stranger) throw new Error(`${stranger.path} is below the raw rest of ${prefix}`)
  }
  return [...prefixes]
}

/** Whether a route's pattern can match a path below these segments. */
function reaches(pattern: readonly string[], below: readonly string[]): boolean {
  const isRest = (segment: string): boolean => segment.startsWith(':') && segment.endsWith('*')
  for (const [index, segment] of below.entries()) {
    const own = pattern[index]
    if (own === undefined) return false
    if (isRest(own)) return true
    if (!own.startsWith(':') && own !== segment) return false
  }
  return pattern.length > below.length
}

/**
 * The rest of a path, raw: only percent-encoding is undone, once.
 * @param rawPath as on the request line
 * @param segments the number of segments before it, without `v1`
 * @throws {ApiError} 400 for an encoding that is not UTF-8
 */
export function rawRest(rawPath: string, segments: number): string {
  const before = /^\/(?:v|%76)(?:1|%31)\//.test(rawPath) ? segments + 1 : segments
  let start = 0
  for (let count = 0; count <= before; count++) start = rawPath.indexOf('/', start) + 1
  try {
    return decodeURIComponent(rawPath.slice(start))
  } catch {
    throw badRequest('the path contains a percent-encoding that is not UTF-8')
  }
}

/**
 * The only form in which routes, policies and audit see a raw rest: one percent-encoded segment. Every rest has its
 * own, never `.` or `..`, and a request that is sent to the path in this form is the same request.
 */
export const encodeRest = (rest: string): string =>
  rest === '.' || rest === '..' ? rest.replaceAll('.', '%2E') : encodeURIComponent(rest)

export const decodeRest = decodeURIComponent
