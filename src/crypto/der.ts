/**
 * The parts of DER (X.690) that keys and certificates need: elements with one-byte tags and definite, minimal lengths.
 * Reading returns views and writing fresh buffers, so that a caller with a private key can wipe every buffer that held
 * it.
 */
export interface Element {
  readonly tag: number
  readonly contents: Buffer
}

export const asn1 = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  enumerated: 0x0a,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  visibleString: 0x1a,
  universalString: 0x1c,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

/** The tag of a context-specific element: with a value in its usual encoding, or around other elements. */
export const context = (number: number): number => 0x80 + number
export const contextAround = (number: number): number => 0xa0 + number

/** The bytes are not DER or do not have the expected structure. Never quotes the bytes. */
export class NotDer extends Error {}

/** All elements in `bytes`; nothing may be left over. @throws NotDer */
export function readAll(bytes: Buffer): readonly Element[] {
  const elements: Element[] = []
  for (let rest = bytes; rest.length > 0; ) {
    const { element, length } = first(rest)
    elements.push(element)
    rest = rest.subarray(length)
  }
  return elements
}

/** The single element in `bytes`. @throws NotDer */
export function readOne(bytes: Buffer, tag: number): Buffer {
  const [element, ...more] = readAll(bytes)
  if (more.length > 0) throw new NotDer('more than one element')
  return expect(element, tag)
}

/** The first element in `bytes`, head included: PKCS#11 tokens pad private keys with zeros. @throws NotDer */
export const readFirst = (bytes: Buffer): Buffer => bytes.subarray(0, first(bytes).length)

/** @throws NotDer when the element is missing or has another tag */
export function expect(element: Element | undefined, tag: number): Buffer {
  if (element?.tag !== tag) throw new NotDer('an element of another kind was expected')
  return element.contents
}

/** The magnitude of a positive INTEGER, without leading zeros. @throws NotDer */
export function readNumber(element: Element | undefined): Buffer {
  const contents = expect(element, asn1.integer)
  const [high, next] = contents
  if (high === undefined || high > 0x7f) throw new NotDer('a positive number was expected')
  if (high !== 0) return contents
  if (next !== undefined && next < 0x80) throw new NotDer('a number is not in its shortest form')
  return contents.subarray(1)
}

/** One element around the given contents. Certificates are built from such calls, so no arrays are made in between. */
export function write(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  let length = 0
  for (const part of contents) length += part.length
  let at = headBytes(length)
  const der = Buffer.allocUnsafe(at + length)
  putHead(der, tag, length)
  for (const part of contents) {
    der.set(part, at)
    at += part.length
  }
  return der
}

/** Tag and length of an element whose contents are written elsewhere. @param length of the contents, below 4 GiB */
export function writeHead(tag: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(headBytes(length))
  putHead(head, tag, length)
  return head
}

const headBytes = (length: number): number =>
  length < 0x80 ? 2 : length < 0x100 ? 3 : length < 0x10000 ? 4 : length < 0x1000000 ? 5 : 6

function putHead(der: Buffer, tag: number, length: number): void {
  const lengthOctets = headBytes(length) - 2
  der[0] = tag
  der[1] = lengthOctets === 0 ? length : 0x80 + lengthOctets
  for (let octet = 0; octet < lengthOctets; octet++) der[1 + lengthOctets - octet] = length >>> (8 * octet)
}

/** An INTEGER from its magnitude; empty is zero. */
export const writeNumber = (magnitude: Uint8Array): Buffer =>
  (magnitude[0] ?? 0x80) > 0x7f ? write(asn1.integer, Buffer.alloc(1), magnitude) : write(asn1.integer, magnitude)

function first(bytes: Buffer): { element: Element; length: number } {
  const [tag, short] = bytes
  if (tag === undefined || short === undefined || (tag & 0x1f) === 0x1f) throw new NotDer('no element')
  const more = short > 0x80 ? short - 0x80 : 0
  if (short === 0x80 || more > 4 || bytes.length < 2 + more) throw new NotDer('a length has an unknown form')
  const size = more === 0 ? short : bytes.readUIntBE(2, more)
  const start = 2 + more
  if (more > 0 && (size < 0x80 || bytes[2] === 0)) throw new NotDer('a length is not in its shortest form')
  if (bytes.length < start + size) throw new NotDer('an element is cut short')
  return { element: { tag, contents: bytes.subarray(start, start + size) }, length: start + size }
}
