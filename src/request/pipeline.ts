import { after } from '../after.ts'
import type { Operation } from '../audit/asked.ts'
import type { Audit } from '../audit/audit.ts'
import type { Trail } from '../audit/trail.ts'
import type { Acl } from '../auth/acl/compile.ts'
import { decide, restrict, type Verdict } from '../auth/acl/decide.ts'
import { reaches } from '../auth/acl/reach.ts'
import type { Authenticator, Identity } from '../auth/authenticate.ts'
import type { Engine } from '../engine.ts'
import { ApiError, badRequest, denied, errorLines } from '../errors.ts'
import type { Logger } from '../log.ts'
import {
  Answer,
  type Caller,
  type Capability,
  type MaybePromise,
  type Method,
  type Mount,
  type Outcome,
} from '../route.ts'
import { credentialOf, notAuthenticated, notAuthorised } from './access.ts'
import { compileRoutes, type Dispatch, type Match, unsupportedPath, WrongMethodInPublic } from './dispatch.ts'
import { envelope, errorReply } from './envelope.ts'
import type { Pipeline, RawReply, RawRequest } from './exchange.ts'
import { given, shorterPaths } from './given.ts'
import { allowedOut, passedThrough } from './headers.ts'
import { asksForHelp, helpOf } from './help.ts'
import { bodyInput, type Input, methodOf, queryInput } from './input.ts'
import { convertFields, type Named, normaliseNames } from './parse.ts'
import { canonicalPath } from './path.ts'
import type { Seen, Watch } from './watch.ts'

