import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Cursor } from '../../src/crypto/cursor.ts'
import { asn1, write } from '../../src/crypto/der.ts'
import { prepareExtension, readExtensions, writeExtension } from '../../src/x509/extension.ts'
import {
  readAuthorityInformationAccess,
  writeAuthorityInformationAccess,
} from '../../src/x509/extensions/authorityinformationaccess.ts'
import { readBasicConstraints, writeBasicConstraints } from '../../src/x509/extensions/basicconstraints.ts'
import { readCertificatePolicies, writeCertificatePolicies } from '../../src/x509/extensions/certificatepolicies.ts'
import {
  readCrlDistributionPoints,
  writeCrlDistributionPoints,
} from '../../src/x509/extensions/crldistributionpoints.ts'
import { readExtendedKeyUsage, writeExtendedKeyUsage } from '../../src/x509/extensions/extendedkeyusage.ts'
import {
  readAuthorityKeyIdentifier,
  readSubjectKeyIdentifier,
  writeAuthorityKeyIdentifier,
  writeSubjectKeyIdentifier,
} from '../../src/x509/extensions/keyidentifier.ts'
import { keyUsages, readKeyUsage, writeKeyUsage } from '../../src/x509/extensions/keyusage.ts'
import { readNameConstraints, writeNameConstraints } from '../../src/x509/extensions/nameconstraints.ts'
import { noRevAvail, readNoRevAvail } from '../../src/x509/extensions/norevavail.ts'
import { readSubjectAltName, writeSubjectAltName } from '../../src/x509/extensions/subjectaltname.ts'
import { Malformed } from '../../src/x509/malformed.ts'
import { ascii, extensions, generalName, oid, subtree, text } from './generators.ts'

const uris = fc.array(ascii, { minLength: 1, maxLength: 4 })
const identifier = fc.uint8Array({ minLength: 1, maxLength: 32 }).map((array) => Buffer.from(array))

describe('written extensions are read again', () => {
  test('a list of extensions, prepared or not', () => {
    fc.assert(
      fc.property(extensions, (list) => {
        const der = Buffer.concat(list.map((extension) => writeExtension(extension)))
        expect(Buffer.concat(list.map((extension) => prepareExtension(extension).der ?? Buffer.alloc(0)))).toEqual(der)
        expect(readExtensions(new Cursor(der))).toEqual(list)
      }),
    )
  })

  test('keyUsage: every set of usages, in the order of their bits', () => {
    fc.assert(
      fc.property(fc.subarray([...keyUsages], { minLength: 1 }), fc.boolean(), (usages, backwards) => {
        const extension = writeKeyUsage(backwards ? usages.toReversed() : usages)
        expect(extension.critical).toBe(true)
        expect(readKeyUsage(extension.value)).toEqual(usages)
      }),
    )
  })

  test.each([
    ['03020780', ['DigitalSignature']],
    ['03020106', ['CertSign', 'CRLSign']],
    ['030205a0', ['DigitalSignature', 'KeyEncipherment']],
    ['0303070880', ['KeyAgreement', 'DecipherOnly']],
    ['030100', []],
  ] as const)('keyUsage %s, without the bits behind the last one that is set', (der, usages) => {
    expect(writeKeyUsage(usages).value.toString('hex')).toBe(der)
  })

  test('extendedKeyUsage', () => {
    fc.assert(
      fc.property(fc.array(oid, { minLength: 1, maxLength: 5 }), (oids) => {
        expect(readExtendedKeyUsage(writeExtendedKeyUsage(oids).value)).toEqual(oids)
      }),
    )
  })

  test('basicConstraints', () => {
    fc.assert(
      fc.property(fc.option(fc.integer({ min: 0, max: 2 ** 31 - 1 }), { nil: undefined }), (pathLength) => {
        expect(readBasicConstraints(writeBasicConstraints({ ca: true, pathLength }).value)).toEqual({
          ca: true,
          pathLength,
        })
      }),
    )
    expect(writeBasicConstraints({ ca: false }).value.toString('hex')).toBe('3000')
    expect(writeBasicConstraints({ ca: true, pathLength: 0 }).value.toString('hex')).toBe('30060101ff020100')
    expect(readBasicConstraints(Buffer.from('3000', 'hex'))).toEqual({ ca: false })
  })

  test('key identifiers', () => {
    fc.assert(
      fc.property(identifier, (bytes) => {
        expect(readSubjectKeyIdentifier(writeSubjectKeyIdentifier(bytes).value)).toEqual(bytes)
        expect(readAuthorityKeyIdentifier(writeAuthorityKeyIdentifier(bytes).value).keyIdentifier).toEqual(bytes)
      }),
    )
  })

  test('authorityInfoAccess', () => {
    fc.assert(
      fc.property(uris, fc.array(ascii), (ocsp, caIssuers) => {
        const { value } = writeAuthorityInformationAccess({ ocsp, caIssuers })
        expect(readAuthorityInformationAccess(value)).toEqual({ ocsp, caIssuers })
      }),
    )
  })

  test('subjectAltName', () => {
    fc.assert(
      fc.property(fc.array(generalName, { minLength: 1, maxLength: 6 }), fc.boolean(), (names, critical) => {
        const extension = writeSubjectAltName(names, critical)
        expect(extension.critical).toBe(critical)
        expect(readSubjectAltName(extension.value)).toEqual(names)
      }),
    )
  })

  test('certificatePolicies', () => {
    const policy = fc.record({ oid, cps: ascii, notice: text }, { requiredKeys: ['oid'] })
    const policies = fc.uniqueArray(policy, { minLength: 1, maxLength: 4, selector: (one) => one.oid })
    fc.assert(
      fc.property(policies, (list) => {
        expect(readCertificatePolicies(writeCertificatePolicies(list).value)).toEqual(list)
      }),
    )
  })

  test('nameConstraints', () => {
    fc.assert(
      fc.property(
        fc.array(subtree, { minLength: 1, maxLength: 4 }),
        fc.array(subtree, { maxLength: 4 }),
        (some, more) => {
          for (const constraints of [
            { permitted: some, excluded: more },
            { permitted: more, excluded: some },
          ]) {
            const extension = writeNameConstraints(constraints)
            expect(extension.critical).toBe(true)
            expect(readNameConstraints(extension.value)).toEqual(constraints)
          }
        },
      ),
    )
  })

  test('cRLDistributionPoints', () => {
    fc.assert(
      fc.property(uris, (list) => {
        expect(readCrlDistributionPoints(writeCrlDistributionPoints(list).value)).toEqual(list)
      }),
    )
  })

  test('noRevAvail is a NULL (RFC 9608)', () => {
    expect(noRevAvail).toMatchObject({ oid: '2.5.29.56', critical: false, value: Buffer.from('0500', 'hex') })
    readNoRevAvail(noRevAvail.value)
    expect(() => readNoRevAvail(Buffer.from('050000', 'hex'))).toThrow(Malformed)
  })
})

