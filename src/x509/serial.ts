import { randomFillSync } from 'node:crypto'

/** Serial numbers in the API's form: hexadecimal bytes of the magnitude (RFC 5280 section 4.1.2.2). */

/** The most octets of a serial number (RFC 5280 section 4.1.2.2). */
export const mostSerialBytes = 20
const written = /^[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2})*$/

/** Random bytes for the next serial numbers: a call for many costs hardly more than a call for one. */
const drawn = Buffer.alloc(100 * mostSerialBytes)
let used = drawn.length

/** A new serial number of 159 random bits: its magnitude without leading zeros. */
export function newSerial(): Buffer {
  if (used === drawn.length) {
    randomFillSync(drawn)
    used = 0
  }
  const bytes = Buffer.from(drawn.subarray(used, used + mostSerialBytes))
  used += mostSerialBytes
  bytes[0] = (bytes[0] ?? 0) & 0x7f
  const first = bytes.findIndex((byte) => byte !== 0)
  return first < 0 ? newSerial() : bytes.subarray(first)
}

/** `1f:02:…`, the form in answers. @param serial magnitude */
export function withColons(serial: Uint8Array): string {
  let text = ''
  for (const octet of serial) text += text === '' ? octets[octet] : `:${octets[octet]}`
  return text
}

const octets = Array.from({ length: 256 }, (_, octet) => octet.toString(16).padStart(2, '0'))

/**
 * Reads this form, or one with hyphens, in either case. Returns the magnitude, without leading zeros; undefined for any
 * other text.
 */
export function parseSerial(text: string): Buffer | undefined {
  if (text.length > 3 * (mostSerialBytes + 1) || !written.test(text)) return undefined
  const bytes = Buffer.from(text.replace(/[:-]/g, ''), 'hex')
  const first = bytes.findIndex((byte) => byte !== 0)
  return first < 0 ? Buffer.alloc(1) : bytes.subarray(first)
}
