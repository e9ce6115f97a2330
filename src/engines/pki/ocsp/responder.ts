import { after } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import { ApiError } from '../../../errors.ts'
import type { Logger } from '../../../log.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import type { DamagedRow } from '../../../store/faults.ts'
import { Malformed } from '../../../x509/malformed.ts'
import { type OcspRequest, readOcspRequest } from '../../../x509/ocsp/request.ts'
import { type CertStatus, ocspFailures } from '../../../x509/ocsp/response.ts'
import type { Authorities } from '../authority/authorities.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import type { CertificateName } from '../certificates/tables.ts'
import type { Scope } from '../crl/tables.ts'
import type { Signers } from '../keys/signers.ts'
import { Allowance, Exhausted } from './allowance.ts'
import { type AskedAuthority, askedAuthority } from './asked.ts'
import type { Asked, Prepared, SignedAnswer } from './prepared.ts'
import { type KnownSerial, KnownSerials } from './serials.ts'
import { signAnswer } from './signing.ts'
import { DamagedLists, type ListedSerials, listedStatus, namingDamage, statusOf } from './status.ts'

export interface ResponderOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly authorities: Authorities
  readonly signers: Signers
  readonly listed: ListedSerials
  /** Rebuilds lists that were changed in SQL. @returns 503, for the request that found the damage */
  mend(lists: ListsPlace & { readonly crlIssuer: string }, damage: DamagedRow): ApiError
  /** The limit on signatures without credentials. */
  readonly allowance?: Allowance
}

/** Where lists were found damaged. */
export interface ListsPlace {
  /** The mount's uuid. */
  readonly mount: string
  readonly scope: Scope
}

/** An answer with its HTTP status. */
export interface OcspReply {
  readonly status: 200 | 400 | 401 | 500
  readonly body: Buffer
  /** A signed answer that may be given to other callers too: one without a nonce. */
  readonly answer?: SignedAnswer
}

const malformedRequest: OcspReply = { status: 400, body: ocspFailures.malformedRequest }
const internalError: OcspReply = { status: 500, body: ocspFailures.internalError }
const unauthorized: OcspReply = { status: 401, body: ocspFailures.unauthorized }
const tryLater: OcspReply = { status: 200, body: ocspFailures.tryLater }
const replyWith = (answer: SignedAnswer): OcspReply => ({ status: 200, body: answer.body, answer })

/** A request that an issuer here may answer. */
interface Question extends Asked, CertificateName, OcspRequest {
  readonly asked: AskedAuthority
  /** The signer. */
  readonly by: Issuer
  /** The time of arrival: a status read later holds for this time or a later one. */
  readonly asOf: number
}

/** Answers OCSP requests (RFC 6960) for the issuers of mounts. */
export class Responder {
  readonly #options: ResponderOptions
  readonly #listed: ListedSerials
  readonly #serials: KnownSerials
  readonly #allowance: Allowance

  constructor(options: ResponderOptions) {
    this.#options = options
    this.#listed = namingDamage(options.listed)
    this.#serials = new KnownSerials(options.database)
    this.#allowance = options.allowance ?? new Allowance(options)
  }

