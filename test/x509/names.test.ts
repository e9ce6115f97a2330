import { X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { asn1, write } from '../../src/crypto/der.ts'
import { writeOid } from '../../src/crypto/oid.ts'
import { formatAddress, formatRange, parseAddress, parseRange } from '../../src/x509/extensions/address.ts'
import { Malformed } from '../../src/x509/malformed.ts'
import { type AttributeValue, attributeTypes, commonNameOf, readName, writeName } from '../../src/x509/name.ts'
import { certify, ecPair, useOpenssl } from './authority.ts'
import { rdns } from './generators.ts'

const openssl = useOpenssl()
const written = ({ type, value }: AttributeValue) => `${type}=${value}`

/** A name of one attribute whose string is of this type. */
const single = (tag: number, contents: Buffer): Buffer =>
  write(asn1.sequence, write(asn1.set, write(asn1.sequence, writeOid(attributeTypes.commonName), write(tag, contents))))

describe('distinguished names', () => {
  test('are read as they were written, RDN by RDN', () => {
    fc.assert(
      fc.property(rdns, (name) => {
        const read = readName(writeName(name))
        expect(read.map((rdn) => rdn.map(written).sort())).toEqual(name.map((rdn) => rdn.map(written).sort()))
      }),
    )
  })

  test('the order of the values of one RDN does not matter (DER)', () => {
    fc.assert(
      fc.property(rdns, (name) => {
        expect(writeName(name.map((rdn) => rdn.toReversed()))).toEqual(writeName(name))
      }),
    )
  })

  test.each([
    [attributeTypes.commonName, 'www.example.com', asn1.printableString],
    [attributeTypes.commonName, "A 0'()+,-./:=?", asn1.printableString],
    [attributeTypes.commonName, '*.example.com', asn1.utf8String],
    [attributeTypes.organization, 'Käse & Co', asn1.utf8String],
    [attributeTypes.country, 'DE', asn1.printableString],
    [attributeTypes.emailAddress, 'a@example.com', asn1.ia5String],
    [attributeTypes.domainComponent, 'example', asn1.ia5String],
    [attributeTypes.userId, 'a_b', asn1.utf8String],
  ])('%s=%s has its string type', (type, value, tag) => {
    expect(readName(writeName([[{ type, value }]]))).toEqual([[{ type, value, tag }]])
  })

  test.each([
    [asn1.utf8String, Buffer.from('Zoë 🔐'), 'Zoë 🔐'],
    [asn1.teletexString, Buffer.from('Zo\xeb', 'latin1'), 'Zoë'],
    [asn1.bmpString, Buffer.from('0041263a', 'hex'), 'A☺'],
    [asn1.universalString, Buffer.from('000000410001f510', 'hex'), 'A🔐'],
    [asn1.numericString, Buffer.from('01 2'), '01 2'],
    [asn1.visibleString, Buffer.from('a~b'), 'a~b'],
    [asn1.printableString, Buffer.from('*.example.com'), '*.example.com'],
  ])('a string of type %i is decoded', (tag, contents, text) => {
    expect(commonNameOf(single(tag, contents))).toBe(text)
  })

  test.each([
    ['a null byte', single(asn1.utf8String, Buffer.from('a\0b'))],
    ['a null byte in a BMPString', single(asn1.bmpString, Buffer.from('00410000', 'hex'))],
    ['no UTF-8', single(asn1.utf8String, Buffer.from('c328', 'hex'))],
    ['a surrogate in UTF-8', single(asn1.utf8String, Buffer.from('eda080', 'hex'))],
    ['no PrintableString', single(asn1.printableString, Buffer.from('a@b'))],
    ['no IA5String', single(asn1.ia5String, Buffer.from('\xe4', 'latin1'))],
    ['no NumericString', single(asn1.numericString, Buffer.from('1a'))],
    ['a lone surrogate', single(asn1.bmpString, Buffer.from('d83d', 'hex'))],
    ['half a character', single(asn1.bmpString, Buffer.from('00', 'hex'))],
    ['no character', single(asn1.universalString, Buffer.from('00110000', 'hex'))],
    ['a SET for a string', single(asn1.set, Buffer.alloc(0))],
    ['a number for a string', single(asn1.integer, Buffer.from([1]))],
    ['an empty RDN', write(asn1.sequence, write(asn1.set))],
    ['a SET in a SET', write(asn1.sequence, write(asn1.set, write(asn1.set)))],
    ['an attribute of three parts', single(asn1.utf8String, Buffer.from('a')).fill(0, 12)],
    ['trailing bytes', Buffer.concat([writeName([]), Buffer.alloc(1)])],
  ])('%s is refused', (_, der) => {
    expect(() => readName(der)).toThrow(Malformed)
  })

  test('openssl reads the same attributes in the same RDNs', () => {
    const subject = writeName([
      [{ type: attributeTypes.country, value: 'DE' }],
      [
        { type: attributeTypes.organizationalUnit, value: 'Zwei' },
        { type: attributeTypes.organizationalUnit, value: 'Eins' },
      ],
      [{ type: attributeTypes.commonName, value: 'Käse' }],
      [{ type: attributeTypes.userId, value: 'u1' }],
    ])
    const file = openssl.put('name.der', certify({ subject, key: ecPair() }))
    const shown = openssl.run([
      'x509',
      '-inform',
      'der',
      '-in',
      file,
      '-noout',
      '-subject',
      '-nameopt',
      'RFC2253,-esc_msb,utf8',
    ])
    expect(shown.trim()).toBe('subject=UID=u1,CN=Käse,OU=Zwei+OU=Eins,C=DE')
  })

  test('the last common name counts', () => {
    const type = attributeTypes.commonName
    expect(commonNameOf(writeName([[{ type, value: 'a' }], [{ type, value: 'b' }]]))).toBe('b')
    expect(commonNameOf(writeName([]))).toBeUndefined()
  })
})

describe('addresses', () => {
  test('are read as they were written, and node writes the same', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.uint8Array({ minLength: 16, maxLength: 16 })),
        (bytes) => {
          expect(parseAddress(formatAddress(bytes))).toEqual(Buffer.from(bytes))
        },
      ),
    )
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        expect(formatAddress(parseAddress(text) ?? Buffer.alloc(0))).toBe(canonical(text))
      }),
    )
  })

  /** An address as the URL standard writes it, except for mapped ones. */
  const canonical = (text: string): string => {
    const host = new URL(`http://[${text}]/`).hostname.slice(1, -1)
    const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(host) ?? []
    if (high === undefined || low === undefined) return host
    const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
    return `::ffff:${a >> 8}.${a & 0xff}.${b >> 8}.${b & 0xff}`
  }

  test.each([
    '010.1.1.1',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '0x7f.1',
    'fe80::1%eth0',
    ':::',
    '1::2::3',
    '',
    ' 1.2.3.4',
  ])('%j is not an address', (text) => expect(parseAddress(text)).toBeUndefined())

  test.each([
    ['10.0.0.0/8', '0a000000ff000000'],
    ['10.1.2.3/31', '0a010202fffffffe'],
    ['0.0.0.0/0', '0000000000000000'],
    ['1.2.3.4/32', '01020304ffffffff'],
    ['2001:db8::/33', `20010db8${'00'.repeat(12)}ffffffff80${'00'.repeat(11)}`],
  ])('the range %s', (text, bytes) => {
    const range = parseRange(text)
    expect(range?.toString('hex')).toBe(bytes)
    expect(parseRange(formatRange(range ?? Buffer.alloc(8)))).toEqual(range)
  })

  test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.0/08', '10.0.0.0/', '10.0.0/8', '::/129', '::/-1'])(
    'the range %j is none',
    (text) => {
      expect(parseRange(text)).toBeUndefined()
    },
  )

  test('a mask that is not a prefix is written as an address', () => {
    expect(formatRange(Buffer.from('0a000000ff00ff00', 'hex'))).toBe('10.0.0.0/255.0.255.0')
  })
})

test('node:crypto reads the subject of every name', () => {
  const key = ecPair()
  fc.assert(
    fc.property(rdns, (name) => {
      const certificate = new X509Certificate(certify({ subject: writeName(name), key }))
      expect((certificate.subject ?? '').length > 0).toBe(name.length > 0)
    }),
    { numRuns: 30 },
  )
})
