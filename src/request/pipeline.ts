import { after } from '../after.ts'
import type { Audit } from '../audit/audit.ts'
import { decide } from '../auth/acl/decide.ts'
import { reaches } from '../auth/acl/reach.ts'
import type { Authenticator, Identity } from '../auth/authenticate.ts'
import type { Engine } from '../engine.ts'
import { ApiError, denied } from '../errors.ts'
import { SparingWarnings } from '../log/sparing.ts'
import type { Logger } from '../log.ts'
import { type Meter, RateLimited } from '../quota/meter.ts'
import type { Quotas } from '../quota/quotas.ts'
import { Answer, type MaybePromise, type Mount } from '../route.ts'
import { endingToken, notAuthenticated, recogniseCaller } from './authenticate.ts'
import { capabilities, neededCapability, notAuthorised, verdictOn } from './authorise.ts'
import { type CanonicalRequest, canonicalise, credentialOf, type RequestHead, readRequest } from './canonicalise.ts'
import { envelope, noWarnings } from './envelope.ts'
import { type BodyLimit, type Pipeline, type RawReply, type RawRequest, strangerBodyBytes } from './exchange.ts'
import { type UnderWay, underWay } from './inflight.ts'
import { type Endpoint, unknownMount } from './match.ts'
import { readablePath } from './path.ts'
import { Recorder } from './recorder.ts'
import { RouteTable, type Target } from './routetable.ts'
import { type Grant, run } from './run.ts'
import type { Watch } from './watch.ts'

export interface PipelineOptions {
  readonly mounts: { find(path: string): MaybePromise<Mount | undefined> }
  readonly authenticator: Authenticator
  /** By mount type. */
  readonly engines: ReadonlyMap<string, Engine>
  /** Absent on a sealed worker, whose routes are not audited. */
  readonly audit?: Pick<Audit, 'begin'>
  /** Absent if requests are not counted. */
  readonly quotas?: Quotas
  /** Absent if requests are not measured. */
  readonly watch?: Watch
  readonly log: Logger
}

type Reply = MaybePromise<RawReply>

/**
 * The steps of a request, each of which calls the next: canonicalise → find (and read the body) → begin (its audit
 * trail) → authenticate → authorise → record → run → respond. Policies decide before a caller learns whether a mount or
 * a path exists. A step returns at once if it can: a request whose look-ups and `run` are synchronous makes no promise.
 */
