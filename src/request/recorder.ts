import { after } from '../after.ts'
import type { Audit } from '../audit/audit.ts'
import type { AuditedRequest, Operation } from '../audit/entry.ts'
import { contentMembers } from '../audit/response.ts'
import type { Trail } from '../audit/trail.ts'
import type { Verdict } from '../auth/acl/decide.ts'
import { ApiError, errorLines } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Caller, Capability, MaybePromise, Method, Mount, Outcome } from '../route.ts'
import { contentOf } from '../stream.ts'
import type { CanonicalRequest } from './canonicalise.ts'
import { errorReply, type Warnings } from './envelope.ts'
import type { RawReply, RawRequest } from './exchange.ts'
import type { Labels } from './watch.ts'

/** The audit's word for each method; a POST may turn out to be a `create`. */
const operations: Readonly<Record<Method, Operation>> = {
  GET: 'read',
  HEAD: 'header',
  LIST: 'list',
  POST: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/** What audit, metrics and log learn of one request on its way. Without an audit trail its steps just go on. */
export class Recorder {
  readonly #raw: RawRequest
  readonly #labels: Labels
  readonly #log: Logger
  #trail: Trail | undefined

  constructor(raw: RawRequest, labels: Labels, log: Logger) {
    this.#raw = raw
    this.#labels = labels
    this.#log = log
  }

  setMethod(method: Method): void {
    this.#labels.operation = operations[method]
  }

  setMount(mount: Mount | undefined): void {
    this.#labels.mount = mount?.path
  }

  /** Begins the trail, unless there is no audit device. */
  begin<T>(
    audit: Pick<Audit, 'begin'>,
    request: CanonicalRequest,
    mount: Mount | undefined,
    next: () => MaybePromise<T>,
  ): MaybePromise<T> {
    const trail = audit.begin(request.policyPath, () => describe(request, mount))
    return after(trail, (begun) => {
      this.#trail = begun
      return next()
    })
  }

  /** For requests that policies are not asked about. */
  setCaller(caller: Caller | undefined): void {
    this.#trail?.setVerdict(caller, undefined)
  }

  setVerdict(caller: Caller, verdict: Verdict, capability: Capability): void {
    const operation = capability === 'create' ? 'create' : undefined
    this.#trail?.setVerdict(caller, verdict, operation)
    if (verdict.allowed && operation !== undefined) this.#labels.operation = operation
  }

  /** Writes the line of the request, then carries the request out. */
  recordRequest<T>(work: () => MaybePromise<T>): MaybePromise<T> {
    return this.#trail === undefined ? work() : this.#trail.recordRequest(work)
  }

  /** Writes the line of the answer, which then may go out. */
  recordResponse(outcome: Outcome, warnings: Warnings, reply: RawReply): MaybePromise<RawReply> {
    return this.#trail === undefined
      ? reply
      : this.#trail.recordResponse(outcome, [...warnings.route, ...warnings.parameters], reply)
  }

  /** The reply to a request that failed, recorded before it goes out. Never throws or rejects. */
  recordRefusal(error: unknown): MaybePromise<RawReply> {
    const refusal = this.#loggedError(error)
    const reply = errorReply(refusal)
    return this.#trail === undefined ? reply : this.#writeRefusal(this.#trail, refusal, reply)
  }

  async #writeRefusal(trail: Trail, refusal: ApiError, reply: RawReply): Promise<RawReply> {
    try {
      await trail.recordRefusal(refusal, errorLines(refusal).join('; '), reply)
      return reply
    } catch (unwritten) {
      return errorReply(this.#loggedError(unwritten))
    }
  }

  /** Anything but an ApiError is a fault of the server: its text stays in the log. */
  #loggedError(error: unknown): ApiError {
    const about = { requestId: this.#raw.id, method: this.#raw.method, err: error }
    if (error instanceof ApiError) {
      if (error.status >= 500) this.#log.warn(about, 'a request could not be served')
      return error
    }
    this.#log.error(about, 'a request failed by a fault of ours')
    return new ApiError(500, 'internal error', { style: 'list' })
  }
}

/** The request as the audit lines show it: of bytes their digest and length. */
function describe(request: CanonicalRequest, mount: Mount | undefined): AuditedRequest {
  const { raw, method, policyPath: path, bytes, credential, help } = request
  const { id, remoteAddress, remotePort, clientCertificate } = raw
  const operation = help ? 'help' : operations[method]
  const input = bytes === undefined ? request.input : contentMembers(contentOf(bytes))
  return { id, operation, path, input, credential, remoteAddress, remotePort, clientCertificate, mount }
}
