import { isAscii, isUtf8 } from 'node:buffer'
import { asn1, write } from '../crypto/der.ts'
import { Malformed } from './malformed.ts'

/** The string types of names (RFC 5280 appendix A.1, X.680 section 41). */

/**
 * An asterisk and an ampersand are accepted on reading, as in the reference: wildcard certificates carry them in a
 * PrintableString.
 */
const printable = /^[A-Za-z0-9 '()+,\-./:=?*&]*$/
const strictlyPrintable = /^[A-Za-z0-9 '()+,\-./:=?]*$/

/** Whether a text may be a PrintableString. */
export const isPrintable = (text: string): boolean => strictlyPrintable.test(text)

/** The text of a string of this type; null bytes are refused. @throws Malformed also for a type that is not a string */
export function readText(tag: number | undefined, contents: Buffer): string {
  const text = decode(tag, contents)
  if (text.includes('\0')) throw new Malformed('a text has a null byte')
  return text
}

function decode(tag: number | undefined, contents: Buffer): string {
  switch (tag) {
    case asn1.utf8String:
      if (!isUtf8(contents)) throw new Malformed('a text is not UTF-8')
      return contents.toString('utf8')
    case asn1.printableString:
      return matching(contents, printable, 'PrintableString')
    case asn1.ia5String:
      return readAscii(contents)
    case asn1.numericString:
      return matching(contents, /^[0-9 ]*$/, 'NumericString')
    case asn1.visibleString:
      return matching(contents, /^[ -~]*$/, 'VisibleString')
    case asn1.teletexString:
      // In practice T.61 strings hold ISO 8859-1.
      return contents.toString('latin1')
    case asn1.bmpString:
      return decodeWide(contents, 2)
    case asn1.universalString:
      return decodeWide(contents, 4)
    default:
      throw new Malformed('a text has an unknown string type')
  }
}

function matching(contents: Buffer, allowed: RegExp, type: string): string {
  const text = contents.toString('latin1')
  if (!allowed.test(text)) throw new Malformed(`a ${type} has a character that is not allowed`)
  return text
}

/** An IA5String. @throws Malformed */
export function readAscii(contents: Buffer): string {
  if (!isAscii(contents)) throw new Malformed('an IA5String has a character that is not allowed')
  return contents.toString('latin1')
}

/** UCS-2 and UCS-4, without surrogates. */
function decodeWide(contents: Buffer, width: 2 | 4): string {
  if (contents.length % width !== 0) throw new Malformed('a text is cut short')
  let text = ''
  for (let at = 0; at < contents.length; at += width) {
    const point = contents.readUIntBE(at, width)
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) throw new Malformed('a text has an invalid character')
    text += String.fromCodePoint(point)
  }
  return text
}

/** PrintableString where every character allows it, else UTF8String. */
export const writeText = (text: string): Buffer =>
  isPrintable(text) ? write(asn1.printableString, Buffer.from(text, 'latin1')) : writeUtf8(text)

export const writeUtf8 = (text: string): Buffer => write(asn1.utf8String, Buffer.from(text, 'utf8'))

const ascii = /^[\0-\x7f]*$/

/** Whether a text may be an IA5String. */
export const isIa5 = (text: string): boolean => ascii.test(text)
