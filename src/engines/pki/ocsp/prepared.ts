import type { CertIdAlgorithm } from '../../../x509/ocsp/certid.ts'
import type { CertStatus } from '../../../x509/ocsp/response.ts'
import type { Scope } from '../crl/tables.ts'

/** A signed answer. Times in milliseconds since 1970. */
export interface SignedAnswer {
  readonly body: Buffer
  readonly thisUpdate: number
  /** Undefined if the mount's answers hold only for the moment. */
  readonly nextUpdate: number | undefined
  /** From then on a new one is signed; if that fails, this one may serve until `nextUpdate`. */
  readonly refreshAt: number
  /** An entity tag. */
  readonly tag: string
}

/** Everything that an answer depends on besides the serial number. */
export interface Asked {
  /** Of the authority (AskedAuthority): any change there discards the answer. */
  readonly state: object
  /** Uuid of the issuer. */
  readonly issuer: string
  readonly scope: Scope
  /** In the encoding of the request. */
  readonly algorithm: CertIdAlgorithm
}

/** One answer about a serial number. */
export interface Prepared {
  readonly status: CertStatus
  /** For `good`: the last state of the lists that did not name the serial number. */
  listedAsOf: object | undefined
  answer: SignedAnswer | undefined
  /** Set while the answer is being signed: further requests wait for the same answer. */
  signing: Promise<SignedAnswer> | undefined
}

/** The number of encodings of a request (`CertIdAlgorithm`): the answers of one scope do not evict each other. */
const mostPrepared = 8

/** The answers about a serial number, one for each kind of request. */
export class PreparedAnswers {
  readonly #all: { readonly asked: Asked; readonly prepared: Prepared }[] = []

  find({ state, issuer, scope, algorithm }: Asked): Prepared | undefined {
    for (const { asked, prepared } of this.#all) {
      if (asked.algorithm !== algorithm || asked.scope !== scope || asked.state !== state) continue
      if (asked.issuer === issuer) return prepared
    }
    return undefined
  }

  /** The existing answer of this status, or a new one in place of the oldest. */
  add(asked: Asked, status: CertStatus): Prepared {
    const found = this.find(asked)
    if (found !== undefined && (found.status === 'good') === (status === 'good')) return found
    const prepared: Prepared = { status, listedAsOf: undefined, answer: undefined, signing: undefined }
    const outdated = this.#all.findIndex((one) => one.prepared === found)
    if (outdated >= 0) this.#all.splice(outdated, 1)
    // Of the request only these four are kept.
    const { state, issuer, scope, algorithm } = asked
    this.#all.push({ asked: { state, issuer, scope, algorithm }, prepared })
    if (this.#all.length > mostPrepared) this.#all.shift()
    return prepared
  }
}
