import { showSeconds } from '../duration.ts'

/** The life of a token by the rules of Vault's auth/token. Durations are whole seconds, points in time milliseconds. */
export interface Lifetime {
  readonly ttlSeconds: number
  readonly explicitMaxTtlSeconds: number
  readonly periodSeconds: number
}

/** 768 h: both the default and the longest life of a token that is not periodic. */
export const systemTtlSeconds = 2_764_800

/**
 * The life of a new token. All zero asks for the default, or for a token that never expires if `mayLiveForEver` (root).
 * @returns the life with its limits applied (a ttl of 0 never ends), and a warning for each limit that was applied
 */
export function newLifetime(requested: Lifetime, mayLiveForEver: boolean): Lifetime & { warnings: string[] } {
  const warnings: string[] = []
  const max = limited(requested.explicitMaxTtlSeconds, systemTtlSeconds, warnings, explicitMaxCapped)
  const period = limited(requested.periodSeconds, max || systemTtlSeconds, warnings, capped('Period'))
  const forEver = mayLiveForEver && requested.ttlSeconds === 0 && max === 0 && period === 0
  const wanted = period || requested.ttlSeconds || Math.min(systemTtlSeconds, max || systemTtlSeconds)
  const ttl = limited(wanted, max || systemTtlSeconds, warnings, capped('TTL'))
  return { ttlSeconds: forEver ? 0 : ttl, explicitMaxTtlSeconds: max, periodSeconds: period, warnings }
}

/**
 * The expiry of a token renewed now. A periodic token gets its period again; any other never passes its longest life,
 * counted from creation.
 * @param increment requested seconds; 0 requests the ttl it was created with
 */
export function renewedUntil(
  life: Lifetime & { readonly createdAt: number },
  increment: number,
  now: number,
): { expiresAt: number; warnings: string[] } {
  const warnings: string[] = []
  const wanted = life.periodSeconds || increment || life.ttlSeconds
  const longest = life.explicitMaxTtlSeconds || (life.periodSeconds ? Number.POSITIVE_INFINITY : systemTtlSeconds)
  const left = Math.max(0, Math.floor((life.createdAt + longest * 1000 - now) / 1000))
  const seconds = limited(wanted, left, warnings, capped('TTL'))
  return { expiresAt: now + seconds * 1000, warnings }
}

function limited(
  seconds: number,
  limit: number,
  warnings: string[],
  text: (seconds: number, limit: number) => string,
): number {
  if (seconds <= limit) return seconds
  warnings.push(text(seconds, limit))
  return limit
}

const capped = (what: string) => (seconds: number, limit: number) =>
  `${what} of "${showSeconds(seconds)}" exceeded the effective max_ttl of "${showSeconds(limit)}"; ` +
  `${what} value is capped accordingly`

const explicitMaxCapped = (seconds: number, limit: number): string =>
  `Explicit max TTL of "${showSeconds(seconds)}" is greater than system/mount allowed value; ` +
  `value is being capped to "${showSeconds(limit)}"`

/** Seconds until an expiry, 0 after it. Rounded up: a new token or lease shows its whole ttl. */
export const secondsLeft = (expiresAt: number, now: number): number => Math.max(0, Math.ceil((expiresAt - now) / 1000))
