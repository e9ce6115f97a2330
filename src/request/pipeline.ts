import { after } from '../after.ts'
import type { Audit } from '../audit/audit.ts'
import { decide } from '../auth/acl/decide.ts'
import { reaches } from '../auth/acl/reach.ts'
import type { Authenticator, Identity } from '../auth/authenticate.ts'
import type { Engine } from '../engine.ts'
import { ApiError, denied } from '../errors.ts'
import type { Logger } from '../log.ts'
import { Answer, type MaybePromise, type Mount } from '../route.ts'
import { endingToken, notAuthenticated, recogniseCaller } from './authenticate.ts'
import { capabilities, neededCapability, notAuthorised, verdictOn } from './authorise.ts'
import { type CanonicalRequest, canonicalise, type RequestHead, readRequest } from './canonicalise.ts'
import { envelope, noWarnings } from './envelope.ts'
import { type Pipeline, type RawReply, type RawRequest, strangerBodyBytes } from './exchange.ts'
import { unknownMount, unsupportedOperation } from './match.ts'
import { Recorder } from './recorder.ts'
import { RouteTable, type Target } from './routetable.ts'
import { type Grant, run } from './run.ts'
import type { Labels, Watch } from './watch.ts'

export interface PipelineOptions {
  readonly mounts: { find(path: string): MaybePromise<Mount | undefined> }
  readonly authenticator: Authenticator
  /** By mount type. */
  readonly engines: ReadonlyMap<string, Engine>
  /** Absent on a sealed worker, whose routes are not audited. */
  readonly audit?: Pick<Audit, 'begin'>
  /** Absent where requests are not measured. */
  readonly watch?: Watch
  readonly log: Logger
}

type Reply = MaybePromise<RawReply>

/**
 * The steps of a request, each of which calls the next: canonicalise → find (and read the body) → begin (its audit
 * trail) → authenticate → authorise → record → run → respond. Policies decide before a caller learns whether a mount or a
 * path exists. A step answers at once if it can: a request whose look-ups and `run` are synchronous makes no promise.
 */
