import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Cursor, within } from '../../src/crypto/cursor.ts'
import { asn1, NotDer, readAll, write } from '../../src/crypto/der.ts'
import { isOid, readOid, writeOid } from '../../src/crypto/oid.ts'
import { Malformed } from '../../src/x509/malformed.ts'
import { newSerial, parseSerial, withColons } from '../../src/x509/serial.ts'
import { readTime, writeTime } from '../../src/x509/time.ts'
import { oid, serial, time } from './generators.ts'

const hex = (text: string) => Buffer.from(text, 'hex')

describe('the cursor and readAll are equally strict', () => {
  /** Tags and contents at the top level, or undefined. */
  const walk = (bytes: Buffer) => {
    const cursor = new Cursor(bytes)
    const found: { tag: number | undefined; contents: Buffer }[] = []
    while (cursor.more) found.push({ tag: cursor.tag, contents: cursor.contents() })
    return found
  }
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read()
    } catch (error) {
      expect(error).toBeInstanceOf(NotDer)
      return undefined
    }
  }

  test('on any bytes', () => {
    const pieces = fc.array(
      fc.oneof(
        fc.uint8Array({ maxLength: 4 }),
        fc
          .tuple(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 300 }))
          .map(([tag, inner]) => write(tag, inner)),
        fc.constantFrom(hex('3080'), hex('308100'), hex('30820001ff'), hex('3084ffffffff'), hex('1f8101')),
      ),
      { maxLength: 5 },
    )
    fc.assert(
      fc.property(pieces, (parts) => {
        const bytes = Buffer.concat(parts)
        expect(attempt(() => walk(bytes))).toEqual(attempt(() => readAll(bytes)))
      }),
      { numRuns: 500 },
    )
  })

  test.each([0, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000, 0x1000000])('contents of %i bytes', (length) => {
    const contents = Buffer.alloc(length, 7)
    const der = write(asn1.octetString, contents.subarray(0, 1), contents.subarray(1))
    const inside = within(write(asn1.sequence, der), asn1.sequence, (cursor) => cursor.contents(asn1.octetString))
    const [element, ...more] = readAll(der)
    // toEqual would compare sixteen million numbers one by one.
    expect([inside.equals(contents), element?.contents.equals(contents), more]).toEqual([true, true, []])
  })

  test('an inner element cannot reach beyond the outer one', () => {
    expect(() => within(hex('300404030102'), asn1.sequence, (inside) => inside.contents())).toThrow('cut short')
  })

  test.each(['0200', '02020001', '0202ff80', '020180'])('the integer %s is no count', (der) => {
    expect(() => new Cursor(hex(der)).count()).toThrow(NotDer)
  })
})

describe('object identifiers', () => {
  test('are read as they were written', () => {
    fc.assert(
      fc.property(oid, (dotted) => {
        expect(isOid(dotted)).toBe(true)
        expect(new Cursor(writeOid(dotted)).oid()).toBe(dotted)
      }),
    )
  })

  test.each([
    ['2.5.29.17', '0603551d11'],
    ['1.2.840.113549.1.9.14', '06092a864886f70d01090e'],
    ['2.999.3', '0603883703'],
  ])('%s is %s', (dotted, der) => expect(writeOid(dotted).toString('hex')).toBe(der))

  test('that can be read can be written, however long its text is', () => {
    for (const contents of [Buffer.alloc(128, 0x7f), Buffer.concat([Buffer.alloc(127, 0xff), Buffer.from([0x7f])])]) {
      expect(writeOid(readOid(contents, 0, 128)).subarray(3)).toEqual(contents)
    }
  })

  test.each(['', '1', '3.1', '1.40', '01.2', '1.2.', '1.2.03', '1.-2', '1.2 ', '1.2.3\n', `1.2${'.1'.repeat(255)}`])(
    '%j is none',
    (text) => {
      expect(isOid(text)).toBe(false)
      expect(() => writeOid(text)).toThrow('dotted form')
    },
  )

  test.each(['', '80', '8001', '2a80', '2a8001', '2aff'])('the contents %j are none', (contents) => {
    expect(() => readOid(hex(contents), 0, contents.length / 2)).toThrow(NotDer)
  })

  test('longer ones than anybody uses are refused', () => {
    expect(() => readOid(Buffer.alloc(129, 1), 0, 129)).toThrow('too long')
  })
})

