import type { CertIdAlgorithm } from '../../../x509/ocsp/certid.ts'
import type { CertStatus } from '../../../x509/ocsp/response.ts'
import type { Scope } from '../crl/tables.ts'

/** An answer as it goes out. Times in milliseconds since 1970. */
export interface SignedAnswer {
  readonly body: Buffer
  readonly thisUpdate: number
  /** Undefined where the mount wants answers of the moment alone. */
  readonly nextUpdate: number | undefined
  /** From then on another one is signed; this one may serve until `nextUpdate` where that fails. */
  readonly refreshAt: number
  /** An entity tag. */
  readonly tag: string
}

/** What an answer about a serial number depends on besides. */
export interface Asked {
  /** Of the authority (AskedAuthority): whatever changes there does away with the answer. */
  readonly state: object
  /** Uuid of the issuer. */
  readonly issuer: string
  readonly scope: Scope
  /** As the request writes it. */
  readonly algorithm: CertIdAlgorithm
}

/** One answer about a serial number. */
export interface Prepared {
  readonly status: CertStatus
  /** Of `good`: the state of the lists that were last seen not to name the serial number. */
  listedAsOf: object | undefined
  answer: SignedAnswer | undefined
  /** While it is being signed: everybody else waits for the same one. */
  signing: Promise<SignedAnswer> | undefined
}

/** As many as there are ways to write a request (`CertIdAlgorithm`), so that strangers drive no answer out. */
const mostPrepared = 8

/** The answers about a serial number, one for each way to ask. */
export class PreparedAnswers {
  readonly #all: { readonly asked: Asked; readonly prepared: Prepared }[] = []

  find({ state, issuer, scope, algorithm }: Asked): Prepared | undefined {
    for (const { asked, prepared } of this.#all) {
      if (asked.algorithm !== algorithm || asked.scope !== scope || asked.state !== state) continue
      if (asked.issuer === issuer) return prepared
    }
    return undefined
  }

  /** The one of this status that is there already, or a new one in place of the oldest. */
  add(asked: Asked, status: CertStatus): Prepared {
    const found = this.find(asked)
    if (found !== undefined && (found.status === 'good') === (status === 'good')) return found
    const prepared: Prepared = { status, listedAsOf: undefined, answer: undefined, signing: undefined }
    const outdated = this.#all.findIndex((one) => one.prepared === found)
    if (outdated >= 0) this.#all.splice(outdated, 1)
    // Nothing but these four is kept of the request.
    const { state, issuer, scope, algorithm } = asked
    this.#all.push({ asked: { state, issuer, scope, algorithm }, prepared })
    if (this.#all.length > mostPrepared) this.#all.shift()
    return prepared
  }
}
