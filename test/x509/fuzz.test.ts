import { sign } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { writePem } from '../../src/crypto/pem.ts'
import { readBundle } from '../../src/x509/bundle.ts'
import { readCertificate } from '../../src/x509/certificate.ts'
import { isSelfSigned } from '../../src/x509/chain.ts'
import { refusalOf } from '../../src/x509/constraints.ts'
import { entrySerials } from '../../src/x509/crlentry.ts'
import { readCrl, verifyCrl } from '../../src/x509/crlreader.ts'
import { crlExtensionOids } from '../../src/x509/extension.ts'
import { writeAuthorityInformationAccess } from '../../src/x509/extensions/authorityinformationaccess.ts'
import { writeCertificatePolicies } from '../../src/x509/extensions/certificatepolicies.ts'
import { writeCrlDistributionPoints } from '../../src/x509/extensions/crldistributionpoints.ts'
import { crlNumber } from '../../src/x509/extensions/crlnumber.ts'
import { writeExtendedKeyUsage } from '../../src/x509/extensions/extendedkeyusage.ts'
import {
  issuingDistributionPoint,
  readIssuingDistributionPoint,
} from '../../src/x509/extensions/issuingdistributionpoint.ts'
import { writeNameConstraints } from '../../src/x509/extensions/nameconstraints.ts'
import { crlReasons } from '../../src/x509/extensions/reasoncode.ts'
import { writeSubjectAltName } from '../../src/x509/extensions/subjectaltname.ts'
import { lint } from '../../src/x509/lint.ts'
import { Malformed } from '../../src/x509/malformed.ts'
import { attributeTypes, commonNameOf, writeName } from '../../src/x509/name.ts'
import { toPkcs8 } from '../../src/x509/privatekey.ts'
import { makeRequest, makeTemplate, readRequest, verifyRequest } from '../../src/x509/request.ts'
import { signatureAlgorithmOf } from '../../src/x509/signature.ts'
import { caExtensions, certify, ecPair, identifierOf, spkiOf } from './authority.ts'
import { makeCrl } from './lists.ts'

/** Mutated bytes give a result or Malformed, and nothing else. */

const key = ecPair()
const subject = writeName([
  [{ type: attributeTypes.country, value: 'DE' }],
  [
    { type: attributeTypes.commonName, value: 'a.example' },
    { type: attributeTypes.emailAddress, value: 'a@b.example' },
  ],
])
const extensions = [
  ...caExtensions(key, key, 2),
  writeExtendedKeyUsage(['1.3.6.1.5.5.7.3.1', '2.999.1']),
  writeSubjectAltName([
    { kind: 'dns', value: 'a.example' },
    { kind: 'other', oid: '1.2.3', value: 'ä' },
    { kind: 'ip', value: Buffer.alloc(16) },
    { kind: 'directory', value: subject },
    { kind: 'uri', value: 'https://a.example/' },
  ]),
  writeNameConstraints({
    permitted: [{ kind: 'dns', value: 'example' }],
    excluded: [{ kind: 'ip', value: Buffer.alloc(8) }],
  }),
  writeCertificatePolicies([{ oid: '1.2.3', cps: 'http://a', notice: 'b' }]),
  writeAuthorityInformationAccess({ ocsp: ['http://a'], caIssuers: ['http://b'] }),
  writeCrlDistributionPoints(['http://a', 'http://b']),
]
const certificate = certify({ subject, key, extensions })
const privateKey = key.privateKey.export({ format: 'der', type: 'pkcs8' })
const traditional = key.privateKey.export({ format: 'der', type: 'sec1' })
const crl = makeCrl({
  issuer: subject,
  key,
  entries: [
    { serial: Buffer.alloc(20, 0x7f), revokedAt: Date.UTC(2026, 0) },
    { serial: Buffer.from([0x80]), revokedAt: Date.UTC(2050, 0), reason: crlReasons.superseded },
    { serial: Buffer.from([1]), revokedAt: 0, reason: 1, extensions: [crlNumber(1)] },
  ],
  extensions: [crlNumber(2 ** 40), issuingDistributionPoint(['http://a', 'http://b'])],
})
let request: Buffer = Buffer.alloc(0)

beforeAll(async () => {
  const from = { spki: spkiOf(key), algorithm: identifierOf('ECDSAWithSHA256') }
  request = await makeRequest(from, makeTemplate(subject, extensions), (info) => sign('sha256', info, key.privateKey))
})

/** A few bytes changed, cut out, doubled or put in, where the lengths of DER most likely suffer. */
const mutation = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 0.999, noNaN: true }),
    kind: fc.constantFrom('set', 'set', 'set', 'set', 'set', 'set', 'cut', 'double', 'insert'),
    byte: fc.oneof(fc.constantFrom(0, 0x30, 0x31, 0x80, 0x81, 0xa0, 0xff), fc.integer({ min: 0, max: 255 })),
    length: fc.integer({ min: 1, max: 12 }),
  }),
  { minLength: 1, maxLength: 3 },
)
type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never