describe('times', () => {
  test('are read as they were written, UTCTime from 1950 to 2049', () => {
    fc.assert(
      fc.property(time, (milliseconds) => {
        const der = writeTime(milliseconds)
        const year = new Date(milliseconds).getUTCFullYear()
        expect(der[0]).toBe(year >= 1950 && year < 2050 ? asn1.utcTime : asn1.generalizedTime)
        expect(readTime(new Cursor(der))).toBe(milliseconds)
      }),
    )
  })

  test('a part of a second is dropped', () => {
    expect(readTime(new Cursor(writeTime(Date.UTC(2026, 0, 1) + 999)))).toBe(Date.UTC(2026, 0, 1))
  })

  test.each([Number.NaN, -62_167_219_200_001, 253_402_300_800_000])('%f has no such year', (milliseconds) => {
    expect(() => writeTime(milliseconds)).toThrow(RangeError)
  })

  test.each([
    '260230000000Z',
    '261301000000Z',
    '260001000000Z',
    '260100000000Z',
    '260101240000Z',
    '260101006000Z',
    '260101000060Z',
    '2601010000Z',
    '260101000000+0000',
    '26010100000aZ',
  ])('the UTCTime %s is invalid', (text) => {
    expect(() => readTime(new Cursor(write(asn1.utcTime, Buffer.from(text))))).toThrow(Malformed)
  })

  test.each(['20260101000000.5Z', '20260101000000', '20260229000000Z'])('the GeneralizedTime %s is none', (text) => {
    expect(() => readTime(new Cursor(write(asn1.generalizedTime, Buffer.from(text))))).toThrow(Malformed)
  })

  test('the 29th of February of a leap year', () => {
    expect(readTime(new Cursor(write(asn1.utcTime, Buffer.from('240229120000Z'))))).toBe(Date.UTC(2024, 1, 29, 12))
  })
})

describe('serial numbers', () => {
  test('either form is read again, in any case', () => {
    fc.assert(
      fc.property(serial, (magnitude) => {
        expect(parseSerial(withColons(magnitude))).toEqual(magnitude)
        expect(parseSerial(withColons(magnitude).replaceAll(':', '-').toUpperCase())).toEqual(magnitude)
      }),
    )
  })

  test('colons and hyphens', () => {
    expect(withColons(hex('01a2ff'))).toBe('01:a2:ff')
    expect(parseSerial('00:01:A2-ff')).toEqual(hex('01a2ff'))
  })

  test.each([
    '',
    '1',
    '01a2',
    '01:',
    ':01',
    '01::02',
    '1:2',
    '01:g2',
    '01 02',
    '01:02\n',
    '01:'.repeat(30).concat('01'),
  ])('%j is not a serial number', (text) => expect(parseSerial(text)).toBeUndefined())

  test('new ones have 159 random bits: positive, at most 20 bytes, never twice', () => {
    const serials = Array.from({ length: 2000 }, newSerial)
    expect(new Set(serials.map(withColons)).size).toBe(2000)
    for (const one of serials) {
      expect(one[0]).toBeGreaterThan(0)
      expect(one.length < 20 || (one[0] ?? 0) < 0x80).toBe(true)
    }
    for (let bit = 0; bit < 159; bit++) {
      const set = serials.filter((one) => ((one.at(-1 - (bit >> 3)) ?? 0) & (1 << (bit & 7))) !== 0).length
      expect(Math.abs(set - 1000)).toBeLessThan(300)
    }
  })
})
