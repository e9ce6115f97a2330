const forms = 'seconds or a duration such as "90s", "1h30m" or "7d", with the units ns, us, ms, s, m, h or d'
const nanosecondsOf: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
}
const goDuration = /^(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$/
const durationPart = /([0-9]*)\.?([0-9]*)(ns|us|µs|μs|ms|s|m|h)/g
/** A Go duration is an int64 of nanoseconds: 292 years. */
const maxNanoseconds = 2n ** 63n - 1n

/**
 * Reads a duration as the reference does: seconds, a Go duration (time.ParseDuration), or whole days (`7d`).
 * @param refuse receives the reason
 * @returns whole seconds, rounded down; 1 for less than a second, since 0 means the default, or no limit
 */
export function readSeconds(value: number | string, refuse: (reason: string) => never): number {
  const nanoseconds = readNanoseconds(value, refuse)
  const seconds = Number(nanoseconds / 1_000_000_000n)
  return nanoseconds > 0n ? Math.max(1, seconds) : 0
}

/** As readSeconds. @returns whole milliseconds, rounded down */
export const readMilliseconds = (value: number | string, refuse: (reason: string) => never): number =>
  Number(readNanoseconds(value, refuse) / 1_000_000n)

function readNanoseconds(value: number | string, refuse: (reason: string) => never): bigint {
  if (value === '') return 0n
  const text = String(value).trim()
  const negative = text.startsWith('-')
  const nanoseconds = magnitudeOf(text.replace(/^[+-]/, ''))
  if (nanoseconds === undefined) return refuse(`expected ${forms}`)
  if (nanoseconds > maxNanoseconds) return refuse('a duration is at most 2562047h, some 292 years')
  if (negative && nanoseconds > 0n) return refuse(`cannot provide negative value '${text}'`)
  return nanoseconds
}

/** Nanoseconds of a duration without sign; undefined when it is invalid. */
function magnitudeOf(text: string): bigint | undefined {
  if (/^[0-9]{1,30}$/.test(text)) return BigInt(text) * 1_000_000_000n
  if (/^[0-9]{1,30}d$/.test(text)) return BigInt(text.slice(0, -1)) * 86_400_000_000_000n
  if (text.length > 100 || !goDuration.test(text)) return undefined
  let sum = 0n
  for (const [, whole = '', fraction = '', unit = ''] of text.matchAll(durationPart)) {
    const scale = nanosecondsOf[unit] ?? 0n
    sum += BigInt(whole || '0') * scale + (BigInt(fraction || '0') * scale) / 10n ** BigInt(fraction.length)
  }
  return sum
}

/** A duration of whole seconds in Go's format. */
export function showSeconds(seconds: number): string {
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor((seconds % 3600) / 60)
  return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds % 60}s`
}

/** A duration of whole milliseconds in Go's format. */
export function showMilliseconds(milliseconds: number): string {
  if (milliseconds % 1000 === 0) return showSeconds(milliseconds / 1000)
  if (milliseconds < 1000) return `${milliseconds}ms`
  const fraction = String(milliseconds % 1000)
    .padStart(3, '0')
    .replace(/0+$/, '')
  return showSeconds(Math.floor(milliseconds / 1000)).replace(/s$/, `.${fraction}s`)
}