const mutate = (original: Buffer, mutations: Mutation): Buffer =>
  mutations.reduce((bytes, { at, kind, byte, length }) => {
    const start = Math.floor(at * bytes.length)
    const [before, piece, after] = [
      bytes.subarray(0, start),
      bytes.subarray(start, start + length),
      bytes.subarray(start + length),
    ]
    if (kind === 'set') return Buffer.concat([before, Buffer.from([byte]), bytes.subarray(start + 1)])
    if (kind === 'cut') return Buffer.concat([before, after])
    return Buffer.concat([before, kind === 'double' ? piece : Buffer.from([byte]), piece, after])
  }, Buffer.from(original))

/** Runs `read`, and swallows the one error that it may throw. */
function survive(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch (error) {
    expect(error).toBeInstanceOf(Malformed)
    expect((error as Error).message).not.toBe('')
    return false
  }
}

describe('mutated bytes', () => {
  const runs = { numRuns: 3000 }
  /** Some 120 of 3,000 can still be read, give or take 11. */
  const fewest = 50

  test('of a certificate', () => {
    let read = 0
    fc.assert(
      fc.property(mutation, (mutations) => {
        const bytes = mutate(certificate, mutations)
        const survived = survive(() => {
          const found = readCertificate(bytes)
          commonNameOf(found.subject)
          isSelfSigned(found)
          refusalOf({ ...found, subject: found.issuer }, [found], 0)
          refusalOf(found, [{ ...found, isCa: true, keyUsage: undefined }])
          survive(() => found.publicKey())
        })
        if (survived) read++
      }),
      runs,
    )
    expect(read).toBeGreaterThan(fewest)
  })

  test('of linted certificates', () => {
    fc.assert(
      fc.property(mutation, (mutations) => {
        lint(mutate(readCertificate(certificate).tbs, mutations))
      }),
      runs,
    )
  })

  test('of a request', () => {
    let read = 0
    fc.assert(
      fc.property(mutation, (mutations) => {
        const bytes = mutate(request, mutations)
        const survived = survive(() => {
          const found = readRequest(bytes)
          read++
          expect(verifyRequest(found)).toBe(bytes.equals(request))
        })
        if (survived) commonNameOf(readRequest(bytes).subject)
      }),
      runs,
    )
    expect(read).toBeGreaterThan(fewest)
  })

  test('of private keys', () => {
    fc.assert(
      fc.property(mutation, fc.constantFrom(privateKey, traditional), (mutations, original) => {
        survive(() => toPkcs8(mutate(original, mutations)))
      }),
      runs,
    )
  })

  test('of identifiers of algorithms: unknown, never an error', () => {
    fc.assert(
      fc.property(mutation, (mutations) => {
        signatureAlgorithmOf(mutate(identifierOf('SHA256WithRSAPSS'), mutations))
      }),
      runs,
    )
  })

  test('of bundles, the text of PEM included', async () => {
    const bundle = Buffer.from([writePem('CERTIFICATE', certificate), writePem('PRIVATE KEY', privateKey)].join('\n'))
    await fc.assert(
      fc.asyncProperty(mutation, async (mutations) => {
        try {
          await readBundle(mutate(bundle, mutations).toString('latin1'))
        } catch (error) {
          expect(error).toBeInstanceOf(Malformed)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('of a revocation list', () => {
    let read = 0
    fc.assert(
      fc.property(mutation, (mutations) => {
        const bytes = mutate(crl, mutations)
        survive(() => {
          const found = readCrl(bytes)
          read++
          for (const { serial, extensions } of entrySerials(found.entries)) expect([serial, extensions]).toBeDefined()
          for (const { oid, value } of found.extensions) {
            if (oid === crlExtensionOids.issuingDistributionPoint) survive(() => readIssuingDistributionPoint(value))
          }
          expect(verifyCrl(found, key.publicKey)).toBe(bytes.equals(crl))
        })
      }),
      runs,
    )
    expect(read).toBeGreaterThan(fewest)
  })

  test('any bytes at all', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (array) => {
        const bytes = Buffer.from(array)
        for (const read of [readCertificate, readCrl, readRequest, toPkcs8])
          expect(survive(() => read(bytes))).toBe(false)
      }),
      runs,
    )
  })
})

test('a certificate that is cut short anywhere is refused', () => {
  for (let length = 0; length < certificate.length; length++) {
    expect(survive(() => readCertificate(certificate.subarray(0, length)))).toBe(false)
  }
})
