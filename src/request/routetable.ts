import type { Engine } from '../engine.ts'
import type { Data, Mount } from '../route.ts'
import type { CanonicalRequest } from './canonicalise.ts'
import { compileRoutes, type Dispatch } from './dispatch.ts'
import { helpOf } from './help.ts'
import { type Match, missingMount, missingPath, unknownMount } from './match.ts'

/** Where a request goes: the mount its path lies in, the context of that mount's engine, and the endpoint. */
export interface Target {
  readonly mount: Mount
  readonly context: unknown
  readonly match: Match
}

/** The mount of what lies in none. */
const nowhere: Mount = { uuid: '', path: '', type: '', config: {} }

/** The routes of every engine, compiled at start. */
export class RouteTable {
  readonly #engines: ReadonlyMap<string, { readonly engine: Engine; readonly dispatch: Dispatch }>

  /**
   * @param engines by mount type
   * @throws {Error} when an engine's routes contradict each other
   */
  constructor(engines: ReadonlyMap<string, Engine>) {
    this.#engines = new Map(
      [...engines].map(([type, engine]) => [type, { engine, dispatch: compileRoutes(engine.routes) }]),
    )
  }

  /** The target of a request; of a path that does not exist the `run` throws. */
  find({ method, path, policyPath }: CanonicalRequest, mount: Mount | undefined): Target {
    if (mount === undefined) return { mount: nowhere, context: undefined, match: missingMount(policyPath) }
    const compiled = this.#engines.get(mount.type)
    if (compiled === undefined) return { mount, context: undefined, match: missingPath }
    const { engine, dispatch } = compiled
    return { mount, context: engine.context, match: dispatch(method, path.slice(mount.path.length)) }
  }

  /**
   * What `?help=1` answers.
   * @throws {ApiError} 404 for a path without a route
   */
  help({ path, policyPath }: CanonicalRequest, mount: Mount | undefined): Data {
    const compiled = mount && this.#engines.get(mount.type)
    if (mount === undefined || compiled === undefined) throw unknownMount(policyPath)
    return helpOf(mount, compiled.engine.routes, compiled.dispatch, path.slice(mount.path.length))
  }
}
