import 'reflect-metadata'
import * as peculiar from '@peculiar/x509'
import fc from 'fast-check'
import * as pkijs from 'pkijs'
import { describe, expect, test } from 'vitest'
import { writePem } from '../../src/crypto/pem.ts'
import { readCertificate } from '../../src/x509/certificate.ts'
import { entrySerials } from '../../src/x509/crlentry.ts'
import { readCrl, verifyCrl } from '../../src/x509/crlreader.ts'
import { crlExtensionOids } from '../../src/x509/extension.ts'
import { crlNumber, deltaCrlIndicator } from '../../src/x509/extensions/crlnumber.ts'
import { issuingDistributionPoint } from '../../src/x509/extensions/issuingdistributionpoint.ts'
import { writeAuthorityKeyIdentifier } from '../../src/x509/extensions/keyidentifier.ts'
import { crlReasons } from '../../src/x509/extensions/reasoncode.ts'
import { withColons } from '../../src/x509/serial.ts'
import { certify, ecPair, makeCa, named, pemOf, useOpenssl } from './authority.ts'
import { readCrlNumber } from './crlnumber.ts'
import { serial } from './generators.ts'
import { makeCrl } from './lists.ts'

/** How openssl and two libraries read our lists, and how we read those of openssl. */

const key = ecPair()
const issuer = named('a list')
const openssl = useOpenssl()

const reasons = Object.values(crlReasons).filter((reason) => reason !== crlReasons.unspecified)
const entry = fc.record({
  serial,
  revokedAt: fc.integer({ min: 0, max: Date.UTC(2100, 0) / 1000 }).map((seconds) => seconds * 1000),
  reason: fc.option(fc.constantFrom(...reasons), { nil: undefined }),
})

describe('lists of ours', () => {
  test('two libraries read the same entries', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
        const der = makeCrl({ issuer, key, entries, extensions: [crlNumber(7)] })
        const theirs = new peculiar.X509Crl(der)
        const list = theirs.entries.map(({ serialNumber, revocationDate, reason }) => [
          BigInt(`0x${serialNumber}`),
          revocationDate.getTime(),
          reason,
        ])
        const own = entries.map(({ serial, revokedAt, reason }) => [
          BigInt(`0x${serial.toString('hex')}`),
          revokedAt,
          reason,
        ])
        expect(list).toEqual(own)
        const others = pkijs.CertificateRevocationList.fromBER(der)
        expect(Buffer.from(others.tbsView)).toEqual(readCrl(der).tbs)
        const times = (others.revokedCertificates ?? []).map(({ revocationDate }) => revocationDate.value.getTime())
        expect(times).toEqual(entries.map(({ revokedAt }) => revokedAt))
      }),
      { numRuns: 40 },
    )
  })

  test('a library verifies them', async () => {
    const ca = makeCa('a list')
    const der = makeCrl({ issuer: ca.subject, key: ca.key, entries: [{ serial: Buffer.from([1]), revokedAt: 0 }] })
    const publicKey = new peculiar.X509Certificate(ca.certificate.der).publicKey
    expect(await new peculiar.X509Crl(der).verify({ publicKey })).toBe(true)
  })

  test('openssl shows every field and verifies the signature', () => {
    const ca = makeCa('a list')
    const der = makeCrl({
      issuer: ca.subject,
      key: ca.key,
      thisUpdate: Date.UTC(2026, 0, 2, 3, 4, 5),
      nextUpdate: Date.UTC(2051, 0, 1),
      entries: [
        { serial: Buffer.from('ff01', 'hex'), revokedAt: Date.UTC(2025, 5, 6), reason: 1 },
        { serial: Buffer.from('0a', 'hex'), revokedAt: Date.UTC(2050, 0, 1) },
      ],
      extensions: [
        writeAuthorityKeyIdentifier(ca.certificate.subjectKeyId ?? Buffer.alloc(0)),
        crlNumber(2n ** 70n),
        deltaCrlIndicator(3),
        issuingDistributionPoint(['http://a.example/1.crl']),
      ],
    })
    openssl.put('ca.pem', pemOf(ca.certificate.der))
    const text = openssl.run(['crl', '-inform', 'der', '-noout', '-text'], der)
    for (const expected of [
      'Version 2 (0x1)',
      'Last Update: Jan  2 03:04:05 2026 GMT',
      'Next Update: Jan  1 00:00:00 2051 GMT',
      'Serial Number: FF01',
      'Revocation Date: Jun  6 00:00:00 2025 GMT',
      'Key Compromise',
      'Serial Number: 0A',
      'Revocation Date: Jan  1 00:00:00 2050 GMT',
      'URI:http://a.example/1.crl',
    ]) {
      expect(text).toContain(expected)
    }
    expect(text).toMatch(/X509v3 CRL Number:\s+1180591620717411303424\n/)
    expect(text).toMatch(/X509v3 Delta CRL Indicator: critical\s+3\n/)
    expect(text).toMatch(/X509v3 Issuing Distribution Point: critical/)
    openssl.put('list.pem', writePem('X509 CRL', der))
    expect(() => openssl.run(['crl', '-in', 'list.pem', '-CAfile', 'ca.pem', '-verify', '-noout'])).not.toThrow()
  })

  test('openssl shows an empty list without entries', () => {
    const text = openssl.run(['crl', '-inform', 'der', '-noout', '-text'], makeCrl({ issuer, key }))
    expect(text).toContain('No Revoked Certificates.')
  })

  test('openssl verifies certificates by them', () => {
    const ca = makeCa('a list')
    const leaf = ecPair()
    const der = certify({ subject: named('leaf'), key: leaf, issuer: ca.subject, signer: ca.key })
    openssl.put('both.pem', pemOf(ca.certificate.der))
    openssl.put('leaf.pem', pemOf(der))
    const check = (serial: Buffer): string => {
      const list = makeCrl({ issuer: ca.subject, key: ca.key, entries: [{ serial, revokedAt: Date.now() }] })
      openssl.put('crl.pem', writePem('X509 CRL', list))
      return openssl.run(['verify', '-crl_check', '-CAfile', 'both.pem', '-CRLfile', 'crl.pem', 'leaf.pem'])
    }
    expect(check(Buffer.from([1]))).toContain('leaf.pem: OK')
    expect(() => check(readCertificate(der).serial)).toThrow('certificate revoked')
  })
})

