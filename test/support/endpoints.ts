import type { Contract, Endpoint } from './contract.ts'

const builtin: readonly (readonly [path: string, type: string])[] = [
  ['sys/', 'system'],
  ['auth/token/', 'token'],
  ['transit/', 'transit'],
  ['pki/', 'pki'],
]
/** Types of the mounts that this process knows, by path; servers of one file may differ, so that a path has several. */
const mounts = new Map(builtin.map(([path, type]) => [path, new Set([type])]))
/** A mount that another process made may be of any engine. */
const engines: ReadonlySet<string> = new Set(['transit', 'pki'])

/** Remembers the mount that a successful request made or moved. */
export function noteMount(method: string, path: string, sent: unknown): void {
  if (method !== 'POST') return
  const { type = '', plugin_name: other = '', from = '', to = '' } = fieldsOf(sent)
  const made = /^sys\/mounts\/(.+?)\/?$/.exec(path)?.[1]
  if (made !== undefined && !made.endsWith('/tune')) note(made, new Set([type || other]))
  if (path === 'sys/remount') note(to, mounts.get(folder(from)) ?? engines)
}

function note(path: string, types: ReadonlySet<string>): void {
  mounts.set(folder(path), new Set([...(mounts.get(folder(path)) ?? []), ...types]))
}

const folder = (path: string): string => `${path.replace(/^\/+|\/+$/g, '')}/`

function fieldsOf(sent: unknown): Readonly<Record<string, string>> {
  if (typeof sent !== 'string') return { ...(sent as object) }
  try {
    return { ...JSON.parse(sent) }
  } catch {
    return {}
  }
}

/**
 * The endpoints that may have answered: one, unless the mount is not known.
 * @param path below /v1/, as sent
 */
export function endpointsAt(contract: Contract, method: string, path: string): readonly Endpoint[] {
  const canonical = path.replace(/^certs\//, 'pki/certs/').replace(/\/+$/, '')
  const parts = `${canonical}/`.split('/')
  const prefixes = parts.slice(1).map((_, index) => `${parts.slice(0, index + 1).join('/')}/`)
  const known = prefixes.findLast((prefix) => mounts.has(prefix))
  const candidates =
    known === undefined
      ? prefixes.map((prefix) => [prefix, engines] as const)
      : [[known, mounts.get(known) ?? engines] as const]
  return candidates.flatMap(([prefix, types]) =>
    [...types].flatMap((type) => endpointIn(contract[type] ?? [], method, canonical.slice(prefix.length)) ?? []),
  )
}

/** The most specific endpoint: a fixed segment is more specific than a capture, and a capture than a rest. */
function endpointIn(endpoints: readonly Endpoint[], method: string, path: string): Endpoint | undefined {
  const fits = (one: Endpoint) => one.method === method || (method === 'HEAD' && one.method === 'GET')
  const found = endpoints.filter((one) => fits(one) && patternOf(one).test(path))
  return found.toSorted((a, b) => (rankOf(a) < rankOf(b) ? -1 : 1))[0]
}

const patterns = new WeakMap<Endpoint, RegExp>()

function patternOf(endpoint: Endpoint): RegExp {
  const known = patterns.get(endpoint)
  if (known !== undefined) return known
  const parts = endpoint.path.split('/').map((segment) => {
    const [, name = '', stars] = /^:(\w+)(\**)$/.exec(segment) ?? []
    if (name === '') return segment
    return stars === '' ? '[^/]+' : '.+'
  })
  const pattern = new RegExp(`^${parts.join('/')}$`, 's')
  patterns.set(endpoint, pattern)
  return pattern
}

/** One character for each segment, the more specific ones first. */
const rankOf = ({ method, path }: Endpoint): string => {
  const segments = path
    .split('/')
    .map((segment) => (!segment.startsWith(':') ? '0' : segment.endsWith('*') ? '2' : '1'))
  // A rest with a fixed segment behind it comes before a rest alone.
  const tail = segments.at(-2) === '2' ? '' : '9'
  return `${segments.join('').replace(/2.*$/, '2')}${tail}${method === 'HEAD' ? 0 : 1}`
}
