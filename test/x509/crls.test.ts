import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { within } from '../../src/crypto/cursor.ts'
import { asn1, contextAround, write, writeNumber } from '../../src/crypto/der.ts'
import { finishCrl, writeCrlFrame } from '../../src/x509/crl.ts'
import { type CrlEntry, entrySerials, writeCrlEntry } from '../../src/x509/crlentry.ts'
import { readCrl, verifyCrl } from '../../src/x509/crlreader.ts'
import { crlNumber, deltaCrlIndicator, greatestCrlNumber } from '../../src/x509/extensions/crlnumber.ts'
import {
  issuingDistributionPoint,
  readIssuingDistributionPoint,
} from '../../src/x509/extensions/issuingdistributionpoint.ts'
import { crlReasons, reasonCode } from '../../src/x509/extensions/reasoncode.ts'
import { Malformed } from '../../src/x509/malformed.ts'
import { readTime, writeTime } from '../../src/x509/time.ts'
import { ecPair, identifierOf, named } from './authority.ts'
import { readCrlNumber } from './crlnumber.ts'
import { extensions, name, serial, time } from './generators.ts'
import { makeCrl } from './lists.ts'

const key = ecPair()
const issuer = named('a list')

const reason = fc.option(fc.constantFrom(...Object.values(crlReasons).filter((number) => number !== 0)), {
  nil: undefined,
})
const entry: fc.Arbitrary<CrlEntry> = fc.record({ serial, revokedAt: time, reason, extensions })

/** An entry as it is read. */
const shown = ({ serial, revokedAt, reason, extensions = [] }: CrlEntry) => ({
  serial,
  revokedAt,
  reason,
  extensions: [...(reason === undefined ? [] : [reasonCode(reason)]), ...extensions],
})
const readEntries = (entries: Buffer) =>
  [...entrySerials(entries)].map(({ serial, revokedAt, reason, extensions }) => ({
    serial,
    revokedAt,
    reason,
    extensions,
  }))

describe('entries', () => {
  test('are read as they were written, side by side', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 20 }), (entries) => {
        const written = entries.map(writeCrlEntry)
        const all = Buffer.concat(written)
        expect(readEntries(all)).toEqual(entries.map(shown))
        expect([...entrySerials(all)].map(({ der }) => der)).toEqual(written)
      }),
    )
  })

  test('without a reason, or with unspecified, have no extensions (RFC 5280 section 5.3.1)', () => {
    const bare = writeCrlEntry({ serial: Buffer.from([5]), revokedAt: 0 })
    expect(bare.toString('hex')).toBe(`3012020105170d${Buffer.from('700101000000Z').toString('hex')}`)
    expect(writeCrlEntry({ serial: Buffer.from([5]), revokedAt: 999, reason: 0 })).toEqual(bare)
  })

  test.each([
    ['an empty serial number', [write(asn1.integer), writeTime(0)]],
    ['a negative serial number', [write(asn1.integer, Buffer.from([0x80])), writeTime(0)]],
    ['a serial number that is longer than it need be', [write(asn1.integer, Buffer.from([0, 1])), writeTime(0)]],
    ['a serial number of 21 bytes', [writeNumber(Buffer.alloc(21, 1)), writeTime(0)]],
    ['a serial number of 200 bytes', [writeNumber(Buffer.alloc(200, 1)), writeTime(0)]],
    ['no serial number', [writeTime(0)]],
    ['no time', [writeNumber(Buffer.from([1]))]],
    ['a day that does not exist', [writeNumber(Buffer.from([1])), write(asn1.utcTime, Buffer.from('260229000000Z'))]],
    ['a time without zone', [writeNumber(Buffer.from([1])), write(asn1.utcTime, Buffer.from('2602280000000'))]],
    ['an empty list of extensions', [writeNumber(Buffer.from([1])), writeTime(0), write(asn1.sequence)]],
    ['more than it may have', [writeNumber(Buffer.from([1])), writeTime(0), write(asn1.null)]],
    ['the reason 7', [writeNumber(Buffer.from([1])), writeTime(0), Buffer.from('300c300a0603551d1504030a0107', 'hex')]],
  ])('with %s are refused', (_, parts) => {
    const damaged = write(asn1.sequence, ...parts)
    expect(() => [...entrySerials(damaged)]).toThrow(Malformed)
    const good = writeCrlEntry({ serial: Buffer.from([1]), revokedAt: 0 })
    expect(() => [...entrySerials(Buffer.concat([good, damaged, good]))]).toThrow(Malformed)
  })

  test('that are cut short anywhere are refused', () => {
    const entry = writeCrlEntry({ serial: Buffer.alloc(20, 0x7f), revokedAt: 0, reason: crlReasons.superseded })
    for (let length = 1; length < entry.length; length++) {
      expect(() => [...entrySerials(entry.subarray(0, length))]).toThrow(Malformed)
    }
  })
})