describe('invalid extensions are refused with a reason', () => {
  const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
  test.each([
    ['keyUsage without bits', readKeyUsage, '0300', 'BIT STRING'],
    ['keyUsage with a trailing byte', readKeyUsage, '030205a0 00', 'element too many'],
    ['a path length without a CA', readBasicConstraints, '3003020100', 'only a CA can have a path length'],
    ['a negative path length', readBasicConstraints, '30060101ff0201ff', 'out of range'],
    ['a BOOLEAN of 1', readBasicConstraints, '3003010101', 'BOOLEAN'],
    ['no purpose', readExtendedKeyUsage, '3000', 'it is empty'],
    ['no alternative name', readSubjectAltName, '3000', 'unknown kind'],
    ['an address of five bytes', readSubjectAltName, '300787050102030405', 'wrong length'],
    ['a null byte in a DNS name', readSubjectAltName, '300a8208612e62002e632e64', 'null byte'],
    ['a DNS name beyond ASCII', readSubjectAltName, '30048202c3a4', 'IA5String'],
    ['a null byte in an other name', readSubjectAltName, '300da00b06022a03a0050c03610062', 'null byte'],
    ['a name of no kind', readSubjectAltName, '30028900', 'unknown kind'],
    ['no constraint', readNameConstraints, '3000', 'it is empty'],
    ['a minimum', readNameConstraints, '300aa0083006820161800101', 'minimum'],
    ['an indefinite length', readSubjectAltName, '30800000', 'a length has an unknown form'],
    ['a policy that comes twice', readCertificatePolicies, '300c300406022a03300406022a03', 'twice'],
    ['an empty subject key identifier', readSubjectKeyIdentifier, '0400', 'empty'],
    ['half an issuer and serial number', readAuthorityKeyIdentifier, '3003820101', 'go together'],
  ])('%s', (_, read, der, why) => {
    expect(() => read(hex(der))).toThrow(Malformed)
    expect(() => read(hex(der))).toThrow(why)
  })

  test('an extension that comes twice', () => {
    const der = writeExtension({ oid: '1.2.3', critical: true, value: Buffer.alloc(0) })
    expect(() => readExtensions(new Cursor(Buffer.concat([der, der])))).toThrow('extension 1.2.3 comes twice')
  })

  test('more than a hundred extensions', () => {
    const list = Array.from({ length: 101 }, (_, arc) =>
      writeExtension({ oid: `1.2.${arc}`, critical: false, value: Buffer.alloc(0) }),
    )
    expect(() => readExtensions(new Cursor(Buffer.concat(list)))).toThrow('more than 100')
    expect(readExtensions(new Cursor(Buffer.concat(list.slice(1))))).toHaveLength(100)
  })

  test('an explicit FALSE is accepted', () => {
    const der = write(
      asn1.sequence,
      Buffer.from('06022a03', 'hex'),
      Buffer.from('010100', 'hex'),
      write(asn1.octetString),
    )
    expect(readExtensions(new Cursor(der))).toMatchObject([{ oid: '1.2.3', critical: false }])
  })
})
