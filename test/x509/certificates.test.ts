import { createPublicKey, generateKeyPairSync, sign, X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Cursor } from '../../src/crypto/cursor.ts'
import { asn1, contextAround, write } from '../../src/crypto/der.ts'
import { extensionOf, keyIdentifierOf, readCertificate } from '../../src/x509/certificate.ts'
import { extensionOids } from '../../src/x509/extension.ts'
import { writeBasicConstraints } from '../../src/x509/extensions/basicconstraints.ts'
import { writeExtendedKeyUsage } from '../../src/x509/extensions/extendedkeyusage.ts'
import { writeSubjectAltName } from '../../src/x509/extensions/subjectaltname.ts'
import { Malformed } from '../../src/x509/malformed.ts'
import { withColons } from '../../src/x509/serial.ts'
import { verifySignature } from '../../src/x509/signature.ts'
import { readTbs, type Tbs, writeCertificate, writeTbs } from '../../src/x509/tbs.ts'
import { caExtensions, certify, ecPair, identifierOf, makeCa, named, pemOf, spkiOf, useOpenssl } from './authority.ts'
import { extensions, name, serial, time } from './generators.ts'

const openssl = useOpenssl()
const key = ecPair()
const spki = spkiOf(key)
const algorithm = identifierOf('ECDSAWithSHA256')
const fields = fc.record({
  serial,
  algorithm: fc.constant(algorithm),
  issuer: name,
  notBefore: time,
  notAfter: time,
  subject: name,
  spki: fc.constant(spki),
  extensions,
})

describe('written certificates are read again', () => {
  test('every TBSCertificate, and written again it is the same bytes', () => {
    fc.assert(
      fc.property(fields, (tbs) => {
        const der = writeTbs(tbs)
        expect(readTbs(der)).toEqual(tbs)
        expect(writeTbs(readTbs(der))).toEqual(der)
      }),
    )
  })

  test('every certificate; node:crypto reads the same serial number, times and key', () => {
    fc.assert(
      fc.property(fields, fc.uint8Array({ maxLength: 80 }), (tbs, signature) => {
        const inner = writeTbs(tbs)
        const der = writeCertificate(inner, algorithm, signature)
        const certificate = readCertificate(der)
        expect(certificate).toMatchObject({ ...tbs, der, tbs: inner, signature: Buffer.from(signature) })
        expect(certificate.isSelfIssued).toBe(tbs.issuer.equals(tbs.subject))
        const oracle = new X509Certificate(der)
        expect(BigInt(`0x${oracle.serialNumber}`)).toBe(BigInt(`0x${tbs.serial.toString('hex')}`))
        expect(oracle.publicKey.export({ format: 'der', type: 'spki' })).toEqual(spki)
        expect(Buffer.from(oracle.fingerprint256.replaceAll(':', ''), 'hex')).toEqual(certificate.fingerprint())
        const years = [tbs.notBefore, tbs.notAfter].map((at) => new Date(at).getUTCFullYear())
        if (years.every((year) => year > 100)) {
          expect([oracle.validFromDate.getTime(), oracle.validToDate.getTime()]).toEqual([tbs.notBefore, tbs.notAfter])
        }
      }),
      { numRuns: 60 },
    )
  })
})

