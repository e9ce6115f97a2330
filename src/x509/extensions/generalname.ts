import { type Cursor, within } from '../../crypto/cursor.ts'
import { asn1, context, contextAround, readOne, write } from '../../crypto/der.ts'
import { readOid, writeOid } from '../../crypto/oid.ts'
import { Malformed } from '../malformed.ts'
import { readName } from '../name.ts'
import { readAscii, readText, writeUtf8 } from '../text.ts'

/** GeneralName (RFC 5280 section 4.2.1.6). */
export type GeneralName =
  /** A string is the text of a UTF8String; bytes are the DER of any other value. */
  | { readonly kind: 'other'; readonly oid: string; readonly value: string | Buffer }
  | { readonly kind: 'email' | 'dns' | 'uri'; readonly value: string }
  /** 4 or 16 bytes; in name constraints twice as many. */
  | { readonly kind: 'ip'; readonly value: Buffer }
  /** A name's DER. */
  | { readonly kind: 'directory'; readonly value: Buffer }
  /** A dotted OID. */
  | { readonly kind: 'registered'; readonly value: string }
  /** x400Address and ediPartyName: the whole element, uninterpreted. */
  | { readonly kind: 'unsupported'; readonly value: Buffer }

export type GeneralNameKind = GeneralName['kind']

const otherTag = contextAround(0)
const directoryTag = contextAround(4)
const ipTag = context(7)
const registeredTag = context(8)
const textTags = { email: context(1), dns: context(2), uri: context(6) } as const

/**
 * A name's DER, with the tag of its kind. What a kind holds is not checked: text of e-mail, DNS names and URIs must be
 * ASCII, an address 4 or 16 bytes.
 */
export function writeGeneralName(name: GeneralName): Buffer {
  switch (name.kind) {
    case 'other':
      return write(
        otherTag,
        writeOid(name.oid),
        write(contextAround(0), typeof name.value === 'string' ? writeUtf8(name.value) : name.value),
      )
    case 'ip':
      return write(ipTag, name.value)
    case 'directory':
      return write(directoryTag, name.value)
    case 'registered':
      return write(registeredTag, readOne(writeOid(name.value), asn1.oid))
    case 'unsupported':
      return name.value
    default:
      return write(textTags[name.kind], Buffer.from(name.value, 'latin1'))
  }
}

/** @param ipLengths allowed lengths of an address, in bytes @throws NotDer, Malformed */
export function readGeneralName(cursor: Cursor, ipLengths: readonly number[] = [4, 16]): GeneralName {
  switch (cursor.tag) {
    case otherTag:
      return readOther(cursor.enter(otherTag))
    case textTags.email:
      return { kind: 'email', value: textOf(cursor) }
    case textTags.dns:
      return { kind: 'dns', value: textOf(cursor) }
    case textTags.uri:
      return { kind: 'uri', value: textOf(cursor) }
    case ipTag: {
      const value = cursor.contents()
      if (!ipLengths.includes(value.length)) throw new Malformed('an IP address has the wrong length')
      return { kind: 'ip', value }
    }
    case directoryTag: {
      const value = within(cursor.element(), directoryTag, (inside) => inside.element(asn1.sequence))
      readName(value)
      return { kind: 'directory', value }
    }
    case registeredTag: {
      const value = cursor.contents()
      return { kind: 'registered', value: readOid(value, 0, value.length) }
    }
    case contextAround(3):
    case contextAround(5):
      return { kind: 'unsupported', value: cursor.element() }
    default:
      throw new Malformed('a name of an unknown kind')
  }
}

function textOf(cursor: Cursor): string {
  const text = readAscii(cursor.contents())
  if (text.includes('\0')) throw new Malformed('a name has a null byte')
  return text
}

function readOther(other: Cursor): GeneralName {
  const oid = other.oid()
  const wrapped = other.enter(contextAround(0))
  const utf8 = wrapped.tag === asn1.utf8String
  const value = utf8 ? readText(asn1.utf8String, wrapped.contents()) : wrapped.element()
  wrapped.end()
  other.end()
  return { kind: 'other', oid, value }
}

/** All remaining names. @throws NotDer; Malformed when there is no name */
export function readGeneralNames(cursor: Cursor, ipLengths?: readonly number[]): readonly GeneralName[] {
  const names: GeneralName[] = []
  do names.push(readGeneralName(cursor, ipLengths))
  while (cursor.more)
  return names
}
