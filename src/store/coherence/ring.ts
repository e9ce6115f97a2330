import { writeSync } from 'node:fs'
import type { Version } from '../../workload.ts'

/**
 * The layout of a shared log. A head of 16 KiB: the log's id, the number of rings in use, and for each ring the number
 * of records that were ever appended to it; then the rings. Numbers of 32 bits are little-endian.
 */
export const headBytes = 16 * 1024
/** The log's id, in ASCII, and zeros. */
export const idBytes = 48
export const entryBytes = 16
/** A record is five numbers: its own, a place, the two halves of v, and all of them combined. */
export const recordBytes = 20
/** Records that a ring holds. */
export const ringRecords = 16_384
/** What a record is about, in the high bits of its place: the rest is the number of a leaf or a group. */
export const kinds = { leaf: 0, group: 0x8000_0000, polled: 0x4000_0000, base: 0x2000_0000 } as const
/** Of the number in a place. */
export const numberBits = 0x1fff_ffff
/** Where the number of rings in use lies. */
export const ringsAt = idBytes
export const mostRings = (headBytes - idBytes) / entryBytes - 1

/** Where the number of records of a ring lies; also the length of a head with this many rings. */
export const countAt = (ring: number): number => idBytes + entryBytes * (1 + ring)

/** The place of a record in the file. */
const recordAt = (ring: number, index: number): number => headBytes + (ring * ringRecords + index) * recordBytes

/** A number and its complement: halves of two entries do not fit. */
export function entryOf(count: number): Buffer {
  const entry = Buffer.allocUnsafe(entryBytes)
  const [high, low] = [Math.floor(count / 2 ** 32), count % 2 ** 32]
  for (const [word, value] of [high, low, ~high >>> 0, ~low >>> 0].entries()) entry.writeUInt32LE(value, 4 * word)
  return entry
}

/** The number in an entry, 0 where nothing was written; undefined while it is being written. */
export function numberIn(head: Buffer, at: number): number | undefined {
  const [high, low] = [head.readUInt32LE(at), head.readUInt32LE(at + 4)]
  const [notHigh, notLow] = [head.readUInt32LE(at + 8), head.readUInt32LE(at + 12)]
  if (high === 0 && low === 0 && notHigh === 0 && notLow === 0) return 0
  return ~high >>> 0 === notHigh && ~low >>> 0 === notLow ? high * 2 ** 32 + low : undefined
}

/** The numbers of all entries of a head; undefined while one of them is being written. */
export function numbersIn(head: Buffer): number[] | undefined {
  const numbers: number[] = []
  for (let at = ringsAt; at < head.length; at += entryBytes) {
    const number = numberIn(head, at)
    if (number === undefined) return undefined
    numbers.push(number)
  }
  return numbers
}

/** Where records lie in the file: in one piece, or in two where the ring begins anew. */
export function pieces(ring: number, from: number, count: number): { at: number; offset: number; length: number }[] {
  const start = from % ringRecords
  const first = Math.min(count, ringRecords - start)
  const all = [
    { at: recordAt(ring, start), offset: 0, length: first * recordBytes },
    { at: recordAt(ring, 0), offset: first * recordBytes, length: (count - first) * recordBytes },
  ]
  return all.filter(({ length }) => length > 0)
}

/** The bytes of records. @param from the number of the first */
export function encode(from: number, records: readonly Version[]): Buffer {
  const bytes = Buffer.allocUnsafe(records.length * recordBytes)
  for (const [index, [place, v]] of records.entries()) {
    const words = [(from + index) % 2 ** 32, place, Math.floor(v / 2 ** 32), v % 2 ** 32]
    for (const [word, value] of [...words, combined(words)].entries())
      bytes.writeUInt32LE(value, index * recordBytes + 4 * word)
  }
  return bytes
}

/** The records in these bytes; undefined if they are not those that begin with the number `from`. */
export function decode(from: number, bytes: Buffer): Version[] | undefined {
  const records: Version[] = []
  for (let at = 0; at < bytes.length; at += recordBytes) {
    const words = [0, 4, 8, 12].map((word) => bytes.readUInt32LE(at + word))
    const [number = 0, place = 0, high = 0, low = 0] = words
    const expected = (from + records.length) % 2 ** 32
    if (number !== expected || combined(words) !== bytes.readUInt32LE(at + 16)) return undefined
    records.push([place, high * 2 ** 32 + low])
  }
  return records
}

/** @throws Error when not all bytes can be written: a device that is nearly full takes a part, which is no error */
export function writeAll(descriptor: number, bytes: Buffer, at: number): void {
  const written = writeSync(descriptor, bytes, 0, bytes.length, at)
  if (written < bytes.length) throw new Error(`no room: ${written} of ${bytes.length} bytes were written`)
}

/** Differs for the halves of two records, and for memory that was never written. */
const combined = (words: readonly number[]): number =>
  words.reduce((sum, word) => (Math.imul(sum ^ word, 0x9e3779b1) >>> 0) + 1, 1) >>> 0
