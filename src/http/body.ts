import type { IncomingMessage } from 'node:http'
import { after } from '../after.ts'
import { type BodyLimit, strangerBodyBytes } from '../request/exchange.ts'
import type { MaybePromise } from '../route.ts'
import type { Budgets, Claim } from './budget.ts'
import { type Pace, watchPace } from './pace.ts'
import { Pieces } from './pieces.ts'
import { resume, shareTurn } from './turnshare.ts'

/** NaN if its end is said otherwise (RFC 9112 section 6.3). */
const declaredBytes = ({ headers }: IncomingMessage): number => Number(headers['content-length'] ?? Number.NaN)

/** Whether a request says it has more body than this before it has sent any. */
export const declaresMore = (request: IncomingMessage, maxBytes: number): boolean => declaredBytes(request) > maxBytes

/** How much of a body is read. */
export interface BodyLimits {
  readonly maxBytes: number
  readonly budgets: Budgets
  /** For a body that comes in several pieces. */
  readonly pace: Pace
  /** The client's, whose share of a budget counts. */
  readonly address: string
  /**
   * How much of the body this client may send. Asked once: before more than `strangerBodyBytes` are read, or when the
   * budget for strangers is used up. Undefined where no caller can be told from a stranger.
   */
  ask(): MaybePromise<BodyLimit | undefined>
}

/** Why a body is not read to its end. */
export type BodyRefusal = 'tooLong' | 'tooLongUnsigned' | 'tooSlow' | 'noRoom'

/** @param claim the bytes of a body that came in several pieces, until it is answered */
export type BodyDone = (body: Buffer | BodyRefusal, claim?: Claim) => void

/** RFC 9112 section 6.3. */
export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/**
 * Reads the body of a request that has one, whole.
 * @param done called once, and never when the client goes away first
 */
export function readBody(request: IncomingMessage, limits: BodyLimits, done: BodyDone): void {
  if (declaresMore(request, limits.maxBytes)) done('tooLong')
  else collect(request, limits, done)
}

const unknownLimit: BodyLimit = { bytes: strangerBodyBytes, caller: 'anybody' }

/** The place of one body in its budget, while it comes in several pieces and until it is answered. */
class Place {
  readonly #request: IncomingMessage
  readonly #limits: BodyLimits
  readonly #watch: () => () => void
  readonly #declared: number
  #endWatch: (() => void) | undefined
  claim: Claim | undefined

  constructor(request: IncomingMessage, limits: BodyLimits, watch: () => () => void) {
    this.#request = request
    this.#limits = limits
    this.#watch = watch
    this.#declared = declaredBytes(request)
  }

  /**
   * Whether there is room for a body of which so much has come. One that comes in one piece is held no longer than it
   * takes to serve it. Of a caller's longer one all that it declares has its place at once, so that a body which cannot
   * be taken is not read half. The pace is watched from the first of these calls on.
   */
  hold(bytes: number, isKnown: boolean): boolean {
    if (bytes === this.#declared && this.claim === undefined) return true
    const { budgets, address } = this.#limits
    this.#endWatch ??= this.#watch()
    if (this.claim === undefined) {
      this.claim = (isKnown ? budgets.callers : budgets.strangers).claim(address)
      // Also when the client goes away.
      this.#request.once('close', () => this.#request.complete || this.release())
    }
    return this.claim.resize(isKnown ? Math.max(bytes, this.#declared || 0) : bytes)
  }

  /** The next bytes may count in another budget. */
  leave(): void {
    this.claim?.release()
    this.claim = undefined
  }

  endWatch(): void {
    this.#endWatch?.()
  }

  release(): void {
    this.endWatch()
    this.claim?.release()
  }
}

function collect(request: IncomingMessage, limits: BodyLimits, done: BodyDone): void {
  const { maxBytes, pace, ask } = limits
  const pieces = new Pieces()
  const declared = declaredBytes(request)
  let bytes = Math.min(strangerBodyBytes, maxBytes)
  let limit: BodyLimit | undefined
  let asking = false
  let ended = false
  const received = (): number | undefined => (asking ? undefined : pieces.length)
  const place = new Place(request, limits, () => watchPace(pace, received, () => refuse('tooSlow')))
  const hold = (): boolean => place.hold(pieces.length, limit?.caller === 'known')
  const goOn = (): void => {
    if (!asking) resume(request.socket)
  }
  const take = (piece: Buffer): void => {
    pieces.add(piece)
    if (piece.length !== declared) shareTurn(request.socket, piece.length, goOn)
    if (!asking && (pieces.length > bytes || !hold())) judge()
  }
  const refuse = (refusal: BodyRefusal): void => {
    request.off('data', take).off('end', finish)
    pieces.clear()
    place.release()
    done(refusal)
  }
  const isWithin = (): boolean => Math.max(pieces.length, declared || 0) <= bytes
  /**
   * Goes on reading, with the limit of the route and the caller; refuses what is beyond. Until those are known the
   * socket rests, not the request: that would keep chunks of one byte in buffers of their own, 64 KiB of them.
   */
  const judge = (): void => {
    if (limit === undefined) {
      asking = true
      setImmediate(() => asking && request.socket.pause())
      void after(ask(), (found = unknownLimit) => {
        asking = false
        limit = found
        if (request.destroyed && !ended) return place.release()
        bytes = Math.min(found.bytes ?? maxBytes, maxBytes)
        place.leave()
        if (!isWithin() || !hold()) return judge()
        resume(request.socket)
        if (ended) finish()
      })
    } else if (isWithin() || limit.caller === 'undecided') refuse('noRoom')
    else refuse(limit.caller === 'unknown' ? 'tooLongUnsigned' : 'tooLong')
  }
  const finish = (): void => {
    ended = true
    if (asking) return
    place.endWatch()
    done(pieces.joined(), place.claim)
  }
  request.on('data', take).on('end', finish)
  if (declared > bytes) judge()
}
