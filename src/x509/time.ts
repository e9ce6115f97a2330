import type { Cursor } from '../crypto/cursor.ts'
import { asn1, write } from '../crypto/der.ts'
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
  const digits = `${new Date(milliseconds).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`
  return isUtcTime(milliseconds)
    ? write(asn1.utcTime, Buffer.from(digits.slice(2), 'latin1'))
    : write(asn1.generalizedTime, Buffer.from(digits, 'latin1'))
}

/** Milliseconds since 1970 of the next element. Either type at any time: some CAs write GeneralizedTime always. @throws NotDer, Malformed */
export function readTime(cursor: Cursor): number {
  const short = cursor.tag === asn1.utcTime
  const digits = cursor.contents(short ? asn1.utcTime : asn1.generalizedTime)
  const yearDigits = short ? 2 : 4
  if (digits.length !== yearDigits + 11 || digits[digits.length - 1] !== 0x5a) throw noTime()
  const number = (at: number, length = 2): number => {
    let value = 0
    for (let index = at; index < at + length; index++) {
      const digit = (digits[index] ?? 0) - 0x30
      if (digit < 0 || digit > 9) throw noTime()
      value = value * 10 + digit
    }
    return value
  }
  const year = short ? 1900 + number(0) + (number(0) < 50 ? 100 : 0) : number(0, 4)
  const [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map((at) => number(yearDigits + at))
  return timeOf(year, month, day, hour, minute, second)
}

function timeOf(year: number, month = 0, day = 0, hour = 0, minute = 0, second = 0): number {
  const time = new Date(0)
  time.setUTCFullYear(year, month - 1, day)
  const exists = time.getUTCMonth() === month - 1 && time.getUTCDate() === day && month > 0
  if (!exists || hour > 23 || minute > 59 || second > 59) throw noTime()
  return time.getTime() + ((hour * 60 + minute) * 60 + second) * 1000
}

const noTime = (): Malformed => new Malformed('a time that does not exist')
