import { generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { asn1, contextAround, write } from '../../src/crypto/der.ts'
import { writeOid } from '../../src/crypto/oid.ts'
import { type Extension, extensionOids, writeExtension } from '../../src/x509/extension.ts'
import { readBasicConstraints, writeBasicConstraints } from '../../src/x509/extensions/basicconstraints.ts'
import { readSubjectAltName, writeSubjectAltName } from '../../src/x509/extensions/subjectaltname.ts'
import { Malformed } from '../../src/x509/malformed.ts'
import { commonNameOf } from '../../src/x509/name.ts'
import { makeRequest, makeTemplate, readRequest, readTemplate, verifyRequest } from '../../src/x509/request.ts'
import { ecPair, identifierOf, named, type Pair, spkiOf, useOpenssl } from './authority.ts'
import { extensions, name } from './generators.ts'

const openssl = useOpenssl()
const key = ecPair()
const algorithm = identifierOf('ECDSAWithSHA256')
const extensionRequest = '1.2.840.113549.1.9.14'
const microsoftRequest = '1.3.6.1.4.1.311.2.1.14'

/** A request with these attributes unchanged, correctly signed. */
const request = (attributes: Buffer, subject = named('a'), spki = spkiOf(key), pair: Pair = key): Promise<Buffer> =>
  makeRequest({ spki, algorithm }, { subject, attributes }, (info) => sign('sha256', info, pair.privateKey))
const attributes = (...list: readonly Buffer[]): Buffer => write(contextAround(0), ...list)
const attribute = (oid: string, ...values: readonly Buffer[]): Buffer =>
  write(asn1.sequence, writeOid(oid), write(asn1.set, ...values))
const asking = (list: readonly Extension[], oid = extensionRequest): Buffer =>
  attribute(oid, write(asn1.sequence, ...list.map(writeExtension)))
const none = attributes()

describe('a request', () => {
  test('is read as it was made', async () => {
    await fc.assert(
      fc.asyncProperty(name, extensions, async (subject, list) => {
        const der = await request(makeTemplate(subject, list).attributes, subject)
        const read = readRequest(der)
        expect(read).toMatchObject({ der, subject, spki: spkiOf(key), extensions: list, algorithm })
        expect(verifyRequest(read)).toBe(true)
        expect(readTemplate(der)).toEqual(makeTemplate(subject, list))
      }),
      { numRuns: 50 },
    )
  })

  test('openssl verifies it and shows the names and constraints it asks for', async () => {
    const list = [writeSubjectAltName([{ kind: 'dns', value: 'www.example.com' }]), writeBasicConstraints({ ca: true })]
    const der = await request(makeTemplate(named('www.example.com'), list).attributes)
    const shown = openssl.run([
      'req',
      '-inform',
      'der',
      '-noout',
      '-verify',
      '-text',
      '-in',
      openssl.put('own.csr', der),
    ])
    expect(shown).toMatch(/DNS:www\.example\.com[\s\S]*CA:TRUE/)
  })

  test.each([
    ['P-256', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], { family: 'ec', curve: 'P-256', bits: 256 }],
    ['P-224', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-224'], { family: 'ec', curve: 'P-224', bits: 224 }],
    ['P-521', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-521'], { family: 'ec', curve: 'P-521', bits: 521 }],
    ['RSA', ['rsa:2048'], { family: 'rsa', bits: 2048, exponent: 65537n, pssOnly: false }],
    ['weak RSA', ['rsa:1024', '-pkeyopt', 'rsa_keygen_pubexp:3'], { family: 'rsa', bits: 1024, exponent: 3n }],
    ['RSA-PSS', ['rsa-pss', '-pkeyopt', 'rsa_keygen_bits:2048'], { family: 'rsa', bits: 2048, pssOnly: true }],
    ['Ed25519', ['ed25519'], { family: 'ed25519', bits: 256 }],
  ])('of openssl with a key of %s is read and verified, and its key described', (_, newkey, subjectKey) => {
    const names = ['-subj', '/C=DE/CN=www.example.com', '-addext', 'subjectAltName=DNS:www.example.com,IP:10.0.0.1']
    const args = ['req', '-new', '-nodes', '-keyout', '/dev/null', '-outform', 'der', '-out']
    const file = openssl.put('theirs.csr', '')
    openssl.run([...args, file, ...names, '-newkey', ...newkey])
    const read = readRequest(openssl.read('theirs.csr'))
    expect(read.subjectKey).toMatchObject(subjectKey)
    expect(commonNameOf(read.subject)).toBe('www.example.com')
    const altNames = read.extensions.find(({ oid }) => oid === extensionOids.subjectAltName)
    expect(readSubjectAltName(altNames?.value ?? Buffer.alloc(0))).toEqual([
      { kind: 'dns', value: 'www.example.com' },
      { kind: 'ip', value: Buffer.from([10, 0, 0, 1]) },
    ])
    expect(verifyRequest(read)).toBe(true)
  })

  test('attributes may be absent, and others than extensions are kept', async () => {
    const bare = await request(Buffer.alloc(0))
    expect(readRequest(bare)).toMatchObject({ attributes: [], extensions: [] })
    const password = write(asn1.utf8String, Buffer.from('secret'))
    const read = readRequest(await request(attributes(attribute('1.2.840.113549.1.9.7', password))))
    expect(read.attributes).toEqual([{ type: '1.2.840.113549.1.9.7', values: [password] }])
  })

  test("Microsoft's attribute asks for extensions too", async () => {
    const wanted = writeBasicConstraints({ ca: true })
    expect(readRequest(await request(attributes(asking([wanted], microsoftRequest)))).extensions).toEqual([wanted])
  })
})

describe('an attack by request', () => {
  const oaep = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const rsaSpki = (modulus: Buffer, exponent: Buffer): Buffer =>
    write(
      asn1.sequence,
      write(asn1.sequence, writeOid('1.2.840.113549.1.1.1'), write(asn1.null)),
      write(
        asn1.bitString,
        Buffer.alloc(1),
        write(asn1.sequence, write(asn1.integer, modulus), write(asn1.integer, exponent)),
      ),
    )
  const modulus = Buffer.concat([Buffer.alloc(1), Buffer.alloc(255, 0xff)])
  const ecSpki = (curve: Buffer, point: Buffer): Buffer =>
    write(
      asn1.sequence,
      write(asn1.sequence, writeOid('1.2.840.10045.2.1'), curve),
      write(asn1.bitString, Buffer.alloc(1), point),
    )
  const point = Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 1)])
  const p256 = writeOid('1.2.840.10045.3.1.7')
  const wanted = writeBasicConstraints({ ca: true })

  test.each<[string, () => Promise<Buffer>, string]>([
    ['explicit curve', () => request(none, named('a'), ecSpki(write(asn1.sequence), point)), 'named by its OID'],
    ['secp256k1', () => request(none, named('a'), ecSpki(writeOid('1.3.132.0.10'), point)), '1.3.132.0.10'],
    ['no curve', () => request(none, named('a'), ecSpki(Buffer.alloc(0), point)), 'named by its OID'],
    ['curve and more', () => request(none, named('a'), ecSpki(Buffer.concat([p256, p256]), point)), 'too many'],
    ['point at infinity', () => request(none, named('a'), ecSpki(p256, Buffer.alloc(1))), 'not an uncompressed point'],
    [
      'compressed point',
      () => request(none, named('a'), ecSpki(p256, Buffer.alloc(33, 2))),
      'not an uncompressed point',
    ],
    ['exponent 1', () => request(none, named('a'), rsaSpki(modulus, Buffer.from([1]))), 'exponent'],
    ['even exponent', () => request(none, named('a'), rsaSpki(modulus, Buffer.from([4]))), 'exponent'],
    ['huge exponent', () => request(none, named('a'), rsaSpki(modulus, Buffer.alloc(200, 0x7f))), 'exponent'],
    ['even modulus', () => request(none, named('a'), rsaSpki(Buffer.alloc(256, 0x7e), Buffer.from([3]))), 'modulus'],
    [
      'negative modulus',
      () => request(none, named('a'), rsaSpki(Buffer.alloc(256, 0x81), Buffer.from([3]))),
      'modulus',
    ],
    ['huge modulus', () => request(none, named('a'), rsaSpki(Buffer.alloc(4096, 0x7f), Buffer.from([3]))), '16384'],
    ['padded exponent', () => request(none, named('a'), rsaSpki(modulus, Buffer.from([0, 3]))), 'shortest form'],
    [
      'DSA',
      () => request(none, named('a'), write(asn1.sequence, write(asn1.sequence, writeOid('1.2.840.10040.4.1')))),
      'not supported',
    ],
    ['subject with a null byte', () => request(none, named('a\0.example.com')), 'null byte'],
    [
      'subject of nested SETs',
      () => request(none, write(asn1.sequence, write(asn1.set, write(asn1.set)))),
      'another kind',
    ],
    ['attribute twice', () => request(attributes(attribute('1.2.3'), attribute('1.2.3'))), 'comes twice'],
    [
      'two extension requests',
      () => request(attributes(asking([]), asking([wanted], microsoftRequest))),
      'two attributes',
    ],
    ['extension twice', () => request(attributes(asking([wanted, wanted]))), 'comes twice'],
    [
      'extension request of two values',
      () => request(attributes(attribute(extensionRequest, wanted.value, wanted.value))),
      'one value',
    ],
    ['extension request of no value', () => request(attributes(attribute(extensionRequest))), 'one value'],
    [
      'extension request in a SET',
      () => request(attributes(attribute(extensionRequest, write(asn1.set)))),
      'another kind',
    ],
    ['attributes twice', () => request(Buffer.concat([none, none])), 'too many'],
    ['indefinite length', () => request(Buffer.from('a0800000', 'hex')), 'a length has an unknown form'],
    [
      'hundred and one attributes',
      () => request(attributes(...Array.from({ length: 101 }, (_, arc) => attribute(`1.2.${arc}`)))),
      'more than 100',
    ],
  ])('%s is refused with a reason', async (_, make, why) => {
    const der = await make()
    expect(() => readRequest(der)).toThrow(Malformed)
    expect(() => readRequest(der)).toThrow(why)
  })

  test('trailing bytes are refused', async () => {
    const der = await request(none)
    expect(() => readRequest(Buffer.concat([der, Buffer.alloc(1)]))).toThrow(Malformed)
  })

  test('a point off the curve is refused before the signature is looked at', async () => {
    const read = readRequest(await request(none, named('a'), ecSpki(p256, point)))
    expect(() => verifyRequest(read)).toThrow(Malformed)
  })

  test('an Ed25519 point of small order, under which anything verifies, is refused', async () => {
    const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from([1]), Buffer.alloc(31)])
    const read = readRequest(await request(none, named('a'), spki))
    expect(() => verifyRequest(read)).toThrow('small order')
  })

  test('its contents are reported, never trusted: CA, unknown critical extensions, weak keys', async () => {
    const unknown = { oid: '1.2.3.4', critical: true, value: Buffer.from('0500', 'hex') }
    const read = readRequest(
      await request(attributes(asking([wanted, unknown])), named('a'), rsaSpki(modulus, Buffer.from([3]))),
    )
    expect(read.extensions).toEqual([wanted, unknown])
    expect(readBasicConstraints(read.extensions[0]?.value ?? Buffer.alloc(0))).toEqual({ ca: true })
    expect(read.subjectKey).toMatchObject({ family: 'rsa', bits: 2040, exponent: 3n })
  })

  test("a signature of another key, or over other bytes, or of another algorithm's name is not its own", async () => {
    const stolen = spkiOf(ecPair())
    expect(verifyRequest(readRequest(await request(none, named('a'), stolen)))).toBe(false)
    expect(verifyRequest(readRequest(await request(none, named('a'), spkiOf(oaep))))).toBe(false)
    const der = await request(none, named('abc'))
    der[der.indexOf('abc')] = 0x41
    expect(verifyRequest(readRequest(der))).toBe(false)
    for (const name of ['ECDSAWithSHA384', 'SHA256WithRSA', 'Ed25519']) {
      const { info, signature } = readRequest(await request(none))
      const other = write(asn1.sequence, info, identifierOf(name), write(asn1.bitString, Buffer.alloc(1), signature))
      expect(verifyRequest(readRequest(other))).toBe(false)
    }
  })

  test('homographs stay unchanged', async () => {
    const subject = named('раypal.example')
    expect(commonNameOf(readRequest(await request(none, subject)).subject)).toBe('раypal.example')
    expect(commonNameOf(subject)).not.toBe('paypal.example')
  })
})
