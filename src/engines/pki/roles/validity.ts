import { readMoment, showMoment, wholeSeconds } from '../../../clock/moment.ts'
import { showSeconds } from '../../../duration.ts'
import { firstUtcTime } from '../../../x509/time.ts'
import type { Refusal } from './refusal.ts'
import type { Role } from './role.ts'

/** Milliseconds since the Unix epoch, in whole seconds: a certificate has no fractions. */
export interface Validity {
  readonly notBefore: number
  readonly notAfter: number
}

/** The moment of issue, and the limits of the mount. */
export interface TimeLimits {
  /** Milliseconds since the Unix epoch. */
  readonly now: number
  readonly defaultTtlSeconds: number
  readonly maxTtlSeconds: number
}

/** The requested validity; 0 and '' mean absent. */
interface Wish {
  readonly ttlSeconds: number
  readonly notAfter: string
}

type Limits = Pick<Role, 'ttl' | 'maxTtl' | 'notBeforeDuration' | 'notAfter'>

/** 9999-12-31T23:59:59Z, the last second that a certificate can name (RFC 5280, 4.1.2.5.2). */
const latest = Date.UTC(9999, 11, 31, 23, 59, 59)

/**
 * The validity of a certificate: a ttl above the maximum is cut with a warning; a fixed time is taken as given or
 * refused. Backdating does not shorten the ttl.
 */
export function validityOf(role: Limits, wish: Wish, limits: TimeLimits): Validity | Refusal {
  const notBefore = wholeSeconds(limits.now - role.notBeforeDuration * 1000)
  if (notBefore < firstUtcTime) return tooEarly
  const moment = role.notAfter || wish.notAfter
  if (moment === '') return { notBefore, notAfter: wholeSeconds(limits.now) + ttlOf(role, wish, limits).seconds * 1000 }
  if (wish.ttlSeconds > 0) return both
  const read = readMoment(moment)
  if (read === undefined) {
    return {
      text: `not_after ${JSON.stringify(moment)} is not a time`,
      rule: 'not_after must have the form YYYY-MM-DDTHH:MM:SSZ',
    }
  }
  const notAfter = wholeSeconds(read)
  const bound = role.notAfter === '' && role.maxTtl > 0 ? wholeSeconds(limits.now) + role.maxTtl * 1000 : latest
  if (notAfter > bound) return beyond(notAfter, bound, role)
  return notAfter <= limits.now ? past(notBefore, notAfter) : { notBefore, notAfter }
}

/** The effective ttl, and a warning when it was cut. */
export function ttlOf(
  role: Pick<Role, 'ttl' | 'maxTtl'>,
  { ttlSeconds }: Pick<Wish, 'ttlSeconds'>,
  { defaultTtlSeconds, maxTtlSeconds }: Omit<TimeLimits, 'now'>,
): { readonly seconds: number; readonly warning?: string } {
  const wanted = ttlSeconds || role.ttl || defaultTtlSeconds
  const limit = role.maxTtl || maxTtlSeconds
  if (wanted <= limit) return { seconds: wanted }
  const [ttl, max] = [showSeconds(wanted), showSeconds(limit)]
  return { seconds: limit, warning: `TTL "${ttl}" is longer than permitted maxTTL "${max}", so maxTTL is being used` }
}

const both: Refusal = {
  text: 'Either ttl or not_after should be provided. Both should not be provided in the same request.',
  rule: 'a request with a ttl must not have a not_after, even one that the role sets',
}

const tooEarly: Refusal = {
  text: 'cannot satisfy request, as not_before_duration leads to a NotBefore before 1950',
  rule: 'the times of a certificate begin in 1950 (RFC 5280 section 4.1.2.5)',
  setting: 'not_before_duration',
}

function beyond(notAfter: number, bound: number, { maxTtl }: Limits): Refusal {
  const text = `cannot satisfy request, as not_after is beyond ${showMoment(bound)}`
  if (bound === latest) return { text, rule: 'no certificate can end later than that' }
  const needed = showSeconds(Math.ceil((notAfter - bound) / 1000) + maxTtl)
  return { text, rule: `max_ttl is ${showSeconds(maxTtl)}`, setting: `max_ttl=${needed}` }
}

const past = (notBefore: number, notAfter: number): Refusal => ({
  text:
    notAfter < notBefore
      ? `The certificate's Not Before (${showMoment(notBefore)}) is later than the certificate's Not After (${showMoment(notAfter)})`
      : `cannot satisfy request, as NotAfter date ${showMoment(notAfter)} is in the past`,
  rule: 'a certificate must not be expired when it is issued',
})