  /**
   * Answers a request. It never throws: every fault has an answer of its own.
   * @param der within the size limit of a body
   * @param path `unified` for unified-ocsp
   */
  answer(mount: Mount, der: Buffer, path: Scope): MaybePromise<OcspReply> {
    const request = requestOf(der)
    if (request === undefined) return malformedRequest
    const place = { mount: mount.uuid, scope: path }
    try {
      const reply = after(this.#options.authorities.of(mount), (authority) => this.#answer(request, authority, path))
      return reply instanceof Promise ? reply.catch((error: unknown) => this.#failure(error, place)) : reply
    } catch (error) {
      return this.#failure(error, place)
    }
  }

  #answer(request: OcspRequest, authority: Authority, path: Scope): MaybePromise<OcspReply> {
    const { clock, database } = this.#options
    const asked = askedAuthority(authority)
    const scope = asked.scopeOf(path)
    const responding = scope && asked.responding(request.certId)
    if (scope === undefined || responding === undefined) return unauthorized
    database.requireClock()
    const { issuer: by, isAsked } = responding
    const { algorithm, serial } = request.certId
    const { state } = asked
    const { mount } = authority.settings
    const question: Question = {
      ...{ certId: request.certId, nonce: request.nonce, asked, by, state, issuer: by.row.id, scope, algorithm },
      ...{ mount, serial: serial.toString('hex'), asOf: clock.wall() },
    }
    if (!isAsked) return this.#atOnce(question, 'unknown')
    const known = this.#serials.peek(question)
    const prepared = request.nonce === undefined ? known?.answers.find(question) : undefined
    const answer = prepared?.answer
    if (prepared === undefined || answer === undefined || question.asOf >= answer.refreshAt) return this.#find(question)
    return after(this.#stands(question, prepared), (stands) => (stands ? replyWith(answer) : this.#find(question)))
  }

  /** Whether a status still holds: `good` until a list names the serial number, no matter which mount revoked it. */
  #stands({ by: issuer, serial, scope }: Question, prepared: Prepared): MaybePromise<boolean> {
    if (prepared.status !== 'good') return true
    const { authorities } = this.#options
    const listed = this.#listed
    return after(listed.state(crlIssuerOf(issuer.certificate)), (state) => {
      if (state === prepared.listedAsOf) return true
      return after(listedStatus({ issuer, serial, scope }, { listed, site: authorities.site }), (status) => {
        if (status === 'good') prepared.listedAsOf = state
        return status === 'good'
      })
    })
  }

  async #find(question: Question): Promise<OcspReply> {
    const known = await this.#serials.find(question)
    let prepared = known?.answers.find(question)
    if (prepared === undefined || !(await this.#stands(question, prepared))) {
      const status = await this.#statusOf(question, known)
      // Not kept: answers under every other issuer of the mount would evict the useful ones.
      if (known === undefined || status === 'unknown') return this.#atOnce(question, status)
      prepared = known.answers.add(question, status)
    }
    // A nonce may be left out (RFC 9654 section 2.1): then the shared answer is given.
    if (question.nonce !== undefined && this.#allowance.open) return this.#atOnce(question, prepared.status)
    return replyWith(await this.#prepare(question, prepared))
  }

  #statusOf({ by: issuer, serial, scope, asked }: Question, known: KnownSerial | undefined): Promise<CertStatus> {
    const { site } = this.#options.authorities
    return statusOf({ authority: asked.authority, issuer, serial, scope }, known, { listed: this.#listed, site })
  }

  /** An answer for this request alone; tryLater when too many such answers are requested. */
  #atOnce(question: Question, status: CertStatus): MaybePromise<OcspReply> {
    if (!this.#allowance.open) return tryLater
    const { nonce } = question
    return after(
      this.#allowance.spend(() => this.#sign(question, status, nonce)),
      (answer) => (nonce === undefined ? replyWith(answer) : { status: 200, body: answer.body }),
    )
  }

  /** The shared answer; an ageing one stays in use while no new one can be signed. */
  async #prepare(question: Question, prepared: Prepared): Promise<SignedAnswer> {
    const { answer } = prepared
    if (answer !== undefined && question.asOf < answer.refreshAt) return answer
    prepared.signing ??= this.#renew(question, prepared).finally(() => {
      prepared.signing = undefined
    })
    try {
      return await prepared.signing
    } catch (error) {
      if (answer?.nextUpdate !== undefined && question.asOf < answer.nextUpdate && isPassing(error)) return answer
      throw error
    }
  }

  async #renew(question: Question, prepared: Prepared): Promise<SignedAnswer> {
    const answer = await this.#allowance.wait(() => this.#sign(question, prepared.status, undefined))
    if (answer.nextUpdate !== undefined) prepared.answer = answer
    return answer
  }

  #sign({ asked, by: issuer, certId, asOf }: Question, status: CertStatus, nonce: Buffer | undefined) {
    return signAnswer({ asked, issuer, certId: certId.der, status, asOf, nonce }, this.#options)
  }

  #failure(error: unknown, place: ListsPlace): OcspReply {
    if (error instanceof DamagedLists) {
      const { crlIssuer, damage } = error
      return this.#failure(this.#options.mend({ ...place, crlIssuer }, damage), place)
    }
    if (isPassing(error)) return tryLater
    this.#options.log.error({ err: error }, 'an OCSP request could not be answered')
    return internalError
  }
}

function requestOf(der: Buffer): OcspRequest | undefined {
  try {
    return readOcspRequest(der)
  } catch (error) {
    if (error instanceof Malformed) return undefined
    throw error
  }
}

/** Whether the same request may succeed in a moment. */
const isPassing = (error: unknown): boolean =>
  error instanceof Exhausted || (error instanceof ApiError && error.status === 503)
