import type { Verdict } from '../auth/acl/decide.ts'
import { ApiError } from '../errors.ts'
import type { Caller, MaybePromise, Outcome } from '../route.ts'
import type { Pieces } from './chain.ts'
import type { AuditedRequest, Operation, Reply, RequestEntry, ResponseEntry } from './entry.ts'
import type { Formatter } from './formatter.ts'
import type { LineWriter } from './linewriter.ts'

/** A device as this worker has opened it. */
export interface OpenDevice {
  readonly formatter: Formatter
  readonly writer: LineWriter
}

/** Where lines go. */
export interface Destination {
  /** The devices enabled now. */
  readonly openDevices: readonly OpenDevice[]
  /** The current time, as records show it. */
  readonly time: string
  /** Counts a line that no device took. */
  missed(kind: 'request' | 'response'): void
}

/**
 * The trail of one request: a line before it is carried out, and one before it is answered. A line counts as written
 * once one device has it.
 */
export class Trail {
  readonly #destination: Destination
  readonly #requestTexts = new Map<OpenDevice, string>()
  #entry: RequestEntry
  /** The state of the request's line. */
  #requestLine: 'none' | 'tried' | 'written' = 'none'

  constructor(destination: Destination, request: AuditedRequest) {
    this.#destination = destination
    const { operation } = request
    this.#entry = { request, operation, caller: undefined, verdict: undefined, isRefused: false }
  }

  /**
   * Adds the caller and the decision of the policies.
   * @param operation replaces the one the request came with
   */
  setVerdict(
    caller: Caller | undefined,
    verdict: Verdict | undefined,
    operation: Operation = this.#entry.operation,
  ): void {
    this.#entry = { request: this.#entry.request, operation, caller, verdict, isRefused: false }
  }

  /**
   * Writes the request's line, then does the work.
   * @throws ApiError 500 when no device takes the line: nothing is done then
   */
  recordRequest<T>(work: () => MaybePromise<T>, error = ''): Promise<T> {
    this.#requestLine = 'tried'
    return this.#write(({ formatter }, text, time) => formatter.request(time, text, error)).then((written) => {
      if (!written) {
        this.#destination.missed('request')
        throw unwritten('nothing was done')
      }
      this.#requestLine = 'written'
      return work()
    })
  }

  /**
   * Writes the response's line, then returns the reply.
   * @throws ApiError 500 when no device takes the line: the reply must not go out
   */
  recordResponse<R extends Reply>(outcome: Outcome, warnings: readonly string[], reply: R): Promise<R> {
    return this.#respond({ outcome, warnings, error: '', results: false, reply }, reply)
  }

  /**
   * Writes the line, or both lines, of a refused request.
   * @throws ApiError 500 when no device takes them
   */
  async recordRefusal(error: ApiError, text: string, warnings: readonly string[], reply: Reply): Promise<void> {
    if (this.#requestLine === 'none') this.#entry = { ...this.#entry, isRefused: true }
    const { verdict } = this.#entry
    // A request that was refused before its line was written gets both at once. The first gives the reason only where
    // policies or sign-in refused.
    const request =
      this.#requestLine === 'none' ? this.recordRequest(() => undefined, verdict?.allowed ? '' : text) : undefined
    const results = error.data !== undefined
    await Promise.all([request, this.#respond({ warnings, error: text, results, reply }, reply)])
  }

  #respond<R>(response: ResponseEntry, reply: R): Promise<R> {
    const entry = this.#entry
    return this.#write(({ formatter }, text, time) => formatter.response(time, text, entry, response)).then(
      (written) => {
        if (written) return reply
        this.#destination.missed('response')
        const done = this.#requestLine === 'written'
        throw unwritten(done ? 'the answer is withheld: the request may have been carried out' : 'nothing was done')
      },
    )
  }

  /** Whether one device has the line, known as soon as one has; true without devices. */
  #write(format: (device: OpenDevice, requestText: string, time: string) => Pieces): Promise<boolean> {
    const { openDevices, time } = this.#destination
    const writes = openDevices.map((device) => device.writer.write(format(device, this.#requestText(device), time)))
    const [first, second] = writes
    if (first === undefined) return Promise.resolve(true)
    return second === undefined ? first : firstWritten(writes)
  }

  /** The request's members, which both lines repeat: formatted once. */
  #requestText(device: OpenDevice): string {
    const known = this.#requestTexts.get(device)
    if (known !== undefined) return known
    const text = device.formatter.requestMembers(this.#entry)
    this.#requestTexts.set(device, text)
    return text
  }
}

const unwritten = (consequence: string): ApiError =>
  new ApiError(500, `no audit device could be written, so ${consequence}`, { style: 'list' })

/** True as soon as one is: a slow device holds nothing up while another one writes. */
function firstWritten(writes: readonly Promise<boolean>[]): Promise<boolean> {
  return new Promise((resolve) => {
    let pending = writes.length
    for (const write of writes) {
      void write.then((written) => {
        pending--
        if (written || pending === 0) resolve(written)
      })
    }
  })
}
