import 'reflect-metadata'
import { sign } from 'node:crypto'
import * as peculiar from '@peculiar/x509'
import fc from 'fast-check'
import * as pkijs from 'pkijs'
import { describe, expect, test } from 'vitest'
import { readCertificate } from '../../src/x509/certificate.ts'
import { extensionOids } from '../../src/x509/extension.ts'
import { formatAddress } from '../../src/x509/extensions/address.ts'
import { writeAuthorityInformationAccess } from '../../src/x509/extensions/authorityinformationaccess.ts'
import { writeBasicConstraints } from '../../src/x509/extensions/basicconstraints.ts'
import { writeCertificatePolicies } from '../../src/x509/extensions/certificatepolicies.ts'
import { writeCrlDistributionPoints } from '../../src/x509/extensions/crldistributionpoints.ts'
import { writeExtendedKeyUsage } from '../../src/x509/extensions/extendedkeyusage.ts'
import { writeNameConstraints } from '../../src/x509/extensions/nameconstraints.ts'
import { writeSubjectAltName } from '../../src/x509/extensions/subjectaltname.ts'
import { attributeTypes, readName, writeName } from '../../src/x509/name.ts'
import { makeRequest, makeTemplate, readRequest } from '../../src/x509/request.ts'
import { withColons } from '../../src/x509/serial.ts'
import { caExtensions, certify, ecPair, identifierOf, named, spkiOf } from './authority.ts'
import { serial, text } from './generators.ts'

/** How two foreign libraries read our bytes, and how we read theirs. */

const key = ecPair()
/** One of the libraries relies on arcs of 32 bits. */
const oid = fc.integer({ min: 1, max: 2 ** 31 - 1 }).map((arc) => `1.3.6.1.4.1.${arc}`)
const type = fc.oneof(fc.constantFrom(...Object.values(attributeTypes)), oid)
const name = fc
  .array(fc.array(fc.record({ type, value: text }), { minLength: 1, maxLength: 3 }), { maxLength: 5 })
  .map(writeName)
const value = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))
const extensions = fc.uniqueArray(fc.record({ oid, critical: fc.boolean(), value }), {
  maxLength: 6,
  selector: (extension) => extension.oid,
})
const isOrdinary = (text: string) => /^[ -~]+$/.test(text)
const attributesOf = (der: Buffer) => readName(der).map((rdn) => rdn.map(({ type, value }) => [type, value]))

describe('certificates of ours', () => {
  test('have the same fields for both libraries', () => {
    fc.assert(
      fc.property(serial, name, name, extensions, (serialNumber, subject, issuer, list) => {
        const der = certify({ serial: serialNumber, subject, issuer, key, signer: key, extensions: list })
        const theirs = new peculiar.X509Certificate(der)
        expect(BigInt(`0x${theirs.serialNumber}`)).toBe(BigInt(`0x${serialNumber.toString('hex')}`))
        expect(Buffer.from(theirs.subjectName.toArrayBuffer())).toEqual(subject)
        expect(Buffer.from(theirs.issuerName.toArrayBuffer())).toEqual(issuer)
        expect(theirs.extensions.map(({ type, critical, value }) => [type, critical, Buffer.from(value)])).toEqual(
          list.map(({ oid, critical, value }) => [oid, critical, value]),
        )
        const others = pkijs.Certificate.fromBER(der)
        expect(Buffer.from(others.tbsView)).toEqual(readCertificate(der).tbs)
        expect((others.extensions ?? []).map(({ extnID, critical }) => [extnID, critical])).toEqual(
          list.map(({ oid, critical }) => [oid, critical]),
        )
      }),
      { numRuns: 40 },
    )
  })

  test('have the same names, value by value', () => {
    const ordinary = fc.array(
      fc.record({
        type: fc.constantFrom(...Object.values(attributeTypes)),
        value: fc.string({ minLength: 1 }).filter(isOrdinary),
      }),
      { minLength: 1, maxLength: 5 },
    )
    fc.assert(
      fc.property(ordinary, (attributes) => {
        const subject = writeName(attributes.map((attribute) => [attribute]))
        const theirs = pkijs.Certificate.fromBER(certify({ subject, key })).subject.typesAndValues
        expect(theirs.map(({ type, value }) => [type, value.valueBlock.value])).toEqual(
          attributes.map(({ type, value }) => [type, value]),
        )
      }),
      { numRuns: 40 },
    )
  })

  test('have extensions that the libraries understand', () => {
    const der = certify({
      subject: named('a.example'),
      key,
      extensions: [
        ...caExtensions(key, key, 3),
        writeExtendedKeyUsage(['1.3.6.1.5.5.7.3.1', '2.999.1']),
        writeSubjectAltName([
          { kind: 'dns', value: 'a.example' },
          { kind: 'email', value: 'a@b.example' },
          { kind: 'uri', value: 'https://c.example/' },
          { kind: 'ip', value: Buffer.from([10, 0, 0, 1]) },
          { kind: 'registered', value: '1.2.3' },
        ]),
        writeCertificatePolicies([{ oid: '1.2.3' }, { oid: '1.2.4', cps: 'http://p', notice: 'ä' }]),
        writeAuthorityInformationAccess({ ocsp: ['http://o'], caIssuers: ['http://i'] }),
        writeCrlDistributionPoints(['http://l', 'http://m']),
        writeNameConstraints({ permitted: [{ kind: 'dns', value: 'example' }], excluded: [] }),
      ],
    })
    const ours = readCertificate(der)
    const theirs = new peculiar.X509Certificate(der)
    expect(theirs.getExtension(peculiar.BasicConstraintsExtension)).toMatchObject({ ca: true, pathLength: 3 })
    expect(theirs.getExtension(peculiar.KeyUsagesExtension)?.usages).toBe(
      peculiar.KeyUsageFlags.keyCertSign | peculiar.KeyUsageFlags.cRLSign,
    )
    expect(theirs.getExtension(peculiar.ExtendedKeyUsageExtension)?.usages).toEqual(ours.extendedKeyUsage)
    expect(theirs.getExtension(peculiar.SubjectKeyIdentifierExtension)?.keyId).toBe(ours.subjectKeyId?.toString('hex'))
    expect(theirs.getExtension(peculiar.AuthorityKeyIdentifierExtension)?.keyId).toBe(
      ours.authorityKeyId?.toString('hex'),
    )
    expect(theirs.getExtension(peculiar.SubjectAlternativeNameExtension)?.names.toJSON()).toEqual([
      { type: 'dns', value: 'a.example' },
      { type: 'email', value: 'a@b.example' },
      { type: 'url', value: 'https://c.example/' },
      { type: 'ip', value: '10.0.0.1' },
      { type: 'id', value: '1.2.3' },
    ])
    expect(theirs.getExtension(peculiar.CertificatePolicyExtension)?.policies).toEqual(['1.2.3', '1.2.4'])
    const access = theirs.getExtension(peculiar.AuthorityInfoAccessExtension)
    expect([access?.ocsp[0]?.value, access?.caIssuers[0]?.value]).toEqual(['http://o', 'http://i'])
    const parsed = pkijs.Certificate.fromBER(der).extensions ?? []
    expect(parsed.filter(({ parsedValue }) => parsedValue?.parsingError !== undefined)).toEqual([])
    const points = parsed.find(({ extnID }) => extnID === extensionOids.crlDistributionPoints)?.parsedValue
    expect(points.distributionPoints).toHaveLength(2)
  })
})

