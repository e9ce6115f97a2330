import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { asn1, contextAround, write, writeNumber } from '../../src/crypto/der.ts'
import { writeOid } from '../../src/crypto/oid.ts'
import { type Extension, extensionOids, writeExtension } from '../../src/x509/extension.ts'
import { writeAuthorityInformationAccess } from '../../src/x509/extensions/authorityinformationaccess.ts'
import { writeBasicConstraints } from '../../src/x509/extensions/basicconstraints.ts'
import { writeCertificatePolicies } from '../../src/x509/extensions/certificatepolicies.ts'
import { writeCrlDistributionPoints } from '../../src/x509/extensions/crldistributionpoints.ts'
import { extendedKeyUsages, writeExtendedKeyUsage } from '../../src/x509/extensions/extendedkeyusage.ts'
import type { GeneralName } from '../../src/x509/extensions/generalname.ts'
import { writeAuthorityKeyIdentifier, writeSubjectKeyIdentifier } from '../../src/x509/extensions/keyidentifier.ts'
import { writeKeyUsage } from '../../src/x509/extensions/keyusage.ts'
import { writeNameConstraints } from '../../src/x509/extensions/nameconstraints.ts'
import { noRevAvail } from '../../src/x509/extensions/norevavail.ts'
import { writeSubjectAltName } from '../../src/x509/extensions/subjectaltname.ts'
import { lint } from '../../src/x509/lint.ts'
import { attributeTypes, emptyName, writeName } from '../../src/x509/name.ts'
import { type Tbs, writeTbs } from '../../src/x509/tbs.ts'
import { caExtensions, ecPair, identifierOf, leafExtensions, named, spkiOf } from './authority.ts'
import { extensions, name, serial, time } from './generators.ts'

const key = ecPair()
const leaf: Tbs = {
  serial: Buffer.from([1]),
  algorithm: identifierOf('ECDSAWithSHA256'),
  issuer: named('CA'),
  notBefore: Date.UTC(2026, 0, 1),
  notAfter: Date.UTC(2026, 1, 1),
  subject: named('www.example.com'),
  spki: spkiOf(key),
  extensions: [...leafExtensions(key, key), writeSubjectAltName([{ kind: 'dns', value: 'www.example.com' }])],
}
const ca: Tbs = { ...leaf, subject: leaf.issuer, extensions: caExtensions(key, key) }

const found = (der: Buffer) => lint(der).map(({ rule, severity }) => `${severity} ${rule}`)
const of = (changes: Partial<Tbs>, base = leaf) => found(writeTbs({ ...base, ...changes }))
/** With these extensions instead of those of the same OID. */
const having = (base: Tbs, ...more: readonly Extension[]): Tbs => {
  const oids = new Set(more.map(({ oid }) => oid))
  return { ...base, extensions: [...base.extensions.filter(({ oid }) => !oids.has(oid)), ...more] }
}
const without = (base: Tbs, ...oids: readonly string[]): Tbs => ({
  ...base,
  extensions: base.extensions.filter(({ oid }) => !oids.includes(oid)),
})
const subjectOf = (type: string, value: string) => ({ subject: writeName([[{ type, value }]]) })
const altNames = (...names: readonly GeneralName[]) => having(leaf, writeSubjectAltName(names))
const flipped = (extension: Extension): Extension => ({ ...extension, critical: !extension.critical })

test('nothing is wrong with a usual leaf, CA or root', () => {
  expect(lint(writeTbs(leaf))).toEqual([])
  expect(lint(writeTbs(ca))).toEqual([])
  expect(lint(writeTbs(without(ca, extensionOids.authorityKeyIdentifier)))).toEqual([])
  expect(lint(writeTbs(having(ca, writeBasicConstraints({ ca: true, pathLength: 0 }))))).toEqual([])
})

test('certificates are judged one by one, whatever was judged before them', () => {
  const purposes = Object.values(extendedKeyUsages)
  const faulty = [
    having(leaf, writeExtendedKeyUsage([purposes[0] ?? '', purposes[0] ?? ''])),
    having(leaf, writeKeyUsage(['CertSign'])),
    having(leaf, writeBasicConstraints({ ca: true })),
    { ...leaf, issuer: emptyName },
  ]
  const alone = faulty.map((tbs) => {
    expect(found(writeTbs(leaf))).toEqual([])
    return found(writeTbs(tbs))
  })
  for (const findings of alone) expect(findings).not.toEqual([])
  expect(faulty.map((tbs) => found(writeTbs(tbs)))).toEqual(alone)
  expect(faulty.map((tbs) => [found(writeTbs(tbs)), found(writeTbs(tbs))])).toEqual(alone.map((one) => [one, one]))
})

