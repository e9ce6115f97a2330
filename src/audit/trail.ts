import type { Verdict } from '../auth/acl/decide.ts'
import { ApiError } from '../errors.ts'
import type { Caller, MaybePromise, Outcome } from '../route.ts'
import type { Asked, Ended, Known, Operation, Reply } from './asked.ts'
import type { Pieces } from './chain.ts'
import type { Scribe } from './scribe.ts'
import type { Writer } from './writer.ts'

/** A device, opened by this worker. */
export interface Opened {
  readonly scribe: Scribe
  readonly writer: Writer
}

/** Where lines go. */
export interface Outlets {
  /** The devices there are now. */
  readonly opened: readonly Opened[]
  /** The moment, as records show it. */
  readonly time: string
}

/**
 * The trail of one request: a line before it is carried out, and one before it is answered. A line counts when one device
 * has it.
 */
export class Trail {
  readonly #outlets: Outlets
  readonly #questions = new Map<Opened, string>()
  #known: Known
  /** Whether the first line was tried, and whether it is there. */
  #first: 'none' | 'tried' | 'written' = 'none'

  constructor(outlets: Outlets, asked: Asked) {
    this.#outlets = outlets
    this.#known = { asked, operation: asked.operation, caller: undefined, verdict: undefined }
  }

  /** Who asks, and what the policies say; `operation` where it is known better now. */
  judged(caller: Caller | undefined, verdict: Verdict | undefined, operation: Operation = this.#known.operation): void {
    this.#known = { asked: this.#known.asked, operation, caller, verdict }
  }

  /**
   * The line that goes before the deed, then the deed.
   * @throws ApiError 500 when no device takes the line: nothing is done then
   */
  request<T>(work: () => MaybePromise<T>, error = ''): Promise<T> {
    this.#first = 'tried'
    return this.#write(({ scribe }, question, time) => scribe.request(time, question, error)).then((written) => {
      if (!written) throw unwritten('nothing was done')
      this.#first = 'written'
      return work()
    })
  }

  /**
   * The line that goes before the answer, then the answer.
   * @throws ApiError 500 when no device takes the line: the answer must not go out
   */
  answered<R extends Reply>(outcome: Outcome, warnings: readonly string[], reply: R): Promise<R> {
    return this.#response({ outcome, warnings, error: '', results: false, reply }, reply)
  }

  /**
   * The line, or both, of a request that was refused.
   * @throws ApiError 500
   */
  async refused(error: ApiError, text: string, reply: Reply): Promise<void> {
    const { verdict } = this.#known
    // Both lines go out together. The first says why only where the policies, or who asks, were the reason.
    const asked = this.#first !== 'none' ? undefined : this.request(() => undefined, verdict?.allowed ? '' : text)
    const results = error.data !== undefined
    await Promise.all([asked, this.#response({ warnings: error.warnings, error: text, results, reply }, reply)])
  }

  #response<R>(ended: Ended, reply: R): Promise<R> {
    const known = this.#known
    return this.#write(({ scribe }, question, time) => scribe.response(time, question, known, ended)).then(
      (written) => {
        if (written) return reply
        const done = this.#first === 'written'
        throw unwritten(done ? 'the answer is withheld: what was asked may have been done' : 'nothing was done')
      },
    )
  }

  /** Whether one device has the line; without devices there is nothing to write. */
  #write(record: (device: Opened, question: string, time: string) => Pieces): Promise<boolean> {
    const { opened, time } = this.#outlets
    const writes = opened.map((device) => device.writer.write(record(device, this.#question(device), time)))
    const [first, second] = writes
    if (first === undefined) return Promise.resolve(true)
    return second === undefined ? first : Promise.all(writes).then((written) => written.includes(true))
  }

  /** What both lines say of the request is made once. */
  #question(device: Opened): string {
    const known = this.#questions.get(device)
    if (known !== undefined) return known
    const question = device.scribe.question(this.#known)
    this.#questions.set(device, question)
    return question
  }
}

const unwritten = (consequence: string): ApiError =>
  new ApiError(500, `no audit device could be written, so ${consequence}`, { style: 'list' })
