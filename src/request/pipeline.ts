import { after } from '../after.ts'
import { decide } from '../auth/acl/decide.ts'
import type { Authenticator, Identity } from '../auth/authenticate.ts'
import type { Engine } from '../engine.ts'
import { ApiError, badRequest } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Caller, Capability, MaybePromise, Method, Mount } from '../route.ts'
import { credentialOf, notAuthenticated, notAuthorised } from './access.ts'
import { compileRoutes, type Dispatch, type Match, unsupportedPath } from './dispatch.ts'
import { envelope, errorReply } from './envelope.ts'
import type { Pipeline, RawReply, RawRequest } from './exchange.ts'
import { bodyInput, type Input, methodOf, queryInput } from './input.ts'
import { convertFields, type Named, normaliseNames } from './parse.ts'
import { canonicalPath } from './path.ts'

export interface PipelineOptions {
  readonly mounts: { find(path: string): MaybePromise<Mount | undefined> }
  readonly authenticator: Authenticator
  /** By mount type. */
  readonly engines: ReadonlyMap<string, Engine>
  readonly log: Logger
}

/** What was asked, before anybody looked whether it exists or is allowed. */
interface Asked {
  readonly request: RawRequest
  readonly method: Method
  /** Canonical, without trailing slash: what routes see. */
  readonly path: string
  /** The same with a slash behind it for a list: what policies see. */
  readonly policyPath: string
  readonly input: Input
}

/** A route with everything `run` needs but the conversion of its parameters. */
interface Target {
  readonly engine: Engine
  readonly mount: Mount
  readonly match: Match
  readonly named: Named
}

const needs: Readonly<Record<Method, Capability>> = {
  GET: 'read',
  HEAD: 'read',
  LIST: 'list',
  POST: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/**
 * The way of a request: canonical path → mount → route → JSON syntax → names → token → exists? → policies → fields →
 * run → envelope. Whatever can answer at once does: a request whose look-ups and `run` are synchronous makes no promise.
 * @throws {Error} at start, when an engine's routes contradict each other
 */
export function createPipeline({ mounts, authenticator, engines, log }: PipelineOptions): Pipeline {
  const tables = new Map<string, Dispatch>()
  for (const [type, engine] of engines) tables.set(type, compileRoutes(engine.routes))

  /** The route, or the 404 or 405 for who may know. */
  function locate(asked: Asked, mount: Mount | undefined): Target | ApiError {
    if (mount === undefined) {
      return new ApiError(404, `no handler for route "${asked.policyPath}". route entry not found.`)
    }
    const engine = engines.get(mount.type)
    const dispatch = tables.get(mount.type)
    if (engine === undefined || dispatch === undefined) return unsupportedPath()
    const match = dispatch(asked.method, asked.path.slice(mount.path.length))
    if (match instanceof ApiError) return match
    return { engine, mount, match, named: normaliseNames(match.endpoint.fields, asked.input) }
  }

  function identify(asked: Asked, target: Target | ApiError): MaybePromise<RawReply> {
    const credential = credentialOf(asked.request.headers)
    if (!(target instanceof ApiError) && target.match.endpoint.route.access === 'public') {
      return after(guest(authenticator, credential), (who) => perform(asked, target, who?.caller, needs[asked.method]))
    }
    if (credential === '') throw notAuthenticated()
    return after(authenticator.authenticate(credential), (who) => {
      if (who === undefined) throw notAuthenticated()
      return authorise(asked, target, who)
    })
  }

  function fault(request: RawRequest, error: unknown): RawReply {
    const about = { requestId: request.id, method: request.method, err: error }
    if (error instanceof ApiError) {
      if (error.status >= 500) log.warn(about, 'a request could not be served')
      return errorReply(error)
    }
    log.error(about, 'a request failed by a fault of ours')
    return errorReply(new ApiError(500, 'internal error', { style: 'list' }))
  }

  return {
    handle(request) {
      try {
        const asked = receive(request)
        const reply = after(mounts.find(asked.path), (mount) => identify(asked, locate(asked, mount)))
        return reply instanceof Promise ? reply.catch((error: unknown) => fault(request, error)) : reply
      } catch (error) {
        return fault(request, error)
      }
    },
  }
}

function receive(request: RawRequest): Asked {
  refuseUnbuilt(request.headers)
  const { path, trailingSlash } = canonicalPath(request.rawPath)
  const query = request.query === '' ? undefined : new URLSearchParams(request.query)
  const method = methodOf(request.method, query)
  if (path === '') throw new ApiError(404, [])
  const writes = method === 'POST' || method === 'PATCH'
  if (writes && trailingSlash) throw badRequest("cannot write to a path ending in '/'")
  const contentType = request.headers['content-type']
  const input = writes
    ? bodyInput(method, typeof contentType === 'string' ? contentType : '', request.body)
    : queryInput(query)
  return { request, method, path, policyPath: method === 'LIST' ? `${path}/` : path, input }
}

/** What would change the answer's meaning and is not there is refused, never passed over. */
function refuseUnbuilt(headers: RawRequest['headers']): void {
  if (headers['x-vault-wrap-ttl'] || headers['x-vault-wrap-format']) {
    throw badRequest(
      'response wrapping is not available on this server: send no X-Vault-Wrap-TTL or X-Vault-Wrap-Format',
    )
  }
  const namespace = headers['x-vault-namespace']
  if (namespace !== undefined && !/^\/?(?:root)?\/?$/.test(String(namespace))) {
    throw new ApiError(404, 'namespace not found')
  }
}

/**
 * Who calls a public route, when a good token came. A look-up that fails must not keep sys/health from answering, so
 * such a caller is nobody.
 */
function guest(authenticator: Authenticator, credential: string): MaybePromise<Identity | undefined> {
  if (credential === '') return undefined
  const nobody = () => undefined
  try {
    const who = authenticator.authenticate(credential)
    return who instanceof Promise ? who.catch(nobody) : who
  } catch {
    return nobody()
  }
}

/** Policies speak before anybody learns whether a mount or a path exists. */
function authorise(asked: Asked, target: Target | ApiError, who: Identity): MaybePromise<RawReply> {
  const route = target instanceof ApiError ? undefined : target.match.endpoint.route
  const judge = (capability: Capability): MaybePromise<RawReply> => {
    const verdict = decide(who.acl, capability, asked.policyPath, route?.access === 'sudo')
    // Every verdict, yes or no, passes here with all that was asked: an audit line belongs between this and what follows.
    if (!verdict.allowed) throw notAuthorised(verdict, asked.policyPath)
    if (target instanceof ApiError) throw target
    return perform(asked, target, who.caller, capability)
  }
  if (asked.method !== 'POST' || target instanceof ApiError || route?.exists === undefined) {
    return judge(needs[asked.method])
  }
  const { engine, mount, match } = target
  return after(route.exists(engine.context, mount, match.params), (there) => judge(there ? 'update' : 'create'))
}

function perform(
  asked: Asked,
  { engine, mount, match, named }: Target,
  caller: Caller | undefined,
  granted: Capability,
): MaybePromise<RawReply> {
  const { route, fields } = match.endpoint
  const body = convertFields(fields, named.values)
  // `route.danger` is looked at here, once for all routes, when destructive calls come to need an approval.
  const said: string[] = []
  const outcome = route.run({
    context: engine.context,
    mount,
    params: match.params,
    body,
    path: asked.path.slice(mount.path.length),
    requestId: asked.request.id,
    caller,
    granted,
    warn: (text) => said.push(text),
  })
  return after(outcome, (done) => envelope(asked.request.id, done, named.warnings, said, route.inject === true))
}
