import { LRUCache } from 'lru-cache'
import type { Operation } from '../audit/entry.ts'
import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Timing } from '../metrics/timing.ts'
import type { Metrics } from '../metrics.ts'
import type { MaybePromise } from '../route.ts'
import type { RawReply, RawRequest } from './exchange.ts'
import { type InFlight, type UnderWay, underWay } from './inflight.ts'

export interface WatchOptions {
  readonly metrics: Metrics
  /** Learns of each request that is not answered at once. */
  readonly inFlight: InFlight
  readonly clock: Clock
  readonly log: Logger
}

/** Each operation of one takes 2 kB. */
const mostMounts = 1000

const timingName = (mount: string, operation: Operation): string =>
  `vault.route.${operation}.${mount.replaceAll('/', '-')}`

/**
 * Measures requests under the reference's names, as a whole and by mount and operation, and logs each at level debug.
 * Costs a request a look at the clock, a few additions, and a place among those in flight.
 */
export class Watch {
  readonly #metrics: Metrics
  readonly #clock: Clock
  readonly #log: Logger
  readonly #verbose: boolean
  readonly #all: Timing
  /** By mount; those of mounts that come and go are forgotten. */
  readonly #routes = new LRUCache<string, Map<Operation, Timing>>({
    max: mostMounts,
    dispose: (timings, mount) => {
      for (const operation of timings.keys()) this.#metrics.forgetTiming(timingName(mount, operation))
    },
  })
  readonly #inFlight: InFlight

  constructor({ metrics, inFlight, clock, log }: WatchOptions) {
    this.#metrics = metrics
    this.#clock = clock
    this.#log = log
    this.#inFlight = inFlight
    this.#verbose = log.isLevelEnabled('debug')
    this.#all = metrics.timing('vault.core.handle_request', 'Requests, from the last byte read to the answer.')
    metrics.gauge('vault.core.in_flight_requests', 'Requests that are being answered.', () => inFlight.size)
  }

  /** @param work answers the request, and never throws or rejects */
  over(raw: RawRequest, work: (request: UnderWay) => MaybePromise<RawReply>): MaybePromise<RawReply> {
    const request = underWay(raw)
    const reply = work(request)
    if (!(reply instanceof Promise)) return this.#end(request, reply)
    this.#inFlight.add(request)
    return reply.then((settled) => {
      this.#inFlight.delete(request)
      return this.#end(request, settled)
    })
  }

  #end({ raw, mount, operation }: UnderWay, reply: RawReply): RawReply {
    const milliseconds = this.#clock.monotonic() - raw.receivedAt
    this.#all.observe(milliseconds)
    if (mount !== undefined && operation !== undefined) this.#route(mount, operation).observe(milliseconds)
    if (this.#verbose) {
      const { id, method, rawPath, remoteAddress } = raw
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
    const timing = this.#metrics.timing(timingName(mount, operation), `Requests of one kind to ${mount}.`)
    const others = this.#routes.get(mount)
    if (others === undefined) this.#routes.set(mount, new Map([[operation, timing]]))
    else others.set(operation, timing)
    return timing
  }
}
