import { endOfDigits, endOfString, isDigit, quote, zero } from './scan.ts'

const minus = 0x2d
const plus = 0x2b
const dot = 0x2e
const colon = 0x3a
/** A double reproduces any integer of so many digits. */
const plainDigits = 15

const isExponent = (byte: number | undefined): boolean => byte === 0x65 || byte === 0x45
const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Whether a run of digits outside strings may belong to a number that a double does not reproduce as written. */
export const mayRound = (body: Uint8Array, start: number, end: number): boolean =>
  end - start > plainDigits ||
  body[end] === dot ||
  isExponent(body[end]) ||
  (body[start] === zero && body[start - 1] === minus)

/**
 * JSON with quotes around every number that a double does not reproduce as written (9007199254740993, 1000.0): text
 * fields then have it digit for digit, as in the reference, and numeric fields refuse it. Invalid JSON stays invalid.
 */
export function quoteRoundedNumbers(body: Buffer): string {
  // Such a number has at least two characters and a separator, and gains two quotes.
  const quoted = Buffer.allocUnsafe(2 * body.length)
  let length = 0
  let copied = 0
  const copyTo = (end: number): void => {
    length += body.copy(quoted, length, copied, end)
    copied = end
  }
  for (let at = 0; at < body.length; ) {
    if (body[at] === quote) at = endOfString(body, at + 1) + 1
    else if (body[at] === minus || isDigit(body[at])) {
      const end = endOfNumber(body, at)
      const isRounded = end !== undefined && (end - at > longestDouble || rounds(body.toString('latin1', at, end)))
      if (isRounded && !isKey(body, end)) {
        copyTo(at)
        quoted[length++] = quote
        copyTo(end)
        quoted[length++] = quote
      }
      at = end ?? endOfDigits(body, at + 1)
    } else at++
  }
  copyTo(body.length)
  return quoted.toString('utf8', 0, length)
}

/** Longer than any text that JavaScript writes for a double: 17 digits, a sign, and zeros or an exponent. */
const longestDouble = 32

const rounds = (number: string): boolean => String(Number(number)) !== number

/** The end of a number as RFC 8259 section 6 writes it. */
function endOfNumber(body: Uint8Array, start: number): number | undefined {
  const first = body[start] === minus ? start + 1 : start
  let end = endOfDigits(body, first)
  if (end === first || (body[first] === zero && end > first + 1)) return undefined
  if (body[end] === dot) {
    const fraction = endOfDigits(body, end + 1)
    if (fraction === end + 1) return undefined
    end = fraction
  }
  if (!isExponent(body[end])) return end
  const signed = body[end + 1] === plus || body[end + 1] === minus
  const power = end + (signed ? 2 : 1)
  const last = endOfDigits(body, power)
  return last === power ? undefined : last
}

/** Whether the number stands where a name must be: that is invalid JSON, and quotes would make it valid. */
function isKey(body: Uint8Array, end: number): boolean {
  let at = end
  while (isBlank(body[at])) at++
  return body[at] === colon
}
