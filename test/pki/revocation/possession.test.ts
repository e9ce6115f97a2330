import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { asn1, readAll, readOne, write, writeNumber } from '../../../src/crypto/der.ts'
import { writePem } from '../../../src/crypto/pem.ts'
import { provePossession, readPrivateKey } from '../../../src/engines/pki/revocation/possession.ts'
import { createCa, ecPair, type Pair } from './ca.ts'

const ca = createCa('Root')
const certify = ({ publicKey }: Pick<Pair, 'publicKey'>) => ca.sign({ publicKey })
const rsa: Pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ed25519: Pair = generateKeyPairSync('ed25519')
const p256 = ecPair()

type Form = 'pkcs1' | 'pkcs8' | 'sec1'
const pemOf = (key: KeyObject, type: Form): string => String(key.export({ format: 'pem', type } as never))

/** The refusal of revoke-with-key; '' if the key belongs to the certificate. */
async function refusal(certified: Pick<Pair, 'publicKey'>, pem: string): Promise<string> {
  try {
    const pkcs8 = await readPrivateKey(pem)
    await provePossession(certify(certified), pkcs8)
    return ''
  } catch (error) {
    expect(error).toMatchObject({ status: 400 })
    return (error as Error).message
  }
}

const otherType = "provided private key type does not match certificate's public key type"
const otherKey = "provided private key does not match certificate's public key"

describe('possession', () => {
  test.each<[string, Pair, readonly Form[]]>([
    ['rsa 1024', generateKeyPairSync('rsa', { modulusLength: 1024 }), ['pkcs1', 'pkcs8']],
    ['rsa 2048', rsa, ['pkcs1', 'pkcs8']],
    ['rsa-pss', generateKeyPairSync('rsa-pss', { modulusLength: 2048 }), ['pkcs8']],
    [
      'rsa-pss bound to SHA-512',
      generateKeyPairSync('rsa-pss', { modulusLength: 2048, hashAlgorithm: 'sha512', mgf1HashAlgorithm: 'sha512' }),
      ['pkcs8'],
    ],
    ['P-224', ecPair('P-224'), ['sec1', 'pkcs8']],
    ['P-256', p256, ['sec1', 'pkcs8']],
    ['P-384', ecPair('P-384'), ['sec1', 'pkcs8']],
    ['P-521', ecPair('P-521'), ['sec1', 'pkcs8']],
    ['ed25519', ed25519, ['pkcs8']],
  ])('is proved by a key of %s in each of its forms', async (_, pair, forms) => {
    for (const form of forms) expect([form, await refusal(pair, pemOf(pair.privateKey, form))]).toEqual([form, ''])
  })

  test('is not proved by a key of another type, size, curve or value', async () => {
    const pkcs8 = (pair: Pair) => pemOf(pair.privateKey, 'pkcs8')
    expect(await refusal(p256, pkcs8(rsa))).toBe(otherType)
    expect(await refusal(rsa, pkcs8(p256))).toBe(otherType)
    expect(await refusal(ed25519, pkcs8(p256))).toBe(otherType)
    expect(await refusal(p256, pkcs8(generateKeyPairSync('ed448')))).toBe(otherType)
    expect(await refusal(p256, pkcs8(ecPair('secp256k1')))).toBe(otherType)
    expect(await refusal(p256, pkcs8(ecPair('P-384')))).toBe(otherKey)
    expect(await refusal(p256, pkcs8(ecPair()))).toBe(otherKey)
    expect(await refusal(ed25519, pkcs8(generateKeyPairSync('ed25519')))).toBe(otherKey)
    expect(await refusal(rsa, pkcs8(generateKeyPairSync('rsa', { modulusLength: 2048 })))).toBe(otherKey)
  })

  test('is not proved by the public half of the certificate beside a private half of one’s own', async () => {
    const stranger = ecPair()
    const mine = readAll(readOne(stranger.privateKey.export({ format: 'der', type: 'sec1' }), asn1.sequence))
    const theirs = readAll(readOne(p256.privateKey.export({ format: 'der', type: 'sec1' }), asn1.sequence))
    const [version, scalar, curve] = mine
    const forged = write(
      asn1.sequence,
      ...[version, scalar, curve, theirs[3]].map((one) => (one ? write(one.tag, one.contents) : Buffer.alloc(0))),
    )
    // node:crypto believes it.
    const believed = createPrivateKey({ key: forged, format: 'der', type: 'sec1' })
    expect(believed.asymmetricKeyType).toBe('ec')
    expect(await refusal(p256, writePem('EC PRIVATE KEY', forged))).toBe(otherKey)
  })

  test('is not proved by the modulus of the certificate beside any other numbers', async () => {
    const numbers = readAll(readOne(rsa.privateKey.export({ format: 'der', type: 'pkcs1' }), asn1.sequence))
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    const others = readAll(readOne(other.export({ format: 'der', type: 'pkcs1' }), asn1.sequence))
    const encode = (parts: readonly Buffer[]) => writePem('RSA PRIVATE KEY', write(asn1.sequence, ...parts))
    const own = numbers.map(({ tag, contents }) => write(tag, contents))
    const [version, modulus, exponent] = own
    if (!version || !modulus || !exponent) throw new Error('not a key')
    const strange = [
      ...[0, 1, 2, 3].map((value) => writeNumber(Buffer.from([value]))),
      write(asn1.integer, Buffer.from([0xff])),
      write(asn1.integer, Buffer.alloc(1000, 0x7f)),
    ]
    const rest = others.slice(3).map(({ tag, contents }) => write(tag, contents))
    expect(await refusal(rsa, encode([version, modulus, exponent, ...rest]))).not.toBe('')
    for (const value of strange) {
      expect(await refusal(rsa, encode([version, modulus, exponent, ...rest.map(() => value)]))).not.toBe('')
    }
    const long = write(asn1.integer, Buffer.alloc(100_000, 0x7f))
    expect(await refusal(rsa, encode([version, modulus, exponent, ...rest.map(() => long)]))).not.toBe('')
  })
})

