import { memo } from '../auth/memo.ts'
import type { Clock } from '../clock.ts'
import { ApiError } from '../errors.ts'
import type { Counter } from '../metrics.ts'
import { networkOf } from '../network.ts'
import type { QuotaConfig } from './config.ts'
import type { RateLimit } from './ratelimit.ts'

/** The requests of one caller in the interval that began last; monotonic milliseconds. */
interface Count {
  began: number
  used: number
  blockedUntil: number
}

/** A quota with the counts of this worker. */
export interface Counted {
  readonly limit: RateLimit
  readonly counts: ReturnType<typeof memo<Count>>
}

/** Callers counted for each quota, in each generation of its memo; those that ask rarely are forgotten. */
const countedCallers = 20_000

export const counted = (limit: RateLimit): Counted => ({ limit, counts: memo<Count>(countedCallers) })

/** Paths by which a quota that leaves no request can be removed: not counted for callers with a good token. */
const management = 'sys/quotas/'

/** 429 of a rate-limit quota. */
export class RateLimited extends ApiError {
  /** Whether the refusal is audited. */
  readonly audited: boolean

  constructor(path: string, { retryAfterSeconds, audited }: { retryAfterSeconds: number; audited: boolean }) {
    super(429, `request path "${path}": rate limit quota exceeded`, { retryAfterSeconds })
    this.audited = audited
  }
}

/** A request as quotas see it. */
export interface Metered {
  /** Canonical, or the part of it that could be read. */
  readonly path: string
  /** Empty on a unix socket. */
  readonly address: string
  /** Whether it came with a credential, good or bad. */
  readonly hasCredential: boolean
}

interface MeterOptions {
  readonly quota: Counted
  readonly config: QuotaConfig
  readonly clock: Clock
  /** Processes of this node. */
  readonly workers: number
  readonly violations: Counter
}

/** Counts one request that a quota covers, once: before sign-in, or by its result. */
export class Meter {
  readonly #request: Metered
  readonly #options: MeterOptions
  #isCounted = false
  /** The quota's headers for the answer. */
  #standing: readonly string[] = []

  constructor(request: Metered, options: MeterOptions) {
    this.#request = request
    this.#options = options
  }

  /** Counts the request, unless that must wait for its sign-in. @throws RateLimited */
  begin(): void {
    const { path, hasCredential } = this.#request
    const waits = hasCredential && (this.#grouping === 'token' || path.startsWith(management))
    if (!waits) this.#countStranger()
  }

  /** The token was good. @param accessor its own @throws RateLimited */
  signedIn(accessor: string): void {
    if (this.#isCounted) return
    if (this.#request.path.startsWith(management)) this.#isCounted = true
    else this.#count(accessor)
  }

  /** The sign-in failed, or the request was refused before it. @throws RateLimited */
  unknown(): void {
    if (!this.#isCounted) this.#countStranger()
  }

  /** False while it waits for the result of the sign-in. */
  get isCounted(): boolean {
    return this.#isCounted
  }

  /** Names and values of the quota's headers: empty unless sys/quotas/config enables them. */
  get headers(): readonly string[] {
    return this.#standing
  }

  get #grouping(): RateLimit['groupBy'] {
    return this.#options.quota.limit.groupBy
  }

  #countStranger(): void {
    const network = networkOf(this.#request.address)
    if (this.#grouping === 'none') this.#count('')
    else this.#count(this.#grouping === 'ip' ? network : `address ${network}`)
  }

  #count(caller: string): void {
    const { quota, config, clock, workers, violations } = this.#options
    const { limit, counts } = quota
    this.#isCounted = true
    const now = clock.monotonic()
    const length = limit.intervalSeconds * 1000
    const count = counts.get(caller) ?? { began: now, used: 0, blockedUntil: 0 }
    if (count.used === 0) counts.set(caller, count)
    if (now - count.began >= length) Object.assign(count, { began: now, used: 0 })
    const share = Math.max(1, limit.rate / workers)
    const fits = now >= count.blockedUntil && count.used + 1 <= share
    if (fits) count.used++
    else if (now >= count.blockedUntil) count.blockedUntil = now + limit.blockSeconds * 1000
    const wait = Math.max(count.blockedUntil, count.began + length) - now
    const seconds = Math.max(1, Math.ceil(wait / 1000))
    if (config.headers) this.#standing = standing(share, fits ? share - count.used : 0, seconds)
    if (fits) return
    violations.value++
    throw new RateLimited(this.#request.path, { retryAfterSeconds: seconds, audited: config.audited })
  }
}

const standing = (limit: number, left: number, seconds: number): readonly string[] => [
  ...['X-Ratelimit-Limit', String(Math.floor(limit))],
  ...['X-Ratelimit-Remaining', String(Math.floor(left))],
  ...['X-Ratelimit-Reset', String(seconds)],
]
