import { showSeconds } from '../duration.ts'
import { badRequest } from '../errors.ts'

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
 * The explicit maximum and the period are kept as requested; the system's maximum still bounds the ttl.
 * @returns the life (a ttl of 0 never ends), and a warning for each limit that was applied
 */
export function newLifetime(requested: Lifetime, mayLiveForEver: boolean): Lifetime & { warnings: string[] } {
  const warnings: string[] = []
  const { ttlSeconds, explicitMaxTtlSeconds, periodSeconds } = requested
  if (mayLiveForEver && ttlSeconds === 0 && periodSeconds === 0) {
    return { ...requested, ttlSeconds: explicitMaxTtlSeconds, warnings }
  }
  const longest = longestLife(requested)
  const granted =
    periodSeconds > 0
      ? limited(periodSeconds, longest, warnings, capped('Period'))
      : limited(ttlSeconds || longest, longest, warnings, capped('TTL'))
  return { ...requested, ttlSeconds: granted, warnings }
}

/** The fields of a token or lease that renewal needs. */
export interface RenewableLife extends Lifetime {
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly lastRenewalAt: number | null
}

/**
 * The expiry of a token renewed now. A periodic token gets its period again, up to its explicit maximum; any other
 * never passes its longest life. Both limits count from creation.
 * @param increment requested seconds; 0 requests those of the last renewal, or else the ttl it was created with
 */
export function renewedUntil(
  life: RenewableLife,
  increment: number,
  now: number,
): { expiresAt: number; warnings: string[] } {
  const warnings: string[] = []
  const periodic = life.periodSeconds > 0
  const longest = longestLife(life)
  const wanted = periodic
    ? limited(life.periodSeconds, longest, warnings, capped('Period'))
    : increment || lastGranted(life)
  const end = periodic ? life.explicitMaxTtlSeconds || Number.POSITIVE_INFINITY : longest
  const left = Math.max(0, Math.floor((life.createdAt + end * 1000 - now) / 1000))
  if (left === 0) throw badRequest('past the max TTL, cannot renew')
  const seconds = limited(wanted, left, warnings, capped('TTL'))
  return { expiresAt: now + seconds * 1000, warnings }
}

const longestLife = ({ explicitMaxTtlSeconds }: Lifetime): number =>
  Math.min(explicitMaxTtlSeconds || systemTtlSeconds, systemTtlSeconds)

/** As in the reference, where a lease keeps the ttl that its last renewal got. */
const lastGranted = ({ ttlSeconds, expiresAt, lastRenewalAt }: RenewableLife): number =>
  expiresAt === null || lastRenewalAt === null ? ttlSeconds : Math.round((expiresAt - lastRenewalAt) / 1000)

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

/** Seconds until an expiry, 0 after it. Rounded up: a new token or lease shows its whole ttl. */
export const secondsLeft = (expiresAt: number, now: number): number => Math.max(0, Math.ceil((expiresAt - now) / 1000))
