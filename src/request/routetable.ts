import { memo } from '../auth/memo.ts'
import type { Engine } from '../engine.ts'
import type { Data, Method, Mount } from '../route.ts'
import type { RequestHead } from './canonicalise.ts'
import { compileRoutes, type Dispatch } from './dispatch.ts'
import { helpOf } from './help.ts'
import { type Match, missingMount, missingPath, unknownMount } from './match.ts'
import { Foldings } from './names/folding.ts'
import { encodeRest, rawPrefixes, rawRest } from './rawrest.ts'

/** The target of a request: the mount of its path, the context of that mount's engine, and the endpoint. */
export interface Target {
  readonly mount: Mount
  readonly context: unknown
  readonly match: Match
}

/** Where a request line leads. */
export interface Way {
  /** Canonical. */
  readonly sent: string
  /** The same with its names folded: what routes, policies and audit see. */
  readonly path: string
  /** For a path that does not exist, its `run` throws. */
  readonly target: Target
}

/** The most request lines whose ways are kept, to be found again by one look-up. */
const waysHeld = 2000
const longestHeld = 200

/** Stands in for the mount of a path that has none. */
const nowhere: Mount = { uuid: '', path: '', type: '', config: {} }

interface CompiledEngine {
  readonly engine: Engine
  readonly dispatch: Dispatch
  readonly rawPrefixes: readonly string[]
}

/** The routes of every engine, compiled at start. */
export class RouteTable {
  readonly #engines: ReadonlyMap<string, CompiledEngine>
  readonly #foldings: Foldings
  readonly #ways = memo<Way>(waysHeld)

  /**
   * @param engines by mount type
   * @throws {Error} when an engine's routes contradict each other
   */
  constructor(engines: ReadonlyMap<string, Engine>) {
    const compile = (engine: Engine): CompiledEngine => {
      const { routes } = engine
      return { engine, dispatch: compileRoutes(routes), rawPrefixes: rawPrefixes(routes) }
    }
    this.#engines = new Map([...engines].map(([type, engine]) => [type, compile(engine)]))
    this.#foldings = new Foldings(engines.values())
  }

  /** @throws {ApiError} 400 for a path with a fault outside a raw rest */
  way(head: RequestHead, mount: Mount | undefined): Way {
    const { method, raw } = head
    const line = `${method} ${raw.rawPath}`
    const known = this.#ways.get(line)
    if (known !== undefined && known.target.mount === mount) return known
    const sent = this.#canonicalPath(head, mount)
    const path = this.#foldings.path(sent, mount)
    const way = { sent, path, target: this.#find(method, path, mount) }
    if (mount !== undefined && line.length <= longestHeld) this.#ways.set(line, way)
    return way
  }

  /**
   * The canonical path of a request, in which a raw rest is one percent-encoded segment.
   * @throws {ApiError} 400 for a path with a fault outside a raw rest
   */
  #canonicalPath({ raw, path, fault }: RequestHead, mount: Mount | undefined): string {
    if (mount !== undefined) {
      const { rawPrefixes = [] } = this.#engines.get(mount.type) ?? {}
      for (const prefix of rawPrefixes) {
        const before = `${mount.path}${prefix}`
        if (!(fault === undefined ? path : `${path}/`).startsWith(before)) continue
        const rest = rawRest(raw.rawPath, before.split('/').length - 1)
        if (rest !== '') return `${before}${encodeRest(rest)}`
      }
    }
    if (fault !== undefined) throw fault
    return path
  }

  /**
   * The target of a request; for a path that does not exist, its `run` throws.
   * @param path canonical and folded
   */
  #find(method: Method, path: string, mount: Mount | undefined): Target {
    if (mount === undefined) {
      return { mount: nowhere, context: undefined, match: missingMount(method === 'LIST' ? `${path}/` : path) }
    }
    const compiled = this.#engines.get(mount.type)
    if (compiled === undefined) return { mount, context: undefined, match: missingPath }
    const { engine, dispatch } = compiled
    return { mount, context: engine.context, match: dispatch(method, path.slice(mount.path.length)) }
  }

  /**
   * The answer of `?help=1`.
   * @throws {ApiError} 404 for a path without a route
   */
  help({ path, policyPath }: { path: string; policyPath: string }, mount: Mount | undefined): Data {
    const compiled = mount && this.#engines.get(mount.type)
    if (mount === undefined || compiled === undefined) throw unknownMount(policyPath)
    return helpOf(mount, compiled.engine.routes, compiled.dispatch, path.slice(mount.path.length))
  }
}
