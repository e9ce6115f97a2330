import type { Cursor } from '../crypto/cursor.ts'
import { asn1 } from '../crypto/der.ts'
import { Malformed } from './malformed.ts'

/** UTCTime from 1950 to 2049, else GeneralizedTime; whole seconds (RFC 5280 section 4.1.2.5). */

/** The first moment that a certificate can name. */
export const firstUtcTime = Date.UTC(1950, 0, 1)
const firstGeneralizedTime = Date.UTC(2050, 0, 1)
const firstTime = -62_167_219_200_000
const lastTime = 253_402_300_799_999

/** Whether a time is written as UTCTime. @param milliseconds since 1970 */
export const isUtcTime = (milliseconds: number): boolean =>
  milliseconds >= firstUtcTime && milliseconds < firstGeneralizedTime

/** @param milliseconds since 1970, rounded down to a second. Years 0 to 9999 */
export const writeTime = (milliseconds: number): Buffer =>
  isUtcTime(milliseconds) ? writeDigits(milliseconds, asn1.utcTime) : writeGeneralizedTime(milliseconds)

/** As writeTime, for fields that are GeneralizedTime in every year: OCSP (RFC 6960 section 4.2.2.1). */
export function writeGeneralizedTime(milliseconds: number): Buffer {
  if (!(milliseconds >= firstTime && milliseconds <= lastTime))
    throw new RangeError('the year of a time has four digits')
  return writeDigits(milliseconds, asn1.generalizedTime)
}

function writeDigits(milliseconds: number, tag: number): Buffer {
  const date = new Date(milliseconds)
  const year = date.getUTCFullYear()
  const utc = tag === asn1.utcTime
  const der = Buffer.allocUnsafe(utc ? 15 : 17)
  der[0] = tag
  der[1] = der.length - 2
  let at = utc ? 2 : putPair(der, 2, Math.floor(year / 100))
  at = putPair(der, at, year % 100)
  at = putPair(der, at, date.getUTCMonth() + 1)
  at = putPair(der, at, date.getUTCDate())
  at = putPair(der, at, date.getUTCHours())
  at = putPair(der, at, date.getUTCMinutes())
  at = putPair(der, at, date.getUTCSeconds())
  der[at] = zulu
  return der
}

const zulu = 0x5a
const zero = 0x30

/** Writes two digits. @returns the index after them */
function putPair(der: Buffer, at: number, number: number): number {
  der[at] = zero + Math.floor(number / 10)
  der[at + 1] = zero + (number % 10)
  return at + 2
}

/**
 * Reads the next element as milliseconds since 1970. Either type in any year: some CAs always write GeneralizedTime.
 * @throws NotDer, Malformed
 */
export function readTime(cursor: Cursor): number {
  const short = cursor.tag === asn1.utcTime
  const digits = cursor.contents(short ? asn1.utcTime : asn1.generalizedTime)
  return timeAt(digits, 0, digits.length, short)
}

/** Reads a time in place, because a list may have a million. @param short whether it is a UTCTime @throws Malformed */
export function timeAt(bytes: Buffer, from: number, to: number, short: boolean): number {
  const start = short ? from : from + 2
  if (to !== start + 13 || bytes[start + 12] !== zulu) throw noTime()
  const inCentury = pairAt(bytes, start)
  const century = short ? (inCentury < 50 ? 20 : 19) : pairAt(bytes, from)
  const [month, day] = [pairAt(bytes, start + 2), pairAt(bytes, start + 4)]
  const [hour, minute, second] = [pairAt(bytes, start + 6), pairAt(bytes, start + 8), pairAt(bytes, start + 10)]
  if (hour > 23 || minute > 59 || second > 59) throw noTime()
  return dayOf(century * 100 + inCentury, month, day) + ((hour * 60 + minute) * 60 + second) * 1000
}

/** Two digits as a number. @throws Malformed */
function pairAt(digits: Buffer, at: number): number {
  const [tens, ones] = [(digits[at] ?? 0) - zero, (digits[at + 1] ?? 0) - zero]
  if (tens < 0 || tens > 9 || ones < 0 || ones > 9) throw noTime()
  return tens * 10 + ones
}

const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
/** The calendar repeats after this many years. */
const cycleYears = 400
const cycleMilliseconds = 146_097 * 86_400_000

/**
 * Checks days and years itself: Date turns a day that does not exist into another, and a year before 100 into a later
 * one.
 * @throws Malformed
 */
function dayOf(year: number, month: number, day: number): number {
  const inCycle = year % cycleYears
  const isLeap = inCycle % 4 === 0 && (inCycle % 100 !== 0 || inCycle === 0)
  const last = month === 2 && !isLeap ? 28 : (longestMonths[month - 1] ?? 0)
  if (day < 1 || day > last) throw noTime()
  return Date.UTC(2000 + inCycle, month - 1, day) + ((year - inCycle - 2000) / cycleYears) * cycleMilliseconds
}

const noTime = (): Malformed => new Malformed('invalid time')
