import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { writePem } from '../../src/crypto/pem.ts'
import { readBundle } from '../../src/x509/bundle.ts'
import { Malformed } from '../../src/x509/malformed.ts'
import { ecPair, makeCa, pemOf, useOpenssl } from './authority.ts'

const openssl = useOpenssl()
const root = makeCa('Root')
const middle = makeCa('Middle', root)
const pems = [middle, root].map(({ certificate }) => pemOf(certificate.der))
const ders = [middle, root].map(({ certificate }) => certificate.der)
const certificatesOf = async (text: string) => (await readBundle(text)).certificates.map(({ der }) => der)

const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
const ec = ecPair('P-521').privateKey
const ed25519 = generateKeyPairSync('ed25519').privateKey
const pem = (key: KeyObject, type: 'pkcs8' | 'pkcs1' | 'sec1') => key.export({ format: 'pem', type }).toString()

describe('certificates', () => {
  test('in PEM, with text between them, headers, both labels and either line end', async () => {
    expect(
      await certificatesOf(`first\n${pems[0]}\nsubject=CN: Root\n-----${pems[1]?.replaceAll('\n', '\r\n')}`),
    ).toEqual(ders)
    expect(
      await certificatesOf(
        pems.join('').replaceAll('BEGIN CERT', 'BEGIN X509 CERT').replaceAll('END CERT', 'END X509 CERT'),
      ),
    ).toEqual(ders)
    expect(
      await certificatesOf(
        pems
          .map((text) => text.replace('-----\n', '-----\nComment: a\n\n'))
          .join('')
          .trim(),
      ),
    ).toEqual(ders)
    expect(await certificatesOf(pems.map((text) => text.replaceAll('\n', '\n    ')).join(''))).toEqual(ders)
    expect(await certificatesOf(pems.map((text) => text.replaceAll('\n', '')).join(''))).toEqual(ders)
  })

  test('in PKCS#7 of openssl, in its own order', async () => {
    const files = pems.flatMap((text, index) => ['-certfile', openssl.put(`p7-${index}.pem`, text)])
    const bundle = openssl.run(['crl2pkcs7', '-nocrl', ...files])
    expect(bundle).toContain('BEGIN PKCS7')
    expect((await certificatesOf(bundle)).sort(Buffer.compare)).toEqual(ders.toSorted(Buffer.compare))
    expect(await certificatesOf(bundle.replaceAll('PKCS7', 'CMS'))).toHaveLength(2)
  })

  test('in PKCS#7 of indefinite lengths: the certificates keep their bytes', async () => {
    const indefinite = (tag: number, ...parts: readonly Buffer[]) =>
      Buffer.concat([Buffer.from([tag, 0x80]), ...parts, Buffer.alloc(2)])
    const oid = (hex: string) => Buffer.from(hex, 'hex')
    const signedData = indefinite(
      0x30,
      oid('020101'),
      oid('3100'),
      indefinite(0x30, oid('06092a864886f70d010701')),
      indefinite(0xa0, ...ders),
      oid('3100'),
    )
    const der = indefinite(0x30, oid('06092a864886f70d010702'), indefinite(0xa0, signedData))
    expect(await certificatesOf(writePem('PKCS7', der))).toEqual(ders)
  })

  test('lists and curve parameters are passed over', async () => {
    const ignored = ['X509 CRL', 'CRL', 'EC PARAMETERS', 'EC PARAMS'].map((label) =>
      writePem(label, Buffer.from([5, 0])),
    )
    expect(await readBundle([...ignored, pems[0], ''].join('\n'))).toMatchObject({
      certificates: [{ der: ders[0] }],
      keys: [],
    })
  })
})

