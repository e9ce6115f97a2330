import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type { Operation } from '../audit/entry.ts'
import type { Clock } from '../clock.ts'
import { withoutCredentials } from '../log/scrub.ts'
import { type InFlightRequest, mostTold } from '../metrics/inflight.ts'
import type { Caller } from '../route.ts'
import type { RawRequest } from './exchange.ts'

/** A request under way; its fields are filled in as they become known. */
export interface UnderWay {
  readonly raw: RawRequest
  operation: Operation | undefined
  /** Canonical, and folded once its mount is known. */
  path: string
  /** Path of the mount, with its slash; undefined until it is known, and where there is none. */
  mount: string | undefined
  caller: Caller | undefined
}

export const underWay = (raw: RawRequest): UnderWay => ({
  raw,
  operation: undefined,
  path: '',
  mount: undefined,
  caller: undefined,
})

/**
 * The requests that this worker is answering, but for those answered at once: nothing else runs meanwhile.
 */
export class InFlight {
  readonly #clock: Clock
  readonly #requests = new Set<UnderWay>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#requests.size
  }

  add(request: UnderWay): void {
    this.#requests.add(request)
  }

  delete(request: UnderWay): void {
    this.#requests.delete(request)
  }

  /** The requests that have taken longest, as reported to other processes. */
  list(): readonly InFlightRequest[] {
    const epoch = this.#clock.wall() - this.#clock.monotonic()
    const eldest = [...this.#requests].slice(0, mostTold)
    return eldest.map((request) => described(request, epoch))
  }
}

/** @param epoch wall time of the monotonic clock's zero */
function described({ raw, path, caller }: UnderWay, epoch: number): InFlightRequest {
  const { id, method, remoteAddress, remotePort } = raw
  const host = isIPv6(remoteAddress) ? `[${remoteAddress}]` : remoteAddress
  return {
    ...{ id, method },
    startedAt: epoch + raw.receivedAt,
    client: remoteAddress === '' ? '' : `${host}:${remotePort}`,
    path: `/v1/${withoutCredentials(path)}`.slice(0, longestPath),
    clientId: caller === undefined ? '' : clientIdOf(caller.policies),
  }
}

const longestPath = 1000

/** As in the reference for a token without an entity: from its policies and the root namespace. */
const clientIdOf = (policies: readonly string[]): string =>
  createHash('sha256')
    .update(`${policies.toSorted().join('\x7f')}\0root`)
    .digest('base64')