describe('RFC 5280 makes it invalid', () => {
  test.each<[string, Tbs | Partial<Tbs>, string]>([
    ['serial number zero', { serial: Buffer.alloc(1) }, 'serial_positive'],
    ['serial number of 21 octets', { serial: Buffer.alloc(20, 0xff) }, 'serial_length'],
    ['empty issuer', { issuer: emptyName }, 'issuer_empty'],
    ['end before the beginning', { notAfter: leaf.notBefore - 1000 }, 'validity_order'],
    ['common name of 65 characters', subjectOf(attributeTypes.commonName, 'a'.repeat(65)), 'name_length'],
    ['organization of 65', subjectOf(attributeTypes.organization, 'ä'.repeat(65)), 'name_length'],
    ['locality of 129', subjectOf(attributeTypes.locality, 'a'.repeat(129)), 'name_length'],
    ['country of three letters', subjectOf(attributeTypes.country, 'DEU'), 'name_length'],
    ['country of one letter', subjectOf(attributeTypes.country, 'D'), 'name_length'],
    ['empty common name', subjectOf(attributeTypes.commonName, ''), 'name_length'],
    ['country beyond PrintableString', subjectOf(attributeTypes.country, 'ÄÄ'), 'name_encoding'],
    ['serialNumber beyond PrintableString', subjectOf(attributeTypes.serialNumber, 'a_b'), 'name_encoding'],
    ['e-mail address beyond ASCII', subjectOf(attributeTypes.emailAddress, 'ä@b.test'), 'name_encoding'],
    ['leaf without the key of its issuer', without(leaf, extensionOids.authorityKeyIdentifier), 'authority_key_id'],
    ['CA without the identifier of its key', without(ca, extensionOids.subjectKeyIdentifier), 'subject_key_id'],
    ['CA without key usage', without(ca, extensionOids.keyUsage), 'ca_key_usage'],
    ['CertSign of a leaf', having(leaf, writeKeyUsage(['CertSign'])), 'key_usage_ca'],
    [
      'CertSign where constraints say no',
      having(leaf, writeKeyUsage(['CertSign']), writeBasicConstraints({ ca: false })),
      'key_usage_ca',
    ],
    ['key usage of no bits', having(leaf, writeKeyUsage([])), 'key_usage_empty'],
    [
      'path length without CertSign',
      having(ca, writeKeyUsage(['CRLSign']), writeBasicConstraints({ ca: true, pathLength: 1 })),
      'path_length',
    ],
    [
      'uncritical constraints of a CA',
      having(ca, flipped(writeBasicConstraints({ ca: true }))),
      'extension_criticality',
    ],
    [
      'critical subject key identifier',
      having(leaf, flipped(writeSubjectKeyIdentifier(Buffer.alloc(20)))),
      'extension_criticality',
    ],
    [
      'critical authority key identifier',
      having(leaf, flipped(writeAuthorityKeyIdentifier(Buffer.alloc(20)))),
      'extension_criticality',
    ],
    [
      'uncritical name constraints',
      having(ca, flipped(writeNameConstraints({ permitted: [{ kind: 'dns', value: 'a' }], excluded: [] }))),
      'extension_criticality',
    ],
    [
      'name constraints of a leaf',
      having(leaf, writeNameConstraints({ permitted: [{ kind: 'dns', value: 'a' }], excluded: [] })),
      'name_constraints_ca',
    ],
    ['empty subject with uncritical names', { subject: emptyName }, 'subject_empty'],
    [
      'empty subject without names',
      { ...without(leaf, extensionOids.subjectAltName), subject: emptyName },
      'subject_empty',
    ],
    ['empty DNS name', altNames({ kind: 'dns', value: ' ' }), 'san_dns_empty'],
    ['line break in a DNS name', altNames({ kind: 'dns', value: 'a.example\nb.example' }), 'san_dns_control'],
    ['mailbox without a host', altNames({ kind: 'email', value: 'a' }), 'san_email'],
    ['two dots in a mailbox', altNames({ kind: 'email', value: 'a..b@example.com' }), 'san_email'],
    ['dot that begins a mailbox', altNames({ kind: 'email', value: '.a@example.com' }), 'san_email'],
    ['angle brackets in a mailbox', altNames({ kind: 'email', value: 'a<b>@example.com' }), 'san_email'],
    ['empty label in the host of a mailbox', altNames({ kind: 'email', value: 'a@b..c' }), 'san_email'],
    ['relative URI', altNames({ kind: 'uri', value: '/a' }), 'san_uri'],
    ['URI without a host', altNames({ kind: 'uri', value: 'http:///a' }), 'san_uri'],
    ['half a bracket in a URI', altNames({ kind: 'uri', value: 'http://[::1' }), 'san_uri'],
    [
      'notice of 201 characters',
      having(leaf, writeCertificatePolicies([{ oid: '1.2.3', notice: 'a'.repeat(201) }])),
      'policy_notice',
    ],
    [
      'noRevAvail beside OCSP',
      having(leaf, noRevAvail, writeAuthorityInformationAccess({ ocsp: ['http://a'], caIssuers: [] })),
      'no_rev_avail',
    ],
    ['noRevAvail beside a list', having(leaf, noRevAvail, writeCrlDistributionPoints(['http://a'])), 'no_rev_avail'],
    ['noRevAvail of a CA', having(ca, noRevAvail), 'no_rev_avail'],
  ])('%s', (_, changes, rule) => {
    expect(of(changes)).toContain(`error ${rule}`)
  })

  test('a critical subject alternative name is enough for a leaf without subject, not for a CA', () => {
    const critical = writeSubjectAltName([{ kind: 'dns', value: 'a.test' }], true)
    expect(of({ ...having(leaf, critical), subject: emptyName })).toEqual([])
    expect(of({ ...having(ca, critical), subject: emptyName, issuer: named('x') })).toContain('error subject_empty')
  })

  test.each([
    [
      'known extension that cannot be read',
      having(leaf, { ...writeKeyUsage(['CRLSign']), value: Buffer.from('0500', 'hex') }),
    ],
    ['noRevAvail that is no NULL', having(leaf, { ...noRevAvail, value: Buffer.from('3000', 'hex') })],
    ['extension that comes twice', { ...leaf, extensions: [...leaf.extensions, writeKeyUsage(['CRLSign'])] }],
    ['policy that comes twice', having(leaf, writeCertificatePolicies([{ oid: '1.2.3' }, { oid: '1.2.3' }]))],
    [
      'key of an unknown curve',
      {
        ...leaf,
        spki: generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'der', type: 'spki' }),
      },
    ],
  ])('%s', (_, tbs) => {
    expect(found(writeTbs(tbs))).toEqual(['error malformed'])
  })
})

