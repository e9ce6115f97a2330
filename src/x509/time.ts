import type { Cursor } from '../crypto/cursor.ts'
import { asn1 } from '../crypto/der.ts'
import { Malformed } from './malformed.ts'

/** UTCTime from 1950 to 2049, else GeneralizedTime; whole seconds (RFC 5280 section 4.1.2.5). */

const firstUtcTime = Date.UTC(1950, 0, 1)
const firstGeneralizedTime = Date.UTC(2050, 0, 1)
const firstTime = -62_167_219_200_000
const lastTime = 253_402_300_799_999

/** Whether a time is written as UTCTime. @param milliseconds since 1970 */
export const isUtcTime = (milliseconds: number): boolean =>
  milliseconds >= firstUtcTime && milliseconds < firstGeneralizedTime

/** @param milliseconds since 1970; a part of a second is dropped. Years 0 to 9999 */
export function writeTime(milliseconds: number): Buffer {
  if (!(milliseconds >= firstTime && milliseconds <= lastTime)) throw new RangeError('a time of no year of four digits')
  const date = new Date(milliseconds)
  const year = date.getUTCFullYear()
  const utc = isUtcTime(milliseconds)
  const der = Buffer.allocUnsafe(utc ? 15 : 17)
  der[0] = utc ? asn1.utcTime : asn1.generalizedTime
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

/** Two digits. @returns where they end */
function putPair(der: Buffer, at: number, number: number): number {
  der[at] = zero + Math.floor(number / 10)
  der[at + 1] = zero + (number % 10)
  return at + 2
}

/** Milliseconds since 1970 of the next element. Either type at any time: some CAs write GeneralizedTime always. @throws NotDer, Malformed */
export function readTime(cursor: Cursor): number {
  const short = cursor.tag === asn1.utcTime
  const digits = cursor.contents(short ? asn1.utcTime : asn1.generalizedTime)
  const start = short ? 0 : 2
  if (digits.length !== start + 13 || digits[start + 12] !== zulu) throw noTime()
  const inCentury = pairAt(digits, start)
  const century = short ? (inCentury < 50 ? 20 : 19) : pairAt(digits, 0)
  const [year, month, day] = [century * 100 + inCentury, pairAt(digits, start + 2), pairAt(digits, start + 4)]
  const [hour, minute, second] = [pairAt(digits, start + 6), pairAt(digits, start + 8), pairAt(digits, start + 10)]
  if (hour > 23 || minute > 59 || second > 59) throw noTime()
  return dayOf(year, month, day) + ((hour * 60 + minute) * 60 + second) * 1000
}

/** Two digits as a number. @throws Malformed */
function pairAt(digits: Buffer, at: number): number {
  const [tens, ones] = [(digits[at] ?? 0) - zero, (digits[at + 1] ?? 0) - zero]
  if (tens < 0 || tens > 9 || ones < 0 || ones > 9) throw noTime()
  return tens * 10 + ones
}

/** Date takes a day that does not exist for one that does. @throws Malformed */
function dayOf(year: number, month: number, day: number): number {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) throw noTime()
  return date.getTime()
}

const noTime = (): Malformed => new Malformed('a time that does not exist')
