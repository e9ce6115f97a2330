import { Cursor } from '../crypto/cursor.ts'
import { asn1, write, writeNumber } from '../crypto/der.ts'
import { crlExtensionOids, type Extension, readExtensions, writeExtension } from './extension.ts'
import { crlReasons, isReason, readReasonCode, reasonCode } from './extensions/reasoncode.ts'
import { Malformed, reading } from './malformed.ts'
import { mostSerialBytes } from './serial.ts'
import { timeAt, writeTime } from './time.ts'

/**
 * Entries of revocation lists (RFC 5280 section 5.1.2.6): written one by one, and read in place, a million at a time.
 */
export interface CrlEntry {
  /** Magnitude without leading zeros; zero is one byte. */
  readonly serial: Buffer
  /** Milliseconds since 1970; rounded down to a second. */
  readonly revokedAt: number
  /** CRLReason; undefined and 0 write no extension (RFC 5280 section 5.3.1). */
  readonly reason?: number | undefined
  /** Extensions besides the reason. */
  readonly extensions?: readonly Extension[] | undefined
}

/** The SEQUENCE of one entry. */
export function writeCrlEntry({ serial, revokedAt, reason = 0, extensions = [] }: CrlEntry): Buffer {
  const list = [...(reason === 0 ? [] : [reasonCode(reason)]), ...extensions]
  const [number, time] = [writeNumber(serial), writeTime(revokedAt)]
  if (list.length === 0) return write(asn1.sequence, number, time)
  return write(asn1.sequence, number, time, write(asn1.sequence, ...list.map(writeExtension)))
}

/** An entry read strictly and in place. Its buffers are views, made on demand. */
export class ListedEntry {
  /** Milliseconds since 1970. */
  readonly revokedAt: number
  /** CRLReason, where the entry has one. */
  readonly reason: number | undefined
  readonly #bytes: Buffer
  readonly #at: number
  readonly #end: number
  readonly #serialAt: number
  readonly #serialEnd: number
  /** Where the extensions begin; `#end` without them. */
  readonly #extensionsAt: number

  /** Reads the next entry. @param list over `bytes` @throws NotDer, Malformed */
  constructor(bytes: Buffer, list: Cursor) {
    this.#bytes = bytes
    this.#at = list.at
    const entry = list.enter(asn1.sequence)
    this.#end = list.at
    const serialHeadAt = entry.at
    entry.skip(asn1.integer)
    this.#serialEnd = entry.at
    this.#serialAt = magnitudeAt(bytes, serialHeadAt + headBytes, entry.at)
    const isShort = entry.tag === asn1.utcTime
    const timeHeadAt = entry.at
    entry.skip(isShort ? asn1.utcTime : asn1.generalizedTime)
    this.revokedAt = timeAt(bytes, timeHeadAt + headBytes, entry.at, isShort)
    this.#extensionsAt = entry.at
    this.reason = entry.more ? reasonAt(bytes, entry) : undefined
    entry.end()
  }

  /** Magnitude without leading zeros. */
  get serial(): Buffer {
    return this.#bytes.subarray(this.#serialAt, this.#serialEnd)
  }

  /** The whole entry. */
  get der(): Buffer {
    return this.#bytes.subarray(this.#at, this.#end)
  }

  get hasExtensions(): boolean {
    return this.#extensionsAt < this.#end
  }

  /** All extensions, the reason included. */
  get extensions(): readonly Extension[] {
    return this.hasExtensions ? readList(new Cursor(this.#bytes, this.#extensionsAt, this.#end)) : []
  }
}

/** Tag and length of an element shorter than 128 bytes. */
const headBytes = 2

/**
 * The index at which the magnitude of an INTEGER begins.
 * @param from the index of its contents if their length takes one byte; longer ones are refused anyway
 * @throws Malformed
 */
function magnitudeAt(bytes: Buffer, from: number, to: number): number {
  const [high = 0, next = 0] = [bytes[from], bytes[from + 1]]
  if (from >= to) throw new Malformed('a serial number is empty')
  if (high > 0x7f) throw new Malformed('a serial number is negative')
  const start = high === 0 && to - from > 1 ? from + 1 : from
  if (start > from && next < 0x80) throw new Malformed('a serial number has a superfluous leading zero')
  if (to - start > mostSerialBytes) throw new Malformed(`a serial number has more than ${mostSerialBytes} bytes`)
  return start
}

/** The last bytes of every entry whose only extension is a reason, without the reason itself. */
const usualExtensions = write(asn1.sequence, writeExtension(reasonCode(crlReasons.keyCompromise))).subarray(0, -1)

function reasonAt(bytes: Buffer, entry: Cursor): number | undefined {
  const at = entry.at
  let same = 0
  while (same < usualExtensions.length && bytes[at + same] === usualExtensions[same]) same++
  if (same === usualExtensions.length && isReason(bytes[at + same])) {
    entry.skip(asn1.sequence)
    return bytes[at + same]
  }
  const extension = readList(entry).find(({ oid }) => oid === crlExtensionOids.reasonCode)
  return extension && readReasonCode(extension.value)
}

/** @throws NotDer, Malformed */
function readList(entry: Cursor): readonly Extension[] {
  const list = entry.enter(asn1.sequence)
  if (!list.more) throw new Malformed('the list of extensions is empty')
  return readExtensions(list)
}

/** Walks over adjacent entries. @throws Malformed at the first damaged one */
export function* entrySerials(entries: Buffer): Generator<ListedEntry, void, undefined> {
  const list = new Cursor(entries)
  while (list.more) yield reading('entry', () => new ListedEntry(entries, list))
}