describe('encodings that a reader overlooks', () => {
  /** A TBSCertificate of elements written by hand. */
  const assemble = ({
    version = 2,
    validity = [leaf.notBefore, leaf.notAfter],
    times = '',
    list = leaf.extensions.map(writeExtension),
    subject = leaf.subject,
  } = {}) =>
    write(
      asn1.sequence,
      write(contextAround(0), writeNumber(Buffer.from([version]))),
      writeNumber(leaf.serial),
      leaf.algorithm,
      leaf.issuer,
      write(
        asn1.sequence,
        ...validity.map((at) => {
          const digits = `${new Date(at).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`
          return times === 'long'
            ? write(asn1.generalizedTime, Buffer.from(digits))
            : write(asn1.utcTime, Buffer.from(digits.slice(2)))
        }),
      ),
      subject,
      leaf.spki,
      write(contextAround(3), write(asn1.sequence, ...list)),
    )

  test('their unchanged base has no findings', () => expect(found(assemble())).toEqual([]))

  test('GeneralizedTime before 2050', () =>
    expect(found(assemble({ times: 'long' }))).toEqual(['error validity_encoding']))

  test('another version', () => expect(found(assemble({ version: 1 }))).toEqual(['error malformed']))

  test('an extension that writes out that it is not critical', () => {
    const list = leaf.extensions.map(({ oid, critical, value }) =>
      write(
        asn1.sequence,
        writeOid(oid),
        write(asn1.boolean, Buffer.from([critical ? 0xff : 0])),
        write(asn1.octetString, value),
      ),
    )
    expect(found(assemble({ list }))).toEqual(['error default_encoding'])
  })

  test('basic constraints with an explicit CA:FALSE', () => {
    const spoken = { ...writeBasicConstraints({ ca: false }), value: Buffer.from('3003010100', 'hex') }
    expect(found(writeTbs(having(leaf, spoken)))).toEqual(['error default_encoding'])
  })

  test("an RDN's values in another order, and a string type of old", () => {
    const value = (tag: number, text: string) =>
      write(asn1.sequence, writeOid(attributeTypes.commonName), write(tag, Buffer.from(text)))
    const rdn = (...values: readonly Buffer[]) => write(asn1.sequence, write(asn1.set, ...values))
    const [a, b] = [value(asn1.printableString, 'a'), value(asn1.printableString, 'b')]
    expect(found(assemble({ subject: rdn(a, b) }))).toEqual([])
    expect(found(assemble({ subject: rdn(b, a) }))).toEqual(['error name_set_order'])
    expect(found(assemble({ subject: rdn(a, a) }))).toEqual(['error name_set_order'])
    expect(found(assemble({ subject: rdn(value(asn1.teletexString, 'a')) }))).toEqual(['warning name_encoding'])
  })
})

