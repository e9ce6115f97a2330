import { after } from '../after.ts'
import type { Audit } from '../audit/audit.ts'
import { contentMembers } from '../audit/elision.ts'
import type { AuditedRequest, Operation } from '../audit/entry.ts'
import type { Trail } from '../audit/trail.ts'
import type { Verdict } from '../auth/acl/decide.ts'
import { ApiError, errorLines } from '../errors.ts'
import type { SparingWarnings } from '../log/sparing.ts'
import type { Logger } from '../log.ts'
import { type Meter, RateLimited } from '../quota/meter.ts'
import type { Caller, Capability, MaybePromise, Method, Mount, Outcome } from '../route.ts'
import type { AuditedHeader } from '../settings/auditedheaders.ts'
import { contentOf } from '../stream.ts'
import { auditedInput } from './auditedinput.ts'
import { type CanonicalRequest, credentialOf, type RequestHead } from './canonicalise.ts'
import { allWarnings, errorReply, noWarnings, type Warnings } from './envelope.ts'
import { longestShortBody, type RawReply, type RawRequest } from './exchange.ts'
import type { UnderWay } from './inflight.ts'
import { canonicalPath } from './path.ts'
import type { Target } from './routetable.ts'

/** The audit's word for each method; a POST may turn out to be a `create`. */
const operations: Readonly<Record<Method, Operation>> = {
  GET: 'read',
  HEAD: 'header',
  LIST: 'list',
  POST: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/** Reports one request to audit, metrics and log on its way. Without an audit trail its steps just continue. */
export class Recorder {
  readonly #request: UnderWay
  readonly #log: Logger
  readonly #unserved: Pick<SparingWarnings, 'warn'>
  /** Those of the route that runs; a refusal with results is sent with them. */
  warnings: Warnings = noWarnings
  #trail: Trail | undefined
  #mount: Mount | undefined
  /** Whether the request has begun its trail or needs none. */
  #begun = false
  /** The meter that counts the request; null until it was looked up. */
  #meter: Meter | undefined | null = null

  /** @param unserved is told of each request that could not be served */
  constructor(request: UnderWay, log: Logger, unserved: Pick<SparingWarnings, 'warn'>) {
    this.#request = request
    this.#log = log
    this.#unserved = unserved
  }

  /** Whether the meter was looked up. */
  get isMetered(): boolean {
    return this.#meter !== null
  }

  get meter(): Meter | undefined {
    return this.#meter ?? undefined
  }

  set meter(meter: Meter | undefined) {
    this.#meter = meter
  }

  setHead({ method, path }: Pick<RequestHead, 'method' | 'path'>): void {
    this.#request.operation = operations[method]
    this.#request.path = path
  }

  setMount(mount: Mount | undefined): void {
    this.#mount = mount
    this.#request.mount = mount?.path
  }

  /** The path as policies see it, but without the trailing slash of a list. */
  setPath(path: string): void {
    this.#request.path = path
  }

  /** For requests that anybody may make at any time; they have no trail. */
  exempt(): void {
    this.#begun = true
  }

  /** Begins the trail, unless there is no audit device. */
  begin<T>(
    audit: Pick<Audit, 'begin'>,
    request: CanonicalRequest,
    target: Target,
    next: () => MaybePromise<T>,
  ): MaybePromise<T> {
    this.#begun = true
    const trail = audit.begin(request.policyPath, (headers) => describe(request, target, headers))
    return after(trail, (begun) => {
      this.#trail = begun
      return next()
    })
  }

  /** For requests that policies do not decide. */
  setCaller(caller: Caller | undefined): void {
    this.#request.caller = caller
    this.#trail?.setVerdict(caller, undefined)
  }

  setVerdict(caller: Caller, verdict: Verdict, capability: Capability): void {
    const operation = capability === 'create' ? 'create' : undefined
    this.#request.caller = caller
    this.#trail?.setVerdict(caller, verdict, operation)
    if (verdict.allowed && operation !== undefined) this.#request.operation = operation
  }

  /** Writes the line of the request, then carries the request out. */
  recordRequest<T>(work: () => MaybePromise<T>): MaybePromise<T> {
    return this.#trail === undefined ? work() : this.#trail.recordRequest(work)
  }

  /** Writes the line of the answer, which may then be sent. */
  recordResponse(outcome: Outcome, warnings: Warnings, reply: RawReply): MaybePromise<RawReply> {
    const told = this.#told(reply)
    return this.#trail === undefined ? told : this.#trail.recordResponse(outcome, allWarnings(warnings), told)
  }

  /** As recordRefusal; a request that failed before its trail began is recorded with the known parts of it. */
  refuse(audit: Pick<Audit, 'begin'> | undefined, error: unknown): MaybePromise<RawReply> {
    if (error instanceof RateLimited && !error.audited) return this.#told(errorReply(error))
    return this.#begun || audit === undefined ? this.recordRefusal(error) : this.#refuseEarly(audit, error)
  }

  async #refuseEarly(audit: Pick<Audit, 'begin'>, error: unknown): Promise<RawReply> {
    const path = earlyPath(this.#request.raw, this.#request.operation)
    try {
      this.#trail = await audit.begin(path, (headers) =>
        describeEarly(this.#request.raw, this.#request.operation, path, this.#mount, headers),
      )
    } catch {
      // The audit devices are unknown; the request's own refusal mostly has the same cause.
    }
    return this.recordRefusal(error)
  }

  /** The reply to a failed request, recorded before it is sent. Never throws or rejects. */
  recordRefusal(error: unknown): MaybePromise<RawReply> {
    const refusal = this.#loggedError(error)
    const warnings = refusal.data === undefined ? [] : allWarnings(this.warnings)
    const reply = this.#told(errorReply(refusal, warnings))
    return this.#trail === undefined ? reply : this.#writeRefusal(this.#trail, refusal, warnings, reply)
  }

  /** The reply with the quota headers that sys/quotas/config asks for; a long one is marked if it is for a caller. */
  #told(reply: RawReply): RawReply {
    const isLong = reply.body.length > longestShortBody
    const owned = isLong && this.#request.caller !== undefined ? { ...reply, forCaller: true } : reply
    if (!this.#meter || this.#meter.headers.length === 0) return owned
    return { ...owned, headers: [...reply.headers, ...this.#meter.headers] }
  }

  async #writeRefusal(
    trail: Trail,
    refusal: ApiError,
    warnings: readonly string[],
    reply: RawReply,
  ): Promise<RawReply> {
    try {
      await trail.recordRefusal(refusal, errorLines(refusal).join('; '), warnings, reply)
      return reply
    } catch (unwritten) {
      const isLogged = refusal.status >= 500 && unwritten instanceof ApiError
      return errorReply(isLogged ? unwritten : this.#loggedError(unwritten))
    }
  }

  /** Any error but an ApiError is a server fault: its text stays in the log. */
  #loggedError(error: unknown): ApiError {
    const about = { requestId: this.#request.raw.id, method: this.#request.raw.method, err: error }
    if (error instanceof ApiError) {
      if (error.status >= 500) this.#unserved.warn(about)
      return error
    }
    this.#log.error(about, 'a request failed because of a server fault')
    return new ApiError(500, 'internal error', { style: 'list' })
  }
}

/** The request as in audit lines: bytes are shown by their digest and length. */
function describe(
  request: CanonicalRequest,
  { mount, match }: Target,
  auditedHeaders: readonly AuditedHeader[],
): AuditedRequest {
  const { raw, method, policyPath: path, bytes, credential, help } = request
  const { id, remoteAddress, remotePort, clientCertificate, headers } = raw
  const operation = help ? 'help' : operations[method]
  const input = bytes === undefined ? auditedInput(request.input, match) : contentMembers(contentOf(bytes))
  return {
    id,
    operation,
    path,
    input,
    sent: method === 'POST' || method === 'PATCH' ? raw.body : raw.query,
    credential,
    remoteAddress,
    remotePort,
    clientCertificate,
    mount: mount.path === '' ? undefined : mount,
    headers,
    auditedHeaders,
  }
}

const longestShownPath = 1000

const earlyPath = ({ rawPath }: RawRequest, operation: Operation | undefined): string =>
  `${shownPath(rawPath)}${operation === 'list' ? '/' : ''}`

/** A request of which only the request line and headers were read. */
function describeEarly(
  raw: RawRequest,
  operation: Operation | undefined,
  path: string,
  mount: Mount | undefined,
  auditedHeaders: readonly AuditedHeader[],
): AuditedRequest {
  const { id, remoteAddress, remotePort, clientCertificate, headers } = raw
  const sender = { remoteAddress, remotePort, clientCertificate }
  const shown = { id, operation: operation ?? 'read', path, input: {}, sent: '', credential: credentialOf(headers) }
  return { ...shown, ...sender, mount, headers, auditedHeaders }
}

/** Canonical, or as sent if it has no canonical form. */
function shownPath(rawPath: string): string {
  try {
    return canonicalPath(rawPath).path
  } catch {
    return rawPath.replace(/^\/(?:v1\/)?/, '').slice(0, longestShownPath)
  }
}