describe('a certificate of openssl', () => {
  const config = openssl.put(
    'ca.cnf',
    `[req]\ndistinguished_name=dn\nx509_extensions=v3\nprompt=no\n[dn]\nC=DE\nO=Example\nCN=Root\n[v3]
basicConstraints=critical,CA:TRUE,pathlen:3\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash
authorityKeyIdentifier=keyid:always\nsubjectAltName=DNS:a.example,email:b@example,URI:https://c.example/,IP:10.0.0.1,IP:::1
extendedKeyUsage=serverAuth\nnameConstraints=critical,permitted;DNS:example,excluded;IP:10.0.0.0/255.0.0.0\n`,
  )
  const make = (args: readonly string[]): Buffer => {
    const pem = openssl.run([
      'req',
      '-x509',
      '-nodes',
      '-config',
      config,
      '-keyout',
      '/dev/null',
      '-days',
      '9',
      ...args,
    ])
    return Buffer.from(pem.replaceAll(/-----[^-]*-----|\s/g, ''), 'base64')
  }

  test.each([
    ['P-256', ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], 'ec'],
    ['P-224', ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-224'], 'ec'],
    ['RSA', ['-newkey', 'rsa:2048'], 'rsa'],
    [
      'RSA with PSS',
      ['-newkey', 'rsa:2048', '-sigopt', 'rsa_padding_mode:pss', '-sigopt', 'rsa_pss_saltlen:32'],
      'rsa',
    ],
    ['an RSA-PSS key', ['-newkey', 'rsa-pss', '-pkeyopt', 'rsa_keygen_bits:2048'], 'rsa-pss'],
    ['SHA-1', ['-newkey', 'rsa:2048', '-sha1'], 'rsa'],
    ['Ed25519', ['-newkey', 'ed25519'], 'ed25519'],
  ])('%s is read and verified', (_, args, type) => {
    const certificate = readCertificate(make(args))
    const { tbs, signature } = certificate
    expect(certificate).toMatchObject({
      basicConstraints: { ca: true, pathLength: 3 },
      keyUsage: ['CertSign', 'CRLSign'],
      extendedKeyUsage: ['1.3.6.1.5.5.7.3.1'],
      isCa: true,
      isSelfIssued: true,
      subjectAltName: [
        { kind: 'dns', value: 'a.example' },
        { kind: 'email', value: 'b@example' },
        { kind: 'uri', value: 'https://c.example/' },
        { kind: 'ip', value: Buffer.from([10, 0, 0, 1]) },
        { kind: 'ip', value: Buffer.from([...Array(15).fill(0), 1]) },
      ],
      nameConstraints: {
        permitted: [{ kind: 'dns', value: 'example' }],
        excluded: [{ kind: 'ip', value: Buffer.from('0a000000ff000000', 'hex') }],
      },
    })
    expect(certificate.subjectKeyId).toEqual(keyIdentifierOf(certificate.spki))
    expect(certificate.authorityKeyId).toEqual(certificate.subjectKeyId)
    expect(certificate.publicKey().asymmetricKeyType).toBe(type)
    const publicKey = certificate.publicKey()
    expect(verifySignature({ publicKey, algorithm: certificate.algorithm, data: tbs, signature })).toBe(true)
    const wrong = Buffer.concat([tbs, Buffer.alloc(1)])
    expect(verifySignature({ publicKey, algorithm: certificate.algorithm, data: wrong, signature })).toBe(false)
  })
})

test('openssl verifies a chain of three strictly, and shows the extensions that were written', () => {
  const root = makeCa('Root')
  const middle = makeCa('Middle', root, { pathLength: 0 })
  const leafKey = ecPair()
  const names = [
    { kind: 'dns', value: 'www.example.com' },
    { kind: 'ip', value: Buffer.from([127, 0, 0, 1]) },
  ] as const
  const [, , ...identifiers] = caExtensions(leafKey, middle.key)
  const leaf = certify({
    subject: named('www.example.com'),
    key: leafKey,
    issuer: middle.subject,
    signer: middle.key,
    serial: Buffer.from('8001', 'hex'),
    extensions: [...identifiers, writeSubjectAltName(names), writeExtendedKeyUsage(['1.3.6.1.5.5.7.3.1'])],
  })
  const [rootFile, middleFile, leafFile] = [root.certificate.der, middle.certificate.der, leaf].map((der, index) =>
    openssl.put(`chain${index}.pem`, pemOf(der)),
  )
  const verify = [
    'verify',
    '-x509_strict',
    '-purpose',
    'sslserver',
    '-CAfile',
    `${rootFile}`,
    '-untrusted',
    `${middleFile}`,
  ]
  expect(openssl.run([...verify, '-verify_hostname', 'www.example.com', `${leafFile}`])).toContain('OK')
  expect(() => openssl.run([...verify, '-verify_hostname', 'example.org', `${leafFile}`])).toThrow()
  expect(openssl.run(['x509', '-in', `${leafFile}`, '-noout', '-serial']).trim()).toBe('serial=8001')
  expect(withColons(readCertificate(leaf).serial)).toBe('80:01')
})

