import { ApiError } from '../errors.ts'
import type { Method, Route, Routes } from '../route.ts'
import { compileFields, type Fields } from './parse.ts'

/** A route with what can be prepared of it at start. */
export interface Endpoint {
  readonly route: Route<unknown>
  readonly fields: Fields
  readonly captures: readonly Capture[]
}

interface Capture {
  readonly name: string
  readonly pattern: RegExp
}

/** A route that was found and what its path captured. */
export interface Match {
  readonly endpoint: Endpoint
  readonly params: Readonly<Record<string, string>>
}

/** Finds the route of a path below a mount, or the 404 or 405 that a caller who may ask is answered. */
export type Dispatch = (method: Method, path: string) => Match | ApiError

/** 404 for a path that no route of an existing mount has. */
export const unsupportedPath = (): ApiError => new ApiError(404, 'unsupported path', { style: 'list' })

/** 405 of a path that anybody may ask by another method: that it exists is no secret, so whoever asks is told. */
export class WrongMethodInPublic extends ApiError {
  constructor() {
    super(405, 'unsupported operation', { style: 'list' })
  }
}

/** Letters, digits and `_`; inside also `-` and `.`: the reference's rule for key names and most captures. */
const keyName = /^\w(?:[\w.-]*\w)?$/
const anything = /./

/** One segment further: by its text (a Map look-up), as a capture, or with everything that follows. */
interface Node {
  readonly statics: Map<string, Node>
  capture: Node | undefined
  rest: Map<Method, Endpoint> | undefined
  /** Routes that take the rest but for its last segment, by that segment. */
  readonly tails: Map<string, Map<Method, Endpoint>>
  readonly ends: Map<Method, Endpoint>
}

const newNode = (): Node => ({
  statics: new Map(),
  capture: undefined,
  rest: undefined,
  tails: new Map(),
  ends: new Map(),
})

/**
 * Compiles the routes of an engine. A look-up costs a Map access per segment, however many routes there are; a static
 * segment wins over a capture, and a capture over `:path*`. A path that ends in the segment behind a `:path*` is that
 * route's alone, whatever its method.
 * @throws {Error} at start, when two routes answer to the same method and path or a declaration is malformed
 */
export function compileRoutes(routes: Routes<unknown>): Dispatch {
  const root = newNode()
  for (const route of routes) insert(root, route)
  return (method, path) => {
    const found: Found = { match: undefined, paths: false, open: false }
    walk(root, path === '' ? [] : path.split('/'), 0, [], method, found)
    if (found.match !== undefined) return found.match
    if (found.open) return new WrongMethodInPublic()
    return found.paths ? new ApiError(405, 'unsupported operation', { style: 'list' }) : unsupportedPath()
  }
}

function insert(root: Node, route: Route<unknown>): void {
  const captures: Capture[] = []
  let node = root
  let ends = root.ends
  const segments = route.path === '' ? [] : route.path.split('/')
  for (const [index, segment] of segments.entries()) {
    if (!segment.startsWith(':')) {
      const next = node.statics.get(segment) ?? newNode()
      node.statics.set(segment, next)
      node = next
    } else if (segment.endsWith('*')) {
      const [tail, more] = segments.slice(index + 1)
      if (more !== undefined || tail?.startsWith(':')) {
        throw new Error(`${route.path}: one fixed segment at most may follow what takes the rest`)
      }
      captures.push({ name: segment.slice(1, -1), pattern: route.captures?.[segment.slice(1, -1)] ?? anything })
      ends = restOf(node, tail)
      break
    } else {
      captures.push({ name: segment.slice(1), pattern: route.captures?.[segment.slice(1)] ?? keyName })
      node.capture ??= newNode()
      node = node.capture
    }
    ends = node.ends
  }
  if (ends.has(route.method)) throw new Error(`two routes answer ${route.method} ${route.path}`)
  const names = captures.map((capture) => capture.name)
  ends.set(route.method, { route, captures, fields: compileFields(route.body.properties, names) })
}

function restOf(node: Node, tail: string | undefined): Map<Method, Endpoint> {
  const ends = (tail === undefined ? node.rest : node.tails.get(tail)) ?? new Map<Method, Endpoint>()
  if (tail === undefined) node.rest = ends
  else node.tails.set(tail, ends)
  return ends
}

interface Found {
  match: Match | undefined
  /** Whether the path exists under another method. */
  paths: boolean
  /** Whether it does for whoever has no token. */
  open: boolean
}

function walk(node: Node, segments: string[], at: number, taken: string[], method: Method, found: Found): void {
  const segment = segments[at]
  if (segment === undefined) {
    settle(node.ends, taken, method, found)
    return
  }
  const next = node.statics.get(segment)
  if (next !== undefined) walk(next, segments, at + 1, taken, method, found)
  if (found.match === undefined && node.capture !== undefined) {
    walk(node.capture, segments, at + 1, [...taken, segment], method, found)
  }
  if (found.match !== undefined) return
  const tail = at < segments.length - 1 ? node.tails.get(segments.at(-1) ?? '') : undefined
  if (tail !== undefined) settle(tail, [...taken, segments.slice(at, -1).join('/')], method, found)
  else if (node.rest !== undefined) settle(node.rest, [...taken, segments.slice(at).join('/')], method, found)
}

function settle(ends: Map<Method, Endpoint>, taken: string[], method: Method, found: Found): void {
  const endpoint = ends.get(method)
  if (endpoint !== undefined) {
    const params = paramsOf(endpoint, taken)
    if (params !== undefined) found.match = { endpoint, params }
    return
  }
  for (const other of ends.values()) {
    if (paramsOf(other, taken) === undefined) continue
    found.paths = true
    found.open ||= other.route.access === 'public'
  }
}

/** Undefined when a captured segment does not have the form its capture asks for. */
function paramsOf(endpoint: Endpoint, taken: string[]): Record<string, string> | undefined {
  const params: Record<string, string> = {}
  for (const [index, capture] of endpoint.captures.entries()) {
    const text = taken[index] ?? ''
    if (!capture.pattern.test(text)) return undefined
    params[capture.name] = text
  }
  return params
}
