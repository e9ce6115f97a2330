import type { Operation } from '../audit/entry.ts'
import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Timing } from '../metrics/timing.ts'
import type { Metrics } from '../metrics.ts'
import type { MaybePromise } from '../route.ts'
import type { RawReply, RawRequest } from './exchange.ts'

/** What a request's timing is filed under; filled in on its way. */
export interface Labels {
  /** Path of the mount, with its slash; undefined until it is known, and where there is none. */
  mount: string | undefined
  operation: Operation | undefined
}

/**
 * Measures requests under the reference's names, as a whole and by mount and operation, and logs each at level debug.
 * Costs a request two looks at the clock and a few additions.
 */
export class Watch {
  readonly #metrics: Metrics
  readonly #clock: Clock
  readonly #log: Logger
  readonly #verbose: boolean
  readonly #all: Timing
  readonly #routes = new Map<string, Map<Operation, Timing>>()
  #inFlight = 0

  constructor({ metrics, clock, log }: { metrics: Metrics; clock: Clock; log: Logger }) {
    this.#metrics = metrics
    this.#clock = clock
    this.#log = log
    this.#verbose = log.isLevelEnabled('debug')
    this.#all = metrics.timing('vault.core.handle_request', 'Requests, from the last byte read to the answer.')
    metrics.gauge('vault.core.in_flight_requests', 'Requests that are being answered.', () => this.#inFlight)
  }

  /** @param work answers the request, and never throws or rejects */
  over(request: RawRequest, work: (labels: Labels) => MaybePromise<RawReply>): MaybePromise<RawReply> {
    const labels: Labels = { mount: undefined, operation: undefined }
    const start = this.#clock.monotonic()
    this.#inFlight++
    const reply = work(labels)
    if (reply instanceof Promise) return reply.then((settled) => this.#end(request, labels, start, settled))
    return this.#end(request, labels, start, reply)
  }

  #end(request: RawRequest, { mount, operation }: Labels, start: number, reply: RawReply): RawReply {
    const milliseconds = this.#clock.monotonic() - start
    this.#inFlight--
    this.#all.observe(milliseconds)
    if (mount !== undefined && operation !== undefined) this.#route(mount, operation).observe(milliseconds)
    if (this.#verbose) {
      const { id, method, rawPath, remoteAddress } = request
      this.#log.debug(
        { requestId: id, method, path: rawPath, remoteAddress, status: reply.status, milliseconds },
        'request',
      )
    }
    return reply
  }

  #route(mount: string, operation: Operation): Timing {
    const known = this.#routes.get(mount)?.get(operation)
    if (known !== undefined) return known
    const name = `vault.route.${operation}.${mount.replaceAll('/', '-')}`
    const timing = this.#metrics.timing(name, `Requests of one kind to ${mount}.`)
    this.#routes.set(mount, (this.#routes.get(mount) ?? new Map()).set(operation, timing))
    return timing
  }
}