describe('a list', () => {
  test('is read as it was written, and verifies under its key alone', () => {
    const other = ecPair()
    fc.assert(
      fc.property(
        fc.array(entry, { maxLength: 8 }),
        name,
        time,
        time,
        extensions,
        (entries, issuer, from, to, list) => {
          const der = makeCrl({ issuer, key, entries, thisUpdate: from, nextUpdate: to, extensions: list })
          const crl = readCrl(der)
          expect(crl).toMatchObject({
            issuer,
            thisUpdate: from,
            nextUpdate: to,
            extensions: list,
            count: entries.length,
          })
          expect(readEntries(crl.entries)).toEqual(entries.map(shown))
          expect(crl.algorithm).toEqual(identifierOf('ECDSAWithSHA256'))
          expect(verifyCrl(crl, key.publicKey)).toBe(true)
          expect(verifyCrl(crl, other.publicKey)).toBe(false)
        },
      ),
      { numRuns: 50 },
    )
  })

  test.each([0, 1, 127, 128, 255, 256, 65_400, 65_535, 65_536, 16_777_215, 16_777_216, 39_000_000])(
    'is whole around %i bytes of entries',
    (entriesBytes) => {
      const algorithm = identifierOf('Ed25519')
      const frame = { issuer, algorithm, thisUpdate: 0, nextUpdate: 1000, extensions: [crlNumber(1)], entriesBytes }
      const { head, tail, bytes } = finishCrl(frame, writeCrlFrame(frame), Buffer.alloc(64))
      const der = Buffer.concat([head, Buffer.alloc(entriesBytes), tail])
      expect(der.length).toBe(bytes)
      within(der, asn1.sequence, (outside) => {
        const tbs = outside.enter(asn1.sequence)
        tbs.skip(asn1.integer)
        expect([tbs.element(), tbs.element()]).toEqual([algorithm, issuer])
        expect([readTime(tbs), readTime(tbs)]).toEqual([0, 1000])
        if (entriesBytes > 0) expect(tbs.contents(asn1.sequence).length).toBe(entriesBytes)
        tbs.skip(contextAround(0))
        tbs.end()
        expect(outside.element()).toEqual(algorithm)
        expect(outside.bytes()).toEqual(Buffer.alloc(64))
      })
    },
  )

  test('of v1 is read, and has no extensions in its entries', () => {
    const algorithm = identifierOf('ECDSAWithSHA256')
    const signed = (...entries: Buffer[]) => {
      const tbs = write(asn1.sequence, algorithm, issuer, writeTime(0), write(asn1.sequence, ...entries))
      return write(asn1.sequence, tbs, algorithm, write(asn1.bitString, Buffer.alloc(9)))
    }
    const bare = { serial: Buffer.from([1]), revokedAt: 0 }
    expect(readCrl(signed(writeCrlEntry(bare)))).toMatchObject({ count: 1, nextUpdate: undefined, extensions: [] })
    expect(() => readCrl(signed(writeCrlEntry({ ...bare, reason: 1 })))).toThrow('an entry of a v1 CRL has extensions')
  })
})

describe('extensions of a list', () => {
  test('numbers are written as they are, up to 20 octets', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: greatestCrlNumber }), (number) => {
        expect(readCrlNumber(crlNumber(number).value)).toBe(number)
        expect(deltaCrlIndicator(number)).toMatchObject({ critical: true, value: crlNumber(number).value })
      }),
    )
    expect(() => crlNumber(greatestCrlNumber + 1n)).toThrow(RangeError)
    expect(() => crlNumber(-1)).toThrow(RangeError)
  })

  test('the distribution point is critical and has the URIs', () => {
    const uris = ['http://a.example/1.crl', 'http://b.example/1.crl']
    const point = issuingDistributionPoint(uris)
    expect(point.critical).toBe(true)
    expect(readIssuingDistributionPoint(point.value)).toEqual({ uris, indirect: false })
    expect(readIssuingDistributionPoint(Buffer.from('30038401ff', 'hex'))).toEqual({ uris: [], indirect: true })
    expect(readIssuingDistributionPoint(Buffer.from('30038101ff', 'hex'))).toEqual({ uris: [], indirect: false })
    expect(() => readIssuingDistributionPoint(Buffer.from('3003870100', 'hex'))).toThrow(Malformed)
  })
})