describe('certificates and requests of theirs', () => {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

  test('are read with the same fields', async () => {
    const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
    const theirs = await peculiar.X509CertificateGenerator.createSelfSigned({
      serialNumber: '01a2',
      name: 'C=DE, O=Käse, CN=a.example',
      notBefore: new Date(Date.UTC(2026, 0, 1)),
      notAfter: new Date(Date.UTC(2051, 0, 1)),
      signingAlgorithm: algorithm,
      keys,
      extensions: [
        new peculiar.BasicConstraintsExtension(true, 1, true),
        new peculiar.KeyUsagesExtension(peculiar.KeyUsageFlags.keyCertSign, true),
        new peculiar.SubjectAlternativeNameExtension([
          { type: 'dns', value: 'a.example' },
          { type: 'ip', value: '2001:db8::1' },
        ]),
        await peculiar.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    })
    const ours = readCertificate(Buffer.from(theirs.rawData))
    expect(withColons(ours.serial)).toBe('01:a2')
    expect([ours.notBefore, ours.notAfter]).toEqual([Date.UTC(2026, 0, 1), Date.UTC(2051, 0, 1)])
    expect(ours).toMatchObject({ isCa: true, basicConstraints: { ca: true, pathLength: 1 }, keyUsage: ['CertSign'] })
    const [dns, ip] = ours.subjectAltName
    expect(dns).toEqual({ kind: 'dns', value: 'a.example' })
    expect(ip?.kind === 'ip' && formatAddress(ip.value)).toBe('2001:db8::1')
    expect(attributesOf(ours.subject).flat()).toEqual([
      [attributeTypes.country, 'DE'],
      [attributeTypes.organization, 'Käse'],
      [attributeTypes.commonName, 'a.example'],
    ])
  })

  test('requests go both ways', async () => {
    const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
    const names = new peculiar.SubjectAlternativeNameExtension([{ type: 'dns', value: 'a.example' }])
    const theirs = await peculiar.Pkcs10CertificateRequestGenerator.create({
      name: 'CN=a.example',
      keys,
      signingAlgorithm: algorithm,
      extensions: [names],
    })
    const read = readRequest(Buffer.from(theirs.rawData))
    expect(read.extensions).toEqual([writeSubjectAltName([{ kind: 'dns', value: 'a.example' }])])
    const own = await makeRequest(
      { spki: spkiOf(key), algorithm: identifierOf('ECDSAWithSHA256') },
      makeTemplate(named('b.example'), [writeBasicConstraints({ ca: true })]),
      (info) => sign('sha256', info, key.privateKey),
    )
    const back = new peculiar.Pkcs10CertificateRequest(own)
    expect(await back.verify()).toBe(true)
    expect(back.subject).toBe('CN=b.example')
    expect(back.extensions).toMatchObject([{ type: extensionOids.basicConstraints, ca: true, critical: true }])
    expect(await pkijs.CertificationRequest.fromBER(own).verify()).toBe(true)
  })
})