test('a list of openssl is read', () => {
  const ca = makeCa('theirs')
  openssl.put('theirs.pem', pemOf(ca.certificate.der))
  openssl.put('theirs.key', ca.key.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString())
  const lines = [
    'R\t350101000000Z\t260102030405Z,keyCompromise\t01FF\tunknown\t/CN=x',
    'R\t350101000000Z\t260102030405Z\t0A\tunknown\t/CN=y',
  ]
  openssl.put('index.txt', `${lines.join('\n')}\n`)
  openssl.put('number', '1F\n')
  openssl.put(
    'ca.cnf',
    '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ncrlnumber=number\ndefault_md=sha256\ndefault_crl_days=3\ncrl_extensions=e\n[e]\nauthorityKeyIdentifier=keyid\n',
  )
  const args = [
    'ca',
    '-config',
    'ca.cnf',
    '-gencrl',
    '-cert',
    'theirs.pem',
    '-keyfile',
    'theirs.key',
    '-out',
    'theirs.crl',
  ]
  openssl.run(args)
  openssl.run(['crl', '-in', 'theirs.crl', '-outform', 'der', '-out', 'theirs.der'])
  const crl = readCrl(openssl.read('theirs.der'))
  expect(verifyCrl(crl, ca.certificate.publicKey())).toBe(true)
  const at = Date.UTC(2026, 0, 2, 3, 4, 5)
  expect(
    [...entrySerials(crl.entries)].map(({ serial, revokedAt, reason }) => [withColons(serial), revokedAt, reason]),
  ).toEqual([
    ['0a', at, undefined],
    ['01:ff', at, crlReasons.keyCompromise],
  ])
  const number = crl.extensions.find(({ oid }) => oid === crlExtensionOids.crlNumber)
  expect(number && readCrlNumber(number.value)).toBe(0x1fn)
})