class RequestPipeline implements Pipeline {
  readonly #options: PipelineOptions
  readonly #routes: RouteTable
  readonly #unserved: SparingWarnings

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#routes = new RouteTable(options.engines)
    this.#unserved = new SparingWarnings(options.log, 'a request could not be served')
  }

  handle(raw: RawRequest): Reply {
    const { watch } = this.#options
    if (watch === undefined) return this.#serve(underWay(raw))
    return watch.over(raw, (request) => this.#serve(request))
  }

  bodyLimit(raw: RawRequest): MaybePromise<BodyLimit> {
    const refused = (error: unknown): BodyLimit => ({
      bytes: strangerBodyBytes,
      caller: error instanceof ApiError && error.status < 500 ? 'anybody' : 'undecided',
    })
    try {
      const head = canonicalise(raw)
      const limit = after(this.#options.mounts.find(head.path), (mount) => this.#bodyLimit(head, mount))
      return limit instanceof Promise ? limit.catch(refused) : limit
    } catch (error) {
      return refused(error)
    }
  }

  /** Without a valid credential a body may be no longer than a stranger's. No use of a token is taken. */
  #bodyLimit(head: RequestHead, mount: Mount | undefined): MaybePromise<BodyLimit> {
    const endpoint = this.#endpoint(head, mount)
    const most = endpoint?.route.bytes?.maxBytes
    const stranger: BodyLimit = {
      bytes: Math.min(most ?? strangerBodyBytes, strangerBodyBytes),
      caller: endpoint?.access === 'public' ? 'anybody' : 'unknown',
    }
    if (head.credential === '') return stranger
    return after(this.#options.authenticator.recognise(head.credential), (identity) =>
      identity === undefined ? stranger : { bytes: most, caller: 'known' },
    )
  }

  /** Undefined for a path with a fault: once its body is read, the caller gets the reason. */
  #endpoint(head: RequestHead, mount: Mount | undefined): Endpoint | undefined {
    try {
      return this.#routes.way(head, mount).target.match.endpoint
    } catch (error) {
      if (error instanceof ApiError) return undefined
      throw error
    }
  }

  /** Turns the error of any step into a reply. */
  #serve(request: UnderWay): Reply {
    const { log } = this.#options
    const { raw } = request
    const recorder = new Recorder(request, log, this.#unserved)
    try {
      const head = canonicalise(raw)
      recorder.setHead(head)
      const reply = this.#find(head, recorder)
      return reply instanceof Promise ? reply.catch((error: unknown) => this.#refuse(raw, recorder, error)) : reply
    } catch (error) {
      return this.#refuse(raw, recorder, error)
    }
  }

  /** A request that was refused before it was counted is counted now. */
  #refuse(raw: RawRequest, recorder: Recorder, error: unknown): Reply {
    const { audit } = this.#options
    return after(this.#countRefused(raw, recorder), (limited) => recorder.refuse(audit, limited ?? error))
  }

  refused(raw: RawRequest): MaybePromise<RawReply | undefined> {
    const { audit, log } = this.#options
    const recorder = new Recorder(underWay(raw), log, this.#unserved)
    return after(this.#countRefused(raw, recorder), (limited) => limited && recorder.refuse(audit, limited))
  }

  /** @returns the refusal if a quota is exceeded; without a database the quotas are unknown and refuse nothing */
  #countRefused(raw: RawRequest, recorder: Recorder): MaybePromise<RateLimited | undefined> {
    const { quotas } = this.#options
    if (quotas === undefined) return undefined
    try {
      if (recorder.isMetered) return limitOf(recorder.meter)
      const meter = quotas.meter(readablePath(raw.rawPath), raw.remoteAddress, credentialOf(raw.headers) !== '')
      const count = (found: Meter | undefined): RateLimited | undefined => {
        recorder.meter = found
        return limitOf(found)
      }
      return meter instanceof Promise ? meter.then(count, () => undefined) : count(meter)
    } catch {
      return undefined
    }
  }

  #find(head: RequestHead, recorder: Recorder): Reply {
    return after(this.#options.mounts.find(head.path), (mount) => {
      recorder.setMount(mount)
      const { sent, path, target } = this.#routes.way(head, mount)
      recorder.setPath(path)
      const { route } = target.match.endpoint
      const read = (): Reply =>
        after(readRequest(head, sent, path, route), (request) => this.#take(request, target, recorder))
      // Before the body is parsed.
      const meter = this.#meter(head, path, route.audited !== false)
      if (meter instanceof Promise) return meter.then((found) => this.#metered(found, recorder, read))
      return this.#metered(meter, recorder, read)
    })
  }

  /** @param waits whether to wait for the newest quotas; without a database such a request is refused */
  #meter({ raw, credential }: RequestHead, path: string, waits: boolean): MaybePromise<Meter | undefined> {
    const { quotas } = this.#options
    const hasCredential = credential !== ''
    if (waits) return quotas?.meter(path, raw.remoteAddress, hasCredential)
    return quotas?.meterNow(path, raw.remoteAddress, hasCredential)
  }

  #metered(meter: Meter | undefined, recorder: Recorder, next: () => Reply): Reply {
    recorder.meter = meter
    meter?.begin()
    return next()
  }

  #take(request: CanonicalRequest, target: Target, recorder: Recorder): Reply {
    if (target.match.endpoint.route.audited !== false || request.help) return this.#enter(request, target, recorder)
    recorder.exempt()
    return this.#authenticate(request, target, recorder)
  }

  #enter(request: CanonicalRequest, target: Target, recorder: Recorder): Reply {
    const mount = target.mount.path === '' ? undefined : target.mount
    return this.#begin(request, target, recorder, () =>
      request.help ? this.#help(request, mount, recorder) : this.#authenticate(request, target, recorder),
    )
  }

  /** The trail begins before authentication, so that refusals are recorded. */
  #begin(request: CanonicalRequest, target: Target, recorder: Recorder, next: () => Reply): Reply {
    const { audit } = this.#options
    return audit === undefined ? next() : recorder.begin(audit, request, target, next)
  }

  #authenticate(request: CanonicalRequest, target: Target, recorder: Recorder): Reply {
    const { authenticator } = this.#options
    const { access, refuse } = target.match.endpoint
    if (refuse !== undefined) throw refuse()
    if (access === 'public') {
      return after(recogniseCaller(authenticator, request.credential), (identity) => {
        const caller = identity?.caller
        recorder.setCaller(caller)
        if (caller === undefined) recorder.meter?.unknown()
        else recorder.meter?.signedIn(caller.accessor)
        const grant = { caller, capability: capabilities[request.method], privileged: () => false }
        return this.#unlessRemoved(request, target, () => this.#record(request, target, grant, recorder))
      })
    }
    return this.#signedIn(request, recorder, (identity) => this.#authorise(request, target, identity, recorder))
  }

  /** A request that is counted by its token is counted first: if its quota refuses it, the token loses no use. */
  #signedIn({ credential }: CanonicalRequest, recorder: Recorder, serve: (identity: Identity) => Reply): Reply {
    if (credential === '') throw notAuthenticated()
    const { meter } = recorder
    if (meter === undefined || meter.isCounted) return this.#use(credential, serve)
    return after(this.#options.authenticator.recognise(credential), (identity) => {
      if (identity === undefined) throw notAuthenticated()
      meter.signedIn(identity.caller.accessor)
      return this.#use(credential, serve)
    })
  }

  /** Takes a use of the token; with the last one the token ends before the answer. */
  #use(credential: string, serve: (identity: Identity) => Reply): Reply {
    return after(this.#options.authenticator.authenticate(credential), (identity) => {
      if (identity === undefined) throw notAuthenticated()
      const { end } = identity
      return end === undefined ? serve(identity) : endingToken(() => serve(identity), end, this.#options.log)
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

  /** If the mount was removed meanwhile, an error of `next` is not a fault: anything below the mount may be missing. */
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

  /** The request is recorded before it is carried out. */
  #record(request: CanonicalRequest, target: Target, grant: Grant, recorder: Recorder): Reply {
    return recorder.recordRequest(() => run(request, target, grant, recorder))
  }

  /**
   * `?help=1` needs no rule for the path, as in the reference; but a caller with no rights in a mount is not told that
   * it exists.
   */
  #help(request: CanonicalRequest, mount: Mount | undefined, recorder: Recorder): Reply {
    return this.#signedIn(request, recorder, (identity) => {
      recorder.setCaller(identity.caller)
      if (!reaches(identity.acl, mount?.path ?? `${request.path}/`)) throw denied()
      const help = new Answer({ bare: this.#routes.help(request, mount) })
      const reply = envelope(request.raw.id, help, noWarnings, false)
      return recorder.recordRequest(() => recorder.recordResponse(help, noWarnings, reply))
    })
  }
}

/** Counts a refused request, unless it was counted before. @returns the error if that exceeds its quota */
function limitOf(meter: Meter | undefined): RateLimited | undefined {
  try {
    meter?.unknown()
    return undefined
  } catch (error) {
    if (error instanceof RateLimited) return error
    throw error
  }
}

/** @throws {Error} at start, when an engine's routes contradict each other */
export const createPipeline = (options: PipelineOptions): Pipeline => new RequestPipeline(options)
