import { type Cursor, within } from '../crypto/cursor.ts'
import { asn1, readOne, write } from '../crypto/der.ts'
import { writeOid } from '../crypto/oid.ts'
import { reading } from './malformed.ts'
import { isIa5, readText, writeText } from './text.ts'

/** Distinguished names (RFC 5280 section 4.1.2.4). Everywhere else a name is its DER, copied and compared as such. */

export interface AttributeValue {
  /** The attribute's dotted OID. */
  readonly type: string
  readonly value: string
}

export interface NameAttribute extends AttributeValue {
  /** The ASN.1 tag of the string. */
  readonly tag: number
}

/** The attributes that have names here, by their OIDs. */
export const attributeTypes = {
  commonName: '2.5.4.3',
  surname: '2.5.4.4',
  serialNumber: '2.5.4.5',
  country: '2.5.4.6',
  locality: '2.5.4.7',
  province: '2.5.4.8',
  streetAddress: '2.5.4.9',
  organization: '2.5.4.10',
  organizationalUnit: '2.5.4.11',
  title: '2.5.4.12',
  postalCode: '2.5.4.17',
  givenName: '2.5.4.42',
  initials: '2.5.4.43',
  generationQualifier: '2.5.4.44',
  dnQualifier: '2.5.4.46',
  pseudonym: '2.5.4.65',
  userId: '0.9.2342.19200300.100.1.1',
  domainComponent: '0.9.2342.19200300.100.1.25',
  emailAddress: '1.2.840.113549.1.9.1',
} as const

/** IA5String by definition (RFC 5280 appendix A.1, RFC 4519 section 2.4). */
const ia5Types: ReadonlySet<string> = new Set([attributeTypes.emailAddress, attributeTypes.domainComponent])

export const emptyName: Buffer = write(asn1.sequence)

/** The DER of a name. The values of one RDN are sorted by their DER (X.690 section 11.6). */
export const writeName = (rdns: readonly (readonly AttributeValue[])[]): Buffer =>
  write(asn1.sequence, ...rdns.map((rdn) => write(asn1.set, ...rdn.map(writeAttribute).sort(Buffer.compare))))

/** A name with the RDNs of both. */
export const joinNames = (first: Buffer, second: Buffer): Buffer =>
  write(asn1.sequence, readOne(first, asn1.sequence), readOne(second, asn1.sequence))

function writeAttribute({ type, value }: AttributeValue): Buffer {
  const ia5 = ia5Types.has(type) && isIa5(value)
  const text = ia5 ? write(asn1.ia5String, Buffer.from(value, 'latin1')) : writeText(value)
  return write(asn1.sequence, writeOid(type), text)
}

/** The attributes of a name by RDN, of any string type. @throws Malformed */
export const readName = (der: Buffer): readonly (readonly NameAttribute[])[] =>
  reading('name', () =>
    within(der, asn1.sequence, (rdns) => {
      const name: NameAttribute[][] = []
      while (rdns.more) name.push(readRdn(rdns.enter(asn1.set)))
      return name
    }),
  )

/** An RDN has at least one attribute. */
function readRdn(rdn: Cursor): NameAttribute[] {
  const attributes: NameAttribute[] = []
  do {
    const attribute = rdn.enter(asn1.sequence)
    const type = attribute.oid()
    const tag = attribute.tag ?? 0
    attributes.push({ type, value: readText(tag, attribute.contents()), tag })
    attribute.end()
  } while (rdn.more)
  return attributes
}

/** Every value of one attribute, in the order of the name. @throws Malformed */
export const valuesOf = (der: Buffer, type: string): readonly string[] =>
  readName(der)
    .flat()
    .filter((attribute) => attribute.type === type)
    .map(({ value }) => value)

/** The last common name, the most specific one; undefined if there is none. @throws Malformed */
export const commonNameOf = (der: Buffer): string | undefined => valuesOf(der, attributeTypes.commonName).at(-1)
