import { badRequest } from '../errors.ts'

/**
 * ECDSA signatures in their two forms: r‖s of twice the curve's coordinate length (IEEE P1363, JWS), as tokens give
 * them, and the DER SEQUENCE of two INTEGERs of X9.62 (`asn1` on the wire).
 */

/** r‖s → DER. Byte by byte into pooled memory, which costs a fifth of views and copies. */
export function toDer(signature: Uint8Array): Buffer {
  const half = signature.length / 2
  const [r, s] = [firstByte(signature, 0, half), firstByte(signature, half, signature.length)]
  const bodyBytes = 4 + integerBytes(signature, r, half) + integerBytes(signature, s, signature.length)
  // P-521 needs the long form: its SEQUENCE reaches 139 bytes, never 256.
  const head = bodyBytes < 0x80 ? 2 : 3
  const der = Buffer.allocUnsafe(head + bodyBytes)
  der[0] = 0x30
  der[1] = 0x81
  der[head - 1] = bodyBytes
  const end = writeInteger(der, head, signature, r, half)
  writeInteger(der, end, signature, s, signature.length)
  return der
}

/**
 * DER → r‖s of `coordinateBytes` each.
 * @throws ApiError 400 with the reference's text when the bytes are not such a SEQUENCE
 * @returns undefined when a number is negative or longer than the curve: well formed, but never a valid signature
 */
export function fromDer(der: Uint8Array, coordinateBytes: number): Buffer | undefined {
  const outer = element(der, 0, 0x30)
  if (outer.end !== der.length) throw badRequest('supplied signature contains extra data')
  const r = element(der, outer.start, 0x02)
  const s = element(der, r.end, 0x02)
  if (s.end !== der.length) throw invalid()
  const out = Buffer.alloc(2 * coordinateBytes)
  for (const [index, part] of [r, s].entries()) {
    const bytes = der.subarray(part.start, part.end)
    const size = bytes[0] === 0 ? bytes.length - 1 : bytes.length
    if (size > coordinateBytes || (bytes[0] ?? 0) > 0x7f) return undefined
    out.set(bytes.subarray(bytes.length - size), (index + 1) * coordinateBytes - size)
  }
  return out
}

/** The index of a number's first byte without its leading zeros; zero is one byte. */
function firstByte(bytes: Uint8Array, from: number, to: number): number {
  let at = from
  while (at < to - 1 && bytes[at] === 0) at += 1
  return at
}

/** A number whose first bit is set gets a leading zero: INTEGERs are signed. */
const integerBytes = (bytes: Uint8Array, from: number, to: number): number => to - from + ((bytes[from] ?? 0) >> 7)

/** @returns the index after it */
function writeInteger(der: Buffer, at: number, bytes: Uint8Array, from: number, to: number): number {
  const length = integerBytes(bytes, from, to)
  der[at] = 0x02
  der[at + 1] = length
  der[at + 2] = 0
  const end = at + 2 + length
  for (let index = from; index < to; index++) der[end - to + index] = bytes[index] ?? 0
  return end
}

const invalid = (): Error => badRequest('supplied signature is invalid')

/** Bounds of the contents of one element that must have `tag`, a minimal length and at least one byte. */
function element(der: Uint8Array, at: number, tag: number): { start: number; end: number } {
  const short = der[at + 1]
  if (der[at] !== tag || short === undefined) throw invalid()
  const long = short === 0x81
  const length = long ? (der[at + 2] ?? 0) : short
  if ((long && length < 0x80) || (!long && length >= 0x80) || length === 0) throw invalid()
  const start = at + (long ? 3 : 2)
  if (start + length > der.length) throw invalid()
  if (tag === 0x02 && length > 1 && der[start] === 0 && (der[start + 1] ?? 0) < 0x80) throw invalid()
  return { start, end: start + length }
}
