import { badRequest } from '../errors.ts'
import type { SettingValue } from '../settings/settings.ts'

/** Whose requests are counted together. */
const groupings = ['ip', 'none', 'token'] as const
export type Grouping = (typeof groupings)[number]

/** A rate-limit quota as it is stored. */
export interface RateLimit {
  readonly name: string
  /** Empty for all; a mount with its slash; a path below one; or the beginning of one, with `*` behind. */
  readonly path: string
  /** Requests in an interval. */
  readonly rate: number
  readonly intervalSeconds: number
  /** How long a caller is refused who asked too often; 0 until the interval is over. */
  readonly blockSeconds: number
  readonly groupBy: Grouping
}

/** A quota in a request, durations in seconds. */
export interface RateLimitRequest {
  readonly path: string
  readonly rate: number
  readonly intervalSeconds?: number | undefined
  readonly blockSeconds?: number | undefined
  readonly groupBy?: string | undefined
}

const longestSeconds = 365 * 24 * 3600
const mostRate = 1_000_000_000

/** @throws ApiError 400 that names the field */
export function readRateLimit(request: RateLimitRequest): SettingValue {
  const { path, rate, intervalSeconds = 1, blockSeconds = 0, groupBy = 'ip' } = request
  if (!(rate >= 1 && rate <= mostRate)) throw badRequest(`rate must be from 1 to ${mostRate}`)
  if (intervalSeconds < 1 || intervalSeconds > longestSeconds) throw badRequest('interval must be from 1s to a year')
  if (blockSeconds < 0 || blockSeconds > longestSeconds) throw badRequest('block_interval must be at most a year')
  if (!groupings.some((one) => one === groupBy)) throw badRequest(`group_by must be one of ${groupings.join(', ')}`)
  if (/\*./.test(path) || path.length > 512) throw badRequest('path may have 512 characters, and * at its end alone')
  return { path, rate, intervalSeconds, blockSeconds, groupBy }
}

/** @param values those of the kind `rate-limit` */
export const rateLimits = (values: ReadonlyMap<string, SettingValue>): readonly RateLimit[] =>
  [...values].map(([name, value]) => ({ ...(value as unknown as Omit<RateLimit, 'name'>), name }))

/** Whether a quota covers a path. @param path canonical */
export const covers = ({ path: own }: RateLimit, path: string): boolean =>
  own.endsWith('*')
    ? path.startsWith(own.slice(0, -1))
    : own === path || (/^$|\/$/.test(own) && `${path}/`.startsWith(own))
