/** How long a token lives: pure rules of Vault's auth/token. Durations are whole seconds, points in time milliseconds. */
export interface Lifetime {
  readonly ttlSeconds: number
  readonly explicitMaxTtlSeconds: number
  readonly periodSeconds: number
}

/** 768 h: both the default and the longest life of a token that is not periodic. */
export const SYSTEM_TTL_SECONDS = 2_764_800

/**
 * The life a new token gets. Everything zero asks for the default, or for ever where `mayLiveForEver` (root).
 * @returns the life with its limits applied (a ttl of 0 never ends), and a warning for each limit that was applied
 */
export function newLifetime(asked: Lifetime, mayLiveForEver: boolean): Lifetime & { warnings: string[] } {
  const warnings: string[] = []
  const max = limited(asked.explicitMaxTtlSeconds, SYSTEM_TTL_SECONDS, warnings, explicitMaxCapped)
  const period = limited(asked.periodSeconds, max || SYSTEM_TTL_SECONDS, warnings, capped('Period'))
  const forEver = mayLiveForEver && asked.ttlSeconds === 0 && max === 0 && period === 0
  const wanted = period || asked.ttlSeconds || Math.min(SYSTEM_TTL_SECONDS, max || SYSTEM_TTL_SECONDS)
  const ttl = limited(wanted, max || SYSTEM_TTL_SECONDS, warnings, capped('TTL'))
  return { ttlSeconds: forEver ? 0 : ttl, explicitMaxTtlSeconds: max, periodSeconds: period, warnings }
}

/**
 * When a token ends once renewed now. A periodic token gets its period again; any other never passes the longest life
 * counted from its creation.
 * @param increment seconds asked for; 0 asks for the ttl it was made with
 */
export function renewedUntil(
  life: Lifetime & { readonly createdAt: number },
  increment: number,
  now: number,
): { expiresAt: number; warnings: string[] } {
  const warnings: string[] = []
  const wanted = life.periodSeconds || increment || life.ttlSeconds
  const longest = life.explicitMaxTtlSeconds || (life.periodSeconds ? Number.POSITIVE_INFINITY : SYSTEM_TTL_SECONDS)
  const left = Math.max(0, Math.floor((life.createdAt + longest * 1000 - now) / 1000))
  const granted = limited(wanted, left, warnings, capped('TTL'))
  return { expiresAt: now + granted * 1000, warnings }
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
  `${what} of "${goDuration(seconds)}" exceeded the effective max_ttl of "${goDuration(limit)}"; ` +
  `${what} value is capped accordingly`

const explicitMaxCapped = (seconds: number, limit: number): string =>
  `Explicit max TTL of "${goDuration(seconds)}" is greater than system/mount allowed value; ` +
  `value is being capped to "${goDuration(limit)}"`

/** As Go prints a duration of whole seconds. */
function goDuration(seconds: number): string {
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor((seconds % 3600) / 60)
  return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds % 60}s`
}
