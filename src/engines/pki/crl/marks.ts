/** A segment's record of an entry besides the entry itself. */
export interface Mark {
  /** The revocation's number among those of its CRL issuer and site. */
  readonly number: number
  /** When its certificate has expired, in whole seconds since 1970. */
  readonly notAfter: number
}

/** @param notAfter in milliseconds */
export const markedEnd = (notAfter: number): number => Math.ceil(notAfter / 1000)

const numberBytes = 6
const timeBytes = 5
const markBytes = numberBytes + timeBytes
const latest = 2 ** (8 * timeBytes) - 1

/** The marks of a segment's entries, in their order: eleven bytes each, both numbers big-endian. */
export function writeMarks(marks: readonly Mark[]): Buffer {
  const bytes = Buffer.alloc(marks.length * markBytes)
  for (const [index, { number, notAfter }] of marks.entries()) {
    bytes.writeUIntBE(number, index * markBytes, numberBytes)
    bytes.writeUIntBE(Math.min(Math.max(0, notAfter), latest), index * markBytes + numberBytes, timeBytes)
  }
  return bytes
}

/** How many marks there are. */
export const countMarks = (bytes: Buffer): number => bytes.length / markBytes

/** One mark. @param index from 0 @throws RangeError behind the last one */
export function markAt(bytes: Buffer, index: number): Mark {
  const at = index * markBytes
  return { number: bytes.readUIntBE(at, numberBytes), notAfter: bytes.readUIntBE(at + numberBytes, timeBytes) }
}

/** The index of the first entry whose number is at least this; the number of entries if there is none. */
export function firstFrom(bytes: Buffer, number: number): number {
  let [low, high] = [0, countMarks(bytes)]
  while (low < high) {
    const middle = (low + high) >> 1
    if (markAt(bytes, middle).number < number) low = middle + 1
    else high = middle
  }
  return low
}
