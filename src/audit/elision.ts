import type { Data } from '../route.ts'
import { type Content, contentOf, Stream } from '../stream.ts'
import type { RequestEntry, ResponseEntry } from './entry.ts'
import { nameText, type Quote } from './render.ts'

/*
 * Two characters in a request become an HMAC of eighty in both of its lines. So that a body cannot fill the disk, data
 * that would make a long line is recorded by digest and length.
 */

/** Characters that data may take in a line. */
const mostText = 256 * 1024
/** The same where the caller is unknown. Anybody's data may take so much, however short it is. */
const mostStrangersText = 4096
/** Characters that each byte of a caller's body may take in a line: it leaves batches of short plaintexts whole. */
const mostTextOfSentByte = 4
/** The same of an answer: it leaves lists of names of seven letters whole. */
const mostTextOfAnsweredByte = 8
/** A longer body is not repeated for a request that is refused before its line is written. */
const mostRefusedBytes = 16 * 1024
/** Of a string's HMAC and its surroundings. */
const hashedText = 80
/** As long as an HMAC. */
const someHash: Quote = () => `"${'-'.repeat(hashedText - 4)}"`
/** A value takes at least two bytes of JSON, which bounds the line that a text of some length can make. */
const shortestValueBytes = 2

/** Stands for bytes that a line does not repeat: an auditor who has them looks for the HMAC of their digest. */
export const contentMembers = ({ sha256, length }: Content): Data => ({
  content_sha256: sha256,
  content_length: length,
})

/** The parameters of a request as its lines show them. */
export function shownInput({ request, caller, isRefused }: RequestEntry): Data {
  const { input, sent } = request
  const most = caller === undefined ? mostStrangersText : mostOf(sent.length, mostTextOfSentByte)
  const isLong = (isRefused && sent.length > mostRefusedBytes) || exceeds(input, most, sent.length)
  return isLong ? contentMembers(contentOf(Buffer.from(sent))) : input
}

/** `data` of an answer as its line shows it. */
export function shownData(data: Data, { reply: { body } }: ResponseEntry): Data {
  if (body instanceof Stream || !exceeds(data, mostOf(body.length, mostTextOfAnsweredByte), body.length)) return data
  return contentMembers(contentOf(Buffer.from(body)))
}

const mostOf = (bytes: number, mostTextOfByte: number): number =>
  Math.min(mostText, mostStrangersText + bytes * mostTextOfByte)

/** Whether a value's text in a line is longer than `most`. @param sentLength of its JSON */
function exceeds(value: unknown, most: number, sentLength: number): boolean {
  if ((sentLength / shortestValueBytes) * hashedText <= most) return false
  return remaining(value, most) < 0
}

/** The characters left of `room` after a value's text; stops once it is exceeded. */
function remaining(value: unknown, room: number): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return room - hashedText
  if (typeof value !== 'object' || value === null) return room - String(value).length - 1
  let left = room - 2
  if (Array.isArray(value)) {
    for (const element of value) {
      left = remaining(element, left)
      if (left < 0) return left
    }
    return left
  }
  for (const [name, member] of Object.entries(value)) {
    left = remaining(member, left - nameText(name, someHash).length - 2)
    if (left < 0) return left
  }
  return left
}