describe('only a warning', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 })
  test.each<[string, Tbs | Partial<Tbs>, string]>([
    [
      "the specification's default key usage on ECDSA",
      having(leaf, writeKeyUsage(['DigitalSignature', 'KeyAgreement', 'KeyEncipherment'])),
      'key_usage_key',
    ],
    [
      "the specification's default key usage on RSA",
      { ...having(leaf, writeKeyUsage(['DigitalSignature', 'KeyAgreement', 'KeyEncipherment'])), spki: spkiOf(rsa) },
      'key_usage_key',
    ],
    ['EncipherOnly alone', having(leaf, writeKeyUsage(['EncipherOnly'])), 'key_usage_undefined'],
    ['CA without CertSign', having(ca, writeKeyUsage(['CRLSign'])), 'ca_key_usage'],
    ['leaf without the identifier of its key', without(leaf, extensionOids.subjectKeyIdentifier), 'subject_key_id'],
    ['underscore in the host of a mailbox', altNames({ kind: 'email', value: 'a@b_c.test' }), 'san_email_host'],
    ['issuer of 65 characters', { issuer: named('a'.repeat(65)) }, 'name_length'],
    [
      'issuer with a country of three letters',
      { issuer: writeName([[{ type: attributeTypes.country, value: 'USA' }]]) },
      'name_length',
    ],
    [
      'issuer with a serialNumber as UTF8String',
      { issuer: writeName([[{ type: attributeTypes.serialNumber, value: 'a_b' }]]) },
      'name_encoding',
    ],
    ['underscore in a host', altNames({ kind: 'dns', value: 'a_b.example.com' }), 'san_dns_syntax'],
    ['blank in a host', altNames({ kind: 'dns', value: 'my host' }), 'san_dns_syntax'],
    ['host of 254 characters', altNames({ kind: 'dns', value: `${'a.'.repeat(125)}abcd` }), 'san_dns_syntax'],
    [
      'host that comes twice',
      altNames({ kind: 'dns', value: 'a.test' }, { kind: 'dns', value: 'A.test' }),
      'san_duplicate',
    ],
    [
      'unknown critical extension',
      having(leaf, { oid: '1.2.3', critical: true, value: Buffer.alloc(0) }),
      'extension_unknown',
    ],
    ['uncritical key usage', having(leaf, flipped(writeKeyUsage(['DigitalSignature']))), 'extension_criticality'],
    [
      'critical names beside a subject',
      having(leaf, writeSubjectAltName([{ kind: 'dns', value: 'a.test' }], true)),
      'extension_criticality',
    ],
    ['purpose that comes twice', having(leaf, writeExtendedKeyUsage(['1.2.3', '1.2.3'])), 'purpose_duplicate'],
  ])('%s', (_, changes, rule) => {
    expect(of(changes)).toEqual([`warning ${rule}`])
  })
})

test('a name that is subject and issuer has each of its faults once, as an error', () => {
  const long = named('a'.repeat(65))
  expect(of({ subject: long, issuer: long }, ca)).toEqual(['error name_length'])
})

test.each(['a@example.com', "o'x+y=z@b.test", '"a b"@b.test', 'a@[192.0.2.1]', 'x@y'])('%s is a mailbox', (value) => {
  expect(of(altNames({ kind: 'email', value }))).toEqual([])
})

test('GeneralizedTime before 1950 is an error: no encoding of RFC 5280 has that time', () => {
  expect(of({ notBefore: Date.UTC(1949, 0, 1) })).toEqual(['error validity_encoding'])
})

test('lint gives findings for any input, and never throws', () => {
  const tbs = fc.record({ serial, issuer: name, subject: name, notBefore: time, notAfter: time, extensions })
  fc.assert(
    fc.property(tbs, (fields) => {
      for (const { text, rule } of lint(writeTbs({ ...leaf, ...fields }))) expect([text, rule]).not.toContain('')
    }),
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(lint(Buffer.from(bytes))).toMatchObject([{ rule: 'malformed', severity: 'error' }])
    }),
  )
})