export interface PipelineOptions {
  readonly mounts: { find(path: string): MaybePromise<Mount | undefined> }
  readonly authenticator: Authenticator
  /** By mount type. */
  readonly engines: ReadonlyMap<string, Engine>
  /** Absent where nothing is served that is recorded. */
  readonly audit?: Pick<Audit, 'begin'>
  /** Absent where nobody measures. */
  readonly watch?: Watch
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
  readonly credential: string
  /** `?help=1`: what the path is, instead of what it does. */
  readonly help: boolean
  readonly seen: Seen
  /** Absent while there is no audit device, and for what is not recorded. */
  trail: Trail | undefined
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

/** What an audit line calls it, until the policies have said whether it creates. */
const operations: Readonly<Record<Method, Operation>> = {
  GET: 'read',
  HEAD: 'header',
  LIST: 'list',
  POST: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/**
 * The way of a request: canonical path → mount → route → JSON syntax → names → token → exists? → policies → audit →
 * fields → run → audit → envelope. Whatever can answer at once does: a request whose look-ups and `run` are synchronous makes no promise.
 * @throws {Error} at start, when an engine's routes contradict each other
 */
export function createPipeline({ mounts, authenticator, engines, audit, watch, log }: PipelineOptions): Pipeline {
  const tables = new Map<string, Dispatch>()
  for (const [type, engine] of engines) tables.set(type, compileRoutes(engine.routes))

  /** The route, or the 404 or 405 for who may know. */
  function locate(asked: Asked, mount: Mount | undefined): Target | ApiError {
    if (mount === undefined) return noMount(asked)
    const engine = engines.get(mount.type)
    const dispatch = tables.get(mount.type)
    if (engine === undefined || dispatch === undefined) return unsupportedPath()
    const match = dispatch(asked.method, asked.path.slice(mount.path.length))
    if (match instanceof ApiError) return match
    return { engine, mount, match, named: normaliseNames(match.endpoint.fields, asked.input) }
  }

  function identify(asked: Asked, target: Target | ApiError): MaybePromise<RawReply> {
    const { credential } = asked
    if (target instanceof WrongMethodInPublic) throw target
    if (!(target instanceof ApiError) && target.match.endpoint.route.access === 'public') {
      return after(guest(authenticator, credential), (who) => {
        asked.trail?.judged(who?.caller, undefined)
        return perform(asked, target, who?.caller, needs[asked.method], () => false)
      })
    }
    if (credential === '') throw notAuthenticated()
    return after(authenticator.authenticate(credential), (who) => {
      if (who === undefined) throw notAuthenticated()
      const run = () => authorise(asked, target, who)
      return who.end === undefined ? run() : lastly(run, who.end)
    })
  }

  /** Needs no rule for the path, as in the reference; but who may do nothing in a mount is not told that there is one. */
  function explain(asked: Asked, mount: Mount | undefined): MaybePromise<RawReply> {
    return after(authenticator.recognise(asked.credential), (who) => {
      if (who === undefined) throw notAuthenticated()
      asked.trail?.judged(who.caller, undefined)
      if (!reaches(who.acl, mount?.path ?? `${asked.path}/`)) throw denied()
      const dispatch = mount && tables.get(mount.type)
      if (mount === undefined || dispatch === undefined) throw noMount(asked)
      const help = helpOf(mount, engines.get(mount.type)?.routes ?? [], dispatch, asked.path.slice(mount.path.length))
      return onRecord(asked, () => answered(asked, new Answer({ bare: help }), [], [], false))
    })
  }

  function fault(request: RawRequest, error: unknown): ApiError {
    const about = { requestId: request.id, method: request.method, err: error }
    if (error instanceof ApiError) {
      if (error.status >= 500) log.warn(about, 'a request could not be served')
      return error
    }
    log.error(about, 'a request failed by a fault of ours')
    return new ApiError(500, 'internal error', { style: 'list' })
  }

  /** A refusal is recorded too, before anybody hears of it. */
  async function refuse(request: RawRequest, trail: Trail, error: unknown): Promise<RawReply> {
    const refusal = fault(request, error)
    const reply = errorReply(refusal)
    try {
      await trail.refused(refusal, errorLines(refusal).join('; '), reply)
      return reply
    } catch (unwritten) {
      return errorReply(fault(request, unwritten))
    }
  }

  /** Begins the trail of a request before anybody is asked who makes it. */
  function record(asked: Asked, mount: Mount | undefined): MaybePromise<RawReply> {
    const target = asked.help ? undefined : locate(asked, mount)
    const serve = () => (target === undefined ? explain(asked, mount) : identify(asked, target))
    const unrecorded =
      target !== undefined && !(target instanceof ApiError) && target.match.endpoint.route.audited === false
    if (audit === undefined || unrecorded) return serve()
    return after(
      audit.begin(asked.policyPath, () => recorded(asked, mount)),
      (trail) => {
        asked.trail = trail
        return serve()
      },
    )
  }

  function answer(request: RawRequest, seen: Seen): MaybePromise<RawReply> {
    let asked: Asked | undefined
    const failed = (error: unknown): MaybePromise<RawReply> =>
      asked?.trail ? refuse(request, asked.trail, error) : errorReply(fault(request, error))
    try {
      const received = receive(request, seen)
      asked = received
      const reply = after(mounts.find(received.path), (mount) => {
        seen.mount = mount?.path
        return record(received, mount)
      })
      return reply instanceof Promise ? reply.catch(failed) : reply
    } catch (error) {
      return failed(error)
    }
  }

  return {
    handle: (request) =>
      watch === undefined
        ? answer(request, { mount: undefined, operation: undefined })
        : watch.over(request, (seen) => answer(request, seen)),
  }
}

const noMount = ({ policyPath }: Asked) =>
  new ApiError(404, `no handler for route "${policyPath}". route entry not found.`)

/** What an audit line says of it. */
function recorded({ request, method, policyPath: path, input, credential, help }: Asked, mount: Mount | undefined) {
  const { id, remoteAddress, remotePort, clientCertificate } = request
  const operation = help ? 'help' : operations[method]
  return { id, operation, path, input, credential, remoteAddress, remotePort, clientCertificate, mount } as const
}

function receive(request: RawRequest, seen: Seen): Asked {
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
  const policyPath = method === 'LIST' ? `${path}/` : path
  const credential = credentialOf(request.headers)
  seen.operation = operations[method]
  return { request, method, path, policyPath, input, credential, help: asksForHelp(query), seen, trail: undefined }
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
    const who = authenticator.recognise(credential)
    return who instanceof Promise ? who.catch(nobody) : who
  } catch {
    return nobody()
  }
}

/** A token goes with its last use: when the request has run, whatever became of it, and before the answer. */
async function lastly(run: () => MaybePromise<RawReply>, end: () => Promise<void>): Promise<RawReply> {
  try {
    return await run()
  } finally {
    await end()
  }
}

/** Policies speak before anybody learns whether a mount or a path exists. */
function authorise(asked: Asked, target: Target | ApiError, who: Identity): MaybePromise<RawReply> {
  const route = target instanceof ApiError ? undefined : target.match.endpoint.route
  const judge = (capability: Capability): MaybePromise<RawReply> => {
    let verdict = decide(who.acl, capability, asked.policyPath, route?.access === 'sudo')
    if (who.acl.limited && verdict.allowed) verdict = limited(verdict, capability, asked, target, who.acl)
    asked.trail?.judged(who.caller, verdict, capability === 'create' ? 'create' : undefined)
    if (!verdict.allowed) throw notAuthorised(verdict, asked.policyPath)
    if (capability === 'create') asked.seen.operation = 'create'
    if (target instanceof ApiError) throw target
    const privileged = () => decide(who.acl, capability, asked.policyPath, true).allowed
    return perform(asked, target, who.caller, capability, privileged)
  }
  const may = (capability: Capability): boolean => decide(who.acl, capability, asked.policyPath).allowed
  // Who may do neither is not asked about: else the capability that a refusal names would tell what is there.
  if (asked.method !== 'POST' || target instanceof ApiError || !route?.exists || !(may('update') || may('create'))) {
    return judge(needs[asked.method])
  }
  const { engine, mount, match } = target
  return after(route.exists(engine.context, mount, match.params), (there) => judge(there ? 'update' : 'create'))
}

/** The verdict, once rules on parameters have been asked. */
function limited(
  granted: Verdict,
  capability: Capability,
  { input, path }: Asked,
  target: Target | ApiError,
  acl: Acl,
): Verdict {
  const match = target instanceof ApiError ? undefined : target.match
  return restrict(acl, granted, capability, given(input, match), match === undefined ? [] : shorterPaths(path, match))
}

/** What is to be done is on record before it is done. */
const onRecord = ({ trail }: Asked, work: () => MaybePromise<RawReply>): MaybePromise<RawReply> =>
  trail === undefined ? work() : trail.request(work)

/** The answer is on record before it goes out. */
function answered(
  { request, trail }: Asked,
  outcome: Outcome,
  warnings: readonly string[],
  said: readonly string[],
  inject: boolean,
): MaybePromise<RawReply> {
  const reply = envelope(request.id, outcome, warnings, said, inject)
  return trail === undefined ? reply : trail.answered(outcome, [...said, ...warnings], reply)
}

function perform(
  asked: Asked,
  target: Target,
  caller: Caller | undefined,
  granted: Capability,
  privileged: () => boolean,
): MaybePromise<RawReply> {
  return onRecord(asked, () => run(asked, target, caller, granted, privileged))
}

function run(
  asked: Asked,
  { engine, mount, match, named }: Target,
  caller: Caller | undefined,
  granted: Capability,
  privileged: () => boolean,
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
    accept: String(asked.request.headers.accept ?? ''),
    headers: passedThrough(mount, asked.request.headers),
    granted,
    privileged,
    warn(text) {
      if (!said.includes(text)) said.push(text)
    },
  })
  return after(outcome, (made) => answered(asked, allowedOut(mount, made), named.warnings, said, route.inject === true))
}