describe('by hand', () => {
  const parts: Tbs = {
    serial: Buffer.from([1]),
    algorithm,
    issuer: named('a'),
    notBefore: 0,
    notAfter: 0,
    subject: named('a'),
    spki,
    extensions: [],
  }
  /** The elements of a TBSCertificate without its version: serial number, algorithm, issuer, validity, subject, key. */
  const elementsOf = (der: Buffer): Buffer[] => {
    const tbs = new Cursor(der).enter(asn1.sequence)
    tbs.skip(contextAround(0))
    const elements: Buffer[] = []
    while (tbs.more) elements.push(tbs.element())
    return elements
  }
  const usual = elementsOf(writeTbs(parts))
  const version = (number: number) => write(contextAround(0), write(asn1.integer, Buffer.from([number])))
  const certificate = (inner: Buffer, outer = algorithm) =>
    writeCertificate(inner, outer, sign('sha256', inner, key.privateKey))
  const assemble = (...elements: readonly Buffer[]) => certificate(write(asn1.sequence, ...elements))
  const withSerial = (hex: string) => assemble(version(2), Buffer.from(hex, 'hex'), ...usual.slice(1))

  test('a certificate of version 1 has no extensions and is not a CA', () => {
    const read = readCertificate(assemble(...usual))
    expect(read).toMatchObject({ isCa: false, extensions: [], basicConstraints: undefined, keyUsage: undefined })
  })

  test.each<[string, Buffer, string]>([
    [
      'two signature algorithms',
      certificate(writeTbs(parts), identifierOf('ECDSAWithSHA384')),
      'two signature algorithms',
    ],
    ['version 2', assemble(version(1), ...usual), 'only X.509 v1 and v3'],
    ['version 1 that is written out', assemble(version(0), ...usual), 'only X.509 v1 and v3'],
    ['a negative serial number', withSerial('0201ff'), 'negative'],
    ['a serial number of 21 bytes', withSerial(`0215${'11'.repeat(21)}`), 'more than 20 bytes'],
    ['a padded serial number', withSerial('02020001'), 'not in its shortest form'],
    ['extensions in version 1', assemble(...usual, write(contextAround(3), write(asn1.sequence))), 'too many'],
    [
      'an empty list of extensions',
      assemble(version(2), ...usual, write(contextAround(3), write(asn1.sequence))),
      'is empty',
    ],
    ['unique identifiers', assemble(version(2), ...usual, Buffer.from('8102000f', 'hex')), 'another kind'],
    ['a subject with a null byte', certificate(writeTbs({ ...parts, subject: named('a\0b') })), 'null byte'],
    ['an issuer with a null byte', certificate(writeTbs({ ...parts, issuer: named('a\0b') })), 'null byte'],
    [
      'a known extension that cannot be read',
      certificate(
        writeTbs({
          ...parts,
          extensions: [{ oid: extensionOids.basicConstraints, critical: true, value: Buffer.alloc(1) }],
        }),
      ),
      'basicConstraints',
    ],
    [
      'a signature of odd bits',
      write(asn1.sequence, writeTbs(parts), algorithm, write(asn1.bitString, Buffer.from([1, 2]))),
      'unused bits',
    ],
  ])('%s is refused with a reason', (_, der, why) => {
    expect(() => readCertificate(der)).toThrow(Malformed)
    expect(() => readCertificate(der)).toThrow(why)
  })
})

test('an extension is found by its OID', () => {
  const { certificate } = makeCa('Root')
  expect(extensionOf(certificate, extensionOids.basicConstraints)).toMatchObject(writeBasicConstraints({ ca: true }))
  expect(extensionOf(certificate, extensionOids.noRevAvail)).toBeUndefined()
})

test('key identifiers are SHA-1 over the key bits alone, as openssl has them', () => {
  for (const { publicKey } of [
    ecPair('P-384'),
    generateKeyPairSync('rsa', { modulusLength: 1024 }),
    generateKeyPairSync('ed25519'),
  ]) {
    const der = publicKey.export({ format: 'der', type: 'spki' })
    const parsed = openssl.run(['asn1parse', '-inform', 'der'], der)
    const [, at, hl] = /^ *(\d+):d=1 +hl=(\d+).*BIT STRING/m.exec(parsed) ?? []
    const bits = der.subarray(Number(at) + Number(hl) + 1)
    const digest = openssl.run(['dgst', '-sha1', '-r'], bits).split(' ')[0]
    expect(keyIdentifierOf(der).toString('hex')).toBe(digest)
  }
})

test('a key that node:crypto cannot make is an error of the certificate, and only when it is asked for', () => {
  const broken = Buffer.from(spki)
  broken[broken.length - 1] = (broken[broken.length - 1] ?? 0) ^ 1
  expect(() => createPublicKey({ key: broken, format: 'der', type: 'spki' })).toThrow()
  const tbs = writeTbs({
    serial: Buffer.from([1]),
    algorithm,
    issuer: named('a'),
    notBefore: 0,
    notAfter: 0,
    subject: named('a'),
    spki: broken,
    extensions: [],
  })
  const certificate = readCertificate(writeCertificate(tbs, algorithm, Buffer.alloc(8)))
  expect(() => certificate.publicKey()).toThrow(Malformed)
})