class RequestPipeline implements Pipeline {
  readonly #options: PipelineOptions
  readonly #routes: RouteTable

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#routes = new RouteTable(options.engines)
  }

  handle(raw: RawRequest): Reply {
    const { watch } = this.#options
    if (watch === undefined) return this.#serve(raw, { mount: undefined, operation: undefined })
    return watch.over(raw, (labels) => this.#serve(raw, labels))
  }

  bodyLimit(raw: RawRequest): MaybePromise<number | undefined> {
    const none = () => undefined
    try {
      const head = canonicalise(raw)
      const limit = after(this.#options.mounts.find(head.path), (mount) => this.#bodyLimit(head, mount))
      return limit instanceof Promise ? limit.catch(none) : limit
    } catch {
      return none()
    }
  }

  /** What nobody has signed for is no longer than the body of any stranger. */
  #bodyLimit(head: RequestHead, mount: Mount | undefined): MaybePromise<number | undefined> {
    const { match } = this.#routes.find(head.method, this.#routes.canonicalPath(head, mount), mount)
    const { bytes } = match.endpoint.route
    if (bytes === undefined || bytes.maxBytes <= strangerBodyBytes) return bytes?.maxBytes
    return after(recogniseCaller(this.#options.authenticator, head.credential), (identity) =>
      identity === undefined ? strangerBodyBytes : bytes.maxBytes,
    )
  }

  /** Whatever any step throws becomes a reply here. */
  #serve(raw: RawRequest, labels: Labels): Reply {
    const recorder = new Recorder(raw, labels, this.#options.log)
    try {
      const head = canonicalise(raw)
      recorder.setMethod(head.method)
      const reply = this.#find(head, recorder)
      return reply instanceof Promise ? reply.catch((error: unknown) => recorder.recordRefusal(error)) : reply
    } catch (error) {
      return recorder.recordRefusal(error)
    }
  }

  #find(head: RequestHead, recorder: Recorder): Reply {
    return after(this.#options.mounts.find(head.path), (mount) => {
      recorder.setMount(mount)
      const path = this.#routes.canonicalPath(head, mount)
      const target = this.#routes.find(head.method, path, mount)
      const { route } = target.match.endpoint
      const request = readRequest(head, path, route.bytes)
      if (head.help) return this.#begin(request, mount, recorder, () => this.#help(request, mount, recorder))
      const next = () => this.#authenticate(request, target, recorder)
      return route.audited === false ? next() : this.#begin(request, mount, recorder, next)
    })
  }

  /** The trail begins before sign-in, so that refusals are recorded. */
  #begin(request: CanonicalRequest, mount: Mount | undefined, recorder: Recorder, next: () => Reply): Reply {
    const { audit } = this.#options
    return audit === undefined ? next() : recorder.begin(audit, request, mount, next)
  }

  #authenticate(request: CanonicalRequest, target: Target, recorder: Recorder): Reply {
    const { authenticator } = this.#options
    const { access } = target.match.endpoint
    if (access === 'nobody') throw unsupportedOperation()
    if (access === 'public') {
      return after(recogniseCaller(authenticator, request.credential), (identity) => {
        const caller = identity?.caller
        recorder.setCaller(caller)
        const grant = { caller, capability: capabilities[request.method], privileged: () => false }
        return this.#unlessRemoved(request, target, () => this.#record(request, target, grant, recorder))
      })
    }
    if (request.credential === '') throw notAuthenticated()
    return after(authenticator.authenticate(request.credential), (identity) => {
      if (identity === undefined) throw notAuthenticated()
      if (identity.end === undefined) return this.#authorise(request, target, identity, recorder)
      return endingToken(() => this.#authorise(request, target, identity, recorder), identity.end)
    })
  }

  #authorise(request: CanonicalRequest, target: Target, { acl, caller }: Identity, recorder: Recorder): Reply {
    return this.#unlessRemoved(request, target, () =>
      after(neededCapability(request, target, acl), (capability) => {
        const verdict = verdictOn(request, target, acl, capability)
        recorder.setVerdict(caller, verdict, capability)
        if (!verdict.allowed) throw notAuthorised(verdict, request.policyPath)
        const privileged = () => decide(acl, capability, request.policyPath, true).allowed
        return this.#record(request, target, { caller, capability, privileged }, recorder)
      }),
    )
  }

  /** What `next` fails by below a mount that was removed meanwhile is no fault: anything may be missing there. */
  #unlessRemoved({ path, policyPath }: CanonicalRequest, { mount }: Target, next: () => Reply): Reply {
    const refuse = (error: unknown): Reply => {
      if (error instanceof ApiError) throw error
      return after(this.#options.mounts.find(path), (standing) => {
        throw standing?.uuid === mount.uuid ? error : unknownMount(policyPath)
      })
    }
    try {
      const reply = next()
      return reply instanceof Promise ? reply.catch(refuse) : reply
    } catch (error) {
      return refuse(error)
    }
  }

  /** The request is on record before it is carried out. */
  #record(request: CanonicalRequest, target: Target, grant: Grant, recorder: Recorder): Reply {
    return recorder.recordRequest(() => run(request, target, grant, recorder))
  }

  /**
   * `?help=1` needs no rule for the path, as in the reference; but a caller with no rights in a mount is not told that it
   * exists.
   */
  #help(request: CanonicalRequest, mount: Mount | undefined, recorder: Recorder): Reply {
    return after(this.#options.authenticator.recognise(request.credential), (identity) => {
      if (identity === undefined) throw notAuthenticated()
      recorder.setCaller(identity.caller)
      if (!reaches(identity.acl, mount?.path ?? `${request.path}/`)) throw denied()
      const help = new Answer({ bare: this.#routes.help(request, mount) })
      const reply = envelope(request.raw.id, help, noWarnings, false)
      return recorder.recordRequest(() => recorder.recordResponse(help, noWarnings, reply))
    })
  }
}

/** @throws {Error} at start, when an engine's routes contradict each other */
export const createPipeline = (options: PipelineOptions): Pipeline => new RequestPipeline(options)