describe('a private key of a request', () => {
  const pem = pemOf(p256.privateKey, 'pkcs8')
  const one = 'private_key must be exactly one private key in PEM'
  test.each([
    ['a path', '/tmp/key.pem', /^Provided data for private_key was too short; perhaps a path was passed/],
    ['no PEM', 'x'.repeat(100), /^private_key: error when parsing block 1: invalid PEM data$/],
    ['two keys', pem + pem, one],
    ['a certificate beside it', pem + writePem('CERTIFICATE', ca.certificate.der), one],
    ['a certificate', writePem('CERTIFICATE', ca.certificate.der), one],
    ['a public key', String(p256.publicKey.export({ format: 'pem', type: 'spki' })), /^private_key: /],
    [
      'an encrypted key',
      String(p256.privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' })),
      /^private_key: .*is encrypted; decrypt it first/,
    ],
    ['rubbish', writePem('PRIVATE KEY', Buffer.alloc(100, 0x30)), /^private_key: /],
    [
      'numbers of no key',
      writePem(
        'RSA PRIVATE KEY',
        write(asn1.sequence, ...Array.from({ length: 9 }, () => writeNumber(Buffer.alloc(1)))),
      ),
      /./,
    ],
  ])('that is %s is refused', async (_, text, expected) => {
    const said = await refusal(p256, text)
    if (typeof expected === 'string') expect(said).toBe(expected)
    else expect(said).toMatch(expected)
  })

  test('may have text and EC parameters before it', async () => {
    const sec1 = pemOf(p256.privateKey, 'sec1')
    const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n'
    expect(await refusal(p256, `a key\n${parameters}${sec1}`)).toBe('')
  })
})