describe('private keys', () => {
  test.each([
    ['PKCS#8 of RSA', pem(rsa, 'pkcs8'), rsa, 'PRIVATE KEY'],
    ['PKCS#1', pem(rsa, 'pkcs1'), rsa, 'RSA PRIVATE KEY'],
    ['PKCS#8 of EC', pem(ec, 'pkcs8'), ec, 'PRIVATE KEY'],
    ['SEC 1', pem(ec, 'sec1'), ec, 'EC PRIVATE KEY'],
    ['PKCS#8 of Ed25519', pem(ed25519, 'pkcs8'), ed25519, 'PRIVATE KEY'],
    ['a label of no meaning', pem(ec, 'sec1').replaceAll('EC PRIVATE', 'MY'), ec, 'MY KEY'],
  ])('%s becomes PKCS#8', async (_, text, key, label) => {
    const { keys, certificates } = await readBundle(`${text}${pems.join('')}`)
    expect(certificates).toHaveLength(2)
    expect(keys).toMatchObject([{ label }])
    const [{ pkcs8 } = { pkcs8: Buffer.alloc(0) }] = keys
    expect(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).equals(key)).toBe(true)
  })

  test('SEC 1 of openssl, with its parameters in a block of their own', async () => {
    const text = openssl.run(['ecparam', '-name', 'prime256v1', '-genkey'])
    expect(text).toContain('BEGIN EC PARAMETERS')
    const [key] = (await readBundle(text)).keys
    expect(
      createPrivateKey({ key: key?.pkcs8 ?? Buffer.alloc(0), format: 'der', type: 'pkcs8' }).asymmetricKeyType,
    ).toBe('ec')
  })

  test.each<[string, () => string, string]>([
    [
      'encrypted PKCS#8',
      () => rsa.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-128-cbc', passphrase: 'x' }).toString(),
      'is encrypted',
    ],
    [
      'encrypted PKCS#1',
      () => rsa.export({ format: 'pem', type: 'pkcs1', cipher: 'aes-128-cbc', passphrase: 'x' }).toString(),
      'is encrypted',
    ],
    [
      'explicit curve',
      () => openssl.run(['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-param_enc', 'explicit']),
      'named by its OID',
    ],
    ['three primes', () => openssl.run(['genrsa', '-traditional', '-primes', '3', '1536']), 'more than two primes'],
    ['public key', () => ecPair().publicKey.export({ format: 'pem', type: 'spki' }).toString(), 'private key'],
    ['garbage', () => writePem('PRIVATE KEY', Buffer.from('garbage')), 'private key'],
  ])('of an unfit kind: %s', async (_, text, why) => {
    await expect(readBundle(pems[0] + text())).rejects.toThrow(Malformed)
    await expect(readBundle(pems[0] + text())).rejects.toThrow(why)
    await expect(readBundle(pems[0] + text())).rejects.toThrow('block 2')
  })
})

describe('a bundle is refused whole', () => {
  test.each([
    ['without a block', 'no PEM at all', 'error when parsing block 1: invalid PEM data'],
    ['empty', '', 'error when parsing block 1: invalid PEM data'],
    [
      'with a block that does not end',
      `${pems[0]}${pems[1]?.slice(0, 200)}`,
      'error when parsing block 2: invalid PEM data',
    ],
    ['with an end of another label', pems.join('').replace('END CERT', 'END CART'), 'block 1'],
    ['with no base64', `${pems[0]?.replace('MII', 'M*I')}`, 'error when parsing block 1: invalid PEM data'],
    [
      'with a certificate cut short',
      writePem('CERTIFICATE', (ders[0] ?? Buffer.alloc(0)).subarray(0, -3)),
      'block 1 (CERTIFICATE)',
    ],
    ['with a certificate and more', writePem('CERTIFICATE', Buffer.concat([...ders])), 'block 1 (CERTIFICATE)'],
    ['with PKCS#7 that is none', writePem('PKCS7', Buffer.from('3003020101', 'hex')), 'PKCS#7'],
    ['with PKCS#7 and more', writePem('PKCS7', Buffer.concat([...ders])), 'PKCS#7'],
    ['with nesting without end', writePem('PKCS7', Buffer.alloc(20_000, Buffer.from('3080', 'hex'))), 'PKCS#7'],
    ['of too many blocks', pems[1]?.repeat(1001) ?? '', 'more than 1000 blocks'],
    ['of too many characters', ' '.repeat(4 * 1024 * 1024 + 1), 'longer than'],
  ])('%s', async (_, text, why) => {
    await expect(readBundle(text)).rejects.toThrow(Malformed)
    await expect(readBundle(text)).rejects.toThrow(why)
  })

  test('a million beginnings without an end cost one look', async () => {
    await expect(readBundle('-----BEGIN A-----\n'.repeat(200_000))).rejects.toThrow('block 1')
  })
})
