import type { Method, Route, Routes } from '../route.ts'
import { strangerBodyBytes } from './exchange.ts'
import {
  type Capture,
  type Endpoint,
  type Match,
  missingMethod,
  missingPath,
  missingPublicMethod,
  missingPublicPath,
} from './match.ts'
import { compileFields } from './parse.ts'
import { decodeRest } from './rawrest.ts'

/** Finds the route of a path below a mount. For a path without one the match throws the 404 or 405 when it is run. */
export type Dispatch = (method: Method, path: string) => Match

/** Letters, digits and `_`, and inside also `-` and `.`: the reference's rule for key names and most captures. */
const keyName = /^\w(?:[\w.-]*\w)?$/
const anything = /./s

/** The next segment: by its text (a Map look-up), as a capture, or with everything that follows. */
interface Node {
  readonly statics: Map<string, Node>
  capture: Node | undefined
  rest: Map<Method, Endpoint> | undefined
  /** Routes that capture the rest except its last segment, by that segment. */
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
 * Compiles the routes of an engine. A look-up costs one Map access per segment, however many routes there are. A static
 * segment wins over a capture, and a capture over `:path*`. A path that ends in the segment after a `:path*` belongs to
 * that route alone, for every method. A public GET also answers HEAD.
 * @throws {Error} at start, when two routes have the same method and path or a declaration is malformed
 */
export function compileRoutes(routes: Routes<unknown>): Dispatch {
  const root = newNode()
  for (const route of routes) insert(root, route)
  answerHead(root)
  return (method, path) => {
    const search: Search = { method, match: undefined, otherMethod: false, publicMethod: false, publicPattern: false }
    walk(root, path === '' ? [] : path.split('/'), 0, [], search)
    if (search.match !== undefined) return search.match
    if (search.publicMethod) return missingPublicMethod
    if (search.otherMethod) return missingMethod
    return search.publicPattern ? missingPublicPath : missingPath
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
        throw new Error(`${route.path}: at most one fixed segment may follow a rest`)
      }
      const raw = segment.endsWith('**')
      const name = segment.slice(1, raw ? -2 : -1)
      if (raw && tail !== undefined) throw new Error(`${route.path}: nothing may follow a raw rest`)
      captures.push({ name, pattern: route.captures?.[name] ?? anything, raw })
      ends = restOf(node, tail)
      break
    } else {
      const name = segment.slice(1)
      captures.push({ name, pattern: route.captures?.[name] ?? keyName, raw: false })
      node.capture ??= newNode()
      node = node.capture
    }
    ends = node.ends
  }
  if (ends.has(route.method)) throw new Error(`two routes answer ${route.method} ${route.path}`)
  checkBytes(route)
  const names = captures.map((capture) => capture.name)
  const fields = compileFields(route.body.properties, names)
  ends.set(route.method, { route, access: route.access, captures, fields })
}

/** @throws {Error} when a declaration of bytes contradicts the rest of the route */
function checkBytes({ method, path, access, bytes, body }: Route<unknown>): void {
  if (bytes === undefined) return
  if (method !== 'POST') throw new Error(`${method} ${path} has no body to be bytes`)
  if (Object.keys(body.properties).length > 0) throw new Error(`${path}: a body of bytes has no fields`)
  if (access === 'public' && bytes.maxBytes > strangerBodyBytes) {
    throw new Error(`${path}: a public route takes ${strangerBodyBytes} bytes at most`)
  }
}

/** Lets every public GET answer HEAD, unless HEAD has a route of its own. */
function answerHead({ statics, capture, rest, tails, ends }: Node): void {
  for (const methods of [ends, rest, ...tails.values()]) {
    const get = methods?.get('GET')
    if (get?.access === 'public' && !methods?.has('HEAD')) methods?.set('HEAD', get)
  }
  for (const next of statics.values()) answerHead(next)
  if (capture !== undefined) answerHead(capture)
}

function restOf(node: Node, tail: string | undefined): Map<Method, Endpoint> {
  const ends = (tail === undefined ? node.rest : node.tails.get(tail)) ?? new Map<Method, Endpoint>()
  if (tail === undefined) node.rest = ends
  else node.tails.set(tail, ends)
  return ends
}

interface Search {
  readonly method: Method
  match: Match | undefined
  /** Whether the path exists under another method. */
  otherMethod: boolean
  /** Whether the other method needs no token. */
  publicMethod: boolean
  /** Whether a route of this method needs no token, and only a capture of it does not fit. */
  publicPattern: boolean
}

/** @param captured texts of the captures on the way from the root */
function walk(node: Node, segments: string[], depth: number, captured: string[], search: Search): void {
  const segment = segments[depth]
  if (segment === undefined) {
    matchEnd(node.ends, captured, search)
    return
  }
  const next = node.statics.get(segment)
  if (next !== undefined) walk(next, segments, depth + 1, captured, search)
  if (search.match === undefined && node.capture !== undefined) {
    walk(node.capture, segments, depth + 1, [...captured, segment], search)
  }
  if (search.match !== undefined) return
  const tail = depth < segments.length - 1 ? node.tails.get(segments.at(-1) ?? '') : undefined
  if (tail !== undefined) matchEnd(tail, [...captured, segments.slice(depth, -1).join('/')], search)
  else if (node.rest !== undefined) matchEnd(node.rest, [...captured, segments.slice(depth).join('/')], search)
}

function matchEnd(ends: Map<Method, Endpoint>, captured: string[], search: Search): void {
  const endpoint = ends.get(search.method)
  if (endpoint !== undefined) {
    const params = paramsOf(endpoint, captured)
    if (params !== undefined) search.match = { endpoint, params }
    else search.publicPattern ||= endpoint.access === 'public'
    return
  }
  for (const other of ends.values()) {
    if (search.method === 'LIST' && !listReaches(other.route)) continue
    if (paramsOf(other, captured) === undefined) continue
    search.otherMethod = true
    // A public list is a path of its own in the reference, with a slash at its end: it says nothing about this one.
    search.publicMethod ||= other.access === 'public' && other.route.method !== 'LIST'
  }
}

/**
 * Whether LIST of the route's path is a wrong method and not a wrong path. As in the reference the path of a list ends in
 * a slash (`keys/a/`), which below a mount only a rest captures: clients take the 404 for an empty directory.
 */
const listReaches = ({ access, path }: Route<unknown>): boolean => access === 'public' || path.endsWith('*')

/** Undefined when a captured segment does not match its capture's form. */
function paramsOf(endpoint: Endpoint, captured: string[]): Record<string, string> | undefined {
  const params: Record<string, string> = {}
  for (const [index, capture] of endpoint.captures.entries()) {
    const segment = captured[index] ?? ''
    const text = capture.raw ? decodeRest(segment) : segment
    if (!capture.pattern.test(text)) return undefined
    params[capture.name] = text
  }
  return params
}
