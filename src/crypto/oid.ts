import { asn1, NotDer, write } from './der.ts'

/** Object identifiers: dotted, and as DER (X.690 section 8.19). */

const longestContents = 128
/** Everything that can be read can be written: four characters for an octet, as in `.127`. */
const longestText = 4 * longestContents
/** Filled by identifiers of our own tables long before a caller could fill it. */
const mostRemembered = 500

const dotted = /^(?:[01]\.(?:[0-9]|[1-3][0-9])|2\.(?:0|[1-9][0-9]*))(?:\.(?:0|[1-9][0-9]*))*$/

/** Whether a text is an object identifier in dotted form. */
export const isOid = (text: string): boolean => text.length <= longestText && dotted.test(text)

const remembered = new Map<string, Buffer>()

/** The whole element. @param text dotted; isOid must hold */
export function writeOid(text: string): Buffer {
  const known = remembered.get(text)
  if (known !== undefined) return known
  if (!isOid(text)) throw new Error('an object identifier in dotted form was expected')
  const [first = 0n, second = 0n, ...rest] = text.split('.').map(BigInt)
  const der = write(asn1.oid, Buffer.from([first * 40n + second, ...rest].flatMap(base128)))
  if (remembered.size < mostRemembered) remembered.set(text, der)
  return der
}

function base128(arc: bigint): number[] {
  const octets = [Number(arc & 0x7fn)]
  for (let rest = arc >> 7n; rest > 0n; rest >>= 7n) octets.unshift(Number(rest & 0x7fn) | 0x80)
  return octets
}

/** The dotted form of the contents between two offsets. @throws NotDer */
export function readOid(bytes: Uint8Array, at: number, end: number): string {
  if (end - at > longestContents) throw new NotDer('an object identifier is too long')
  let text = ''
  for (let start = at; start < end; ) {
    let next = start
    let arc = 0
    if (bytes[start] === 0x80) throw new NotDer('an object identifier is not in its shortest form')
    for (; next < end; next++) {
      const octet = bytes[next] ?? 0
      arc = arc * 128 + (octet & 0x7f)
      if (octet < 0x80) break
    }
    if (next === end) throw new NotDer('an object identifier is cut short')
    const exact = Number.isSafeInteger(arc) ? arc : bigArc(bytes.subarray(start, next + 1))
    text = text === '' ? firstTwo(exact) : `${text}.${exact}`
    start = next + 1
  }
  if (text === '') throw new NotDer('an object identifier is empty')
  return text
}

const bigArc = (octets: Uint8Array): bigint => octets.reduce((arc, octet) => (arc << 7n) + BigInt(octet & 0x7f), 0n)

/** The first two arcs share one number. */
function firstTwo(number: number | bigint): string {
  if (number < 40) return `0.${number}`
  return number < 80 ? `1.${Number(number) - 40}` : `2.${BigInt(number) - 80n}`
}
