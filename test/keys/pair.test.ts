import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { asn1, write, writeNumber } from '../../src/crypto/der.ts'
import { ApiError } from '../../src/errors.ts'
import type { PairAlgorithm } from '../../src/keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../src/keys/algorithms.ts'
import { readPair, writePkcs8 } from '../../src/keys/making/pair.ts'

const pkcs8 = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'pkcs8' })
const pairOf = (type: string): PairAlgorithm => {
  const algorithm = algorithmOf(type)
  if (algorithm.class === 'secret') throw new Error('no pair')
  return algorithm
}
const samples = {
  'ecdsa-p256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  'ecdsa-p384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  'ecdsa-p521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
  ed25519: () => generateKeyPairSync('ed25519').privateKey,
  'rsa-2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
} as const
type Sample = keyof typeof samples
const names = Object.keys(samples) as Sample[]
const rsa = samples['rsa-2048']()

const refused = async (type: string, der: Buffer): Promise<string> => {
  const error: unknown = await readPair(pairOf(type), der).then(
    () => undefined,
    (thrown) => thrown,
  )
  if (!(error instanceof ApiError) || error.status !== 400) throw error ?? new Error('it was taken')
  return error.message
}

describe('PKCS#8', () => {
  test.each(names)('is read and written again as the same key: %s', async (type) => {
    const key = samples[type]()
    const pair = await readPair(pairOf(type), pkcs8(key))
    expect(pair.publicKey.equals(createPublicKey(key))).toBe(true)
    const again = createPrivateKey({ key: writePkcs8(pair), format: 'der', type: 'pkcs8' })
    expect(again.equals(key)).toBe(true)
  })

  test('of another type, curve or size is refused by name', async () => {
    const [p256, p384, ed] = [samples['ecdsa-p256'](), samples['ecdsa-p384'](), samples.ed25519()]
    expect(await refused('ecdsa-p256', pkcs8(p384))).toBe('invalid curve: expected P-256, got P-384')
    expect(await refused('ecdsa-p256', pkcs8(ed))).toBe('invalid key type: expected ecdsa, got ed25519')
    expect(await refused('ed25519', pkcs8(p256))).toBe('invalid key type: expected ed25519, got ecdsa')
    expect(await refused('rsa-2048', pkcs8(p256))).toBe('invalid key type: expected rsa, got ecdsa')
    expect(await refused('rsa-3072', pkcs8(rsa))).toBe('invalid key size: expected 384 bytes, got 256 bytes')
    const koblitz = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey
    expect(await refused('ecdsa-p256', pkcs8(koblitz))).toBe('invalid curve: expected P-256, got an unknown one')
  })

  const sha256 = { hashAlgorithm: 'sha256', mgf1HashAlgorithm: 'sha256', saltLength: 32 }
  test.each([{}, sha256])('with the PSS identifier is an RSA key, with parameters %j', async (parameters) => {
    const { privateKey } = generateKeyPairSync('rsa-pss', { modulusLength: 2048, ...parameters })
    const pair = await readPair(pairOf('rsa-2048'), pkcs8(privateKey))
    expect(createPrivateKey({ key: writePkcs8(pair), format: 'der', type: 'pkcs8' }).asymmetricKeyType).toBe('rsa')
  })

  test('with anything but NULL behind the RSA identifier is refused', async () => {
    const der = pkcs8(rsa)
    const at = der.indexOf(Buffer.from('06092a864886f70d0101010500', 'hex')) + 11
    for (const tag of [0x04, 0x06, 0x30]) {
      const forged = Buffer.from(der)
      forged[at] = tag
      await expect(readPair(pairOf('rsa-2048'), forged)).rejects.toMatchObject({ status: 400 })
    }
  })

  test.each(['06032b6570', '06092b06010401da470f01'])(
    'of EC form with the curve %s is an Ed25519 key',
    async (curve) => {
      const key = samples.ed25519()
      const seed = Buffer.from(key.export({ format: 'jwk' }).d ?? '', 'base64url')
      const identifier = write(asn1.sequence, Buffer.from('06072a8648ce3d0201', 'hex'), Buffer.from(curve, 'hex'))
      const wrapped = (inner: Buffer) =>
        write(asn1.sequence, writeNumber(Buffer.alloc(0)), identifier, write(asn1.octetString, inner))
      const ecKey = write(asn1.sequence, writeNumber(Buffer.from([1])), write(asn1.octetString, seed))
      for (const inner of [ecKey, seed, write(asn1.octetString, seed)]) {
        const pair = await readPair(pairOf('ed25519'), wrapped(inner))
        expect(pair.publicKey.equals(createPublicKey(key))).toBe(true)
      }
      expect(await refused('ed25519', wrapped(seed.subarray(1)))).toMatch(/^error parsing asymmetric key/)
    },
  )
})

describe('an RSA key is refused', () => {
  const { n, e, d, p, q } = rsa.export({ format: 'jwk' })
  const number = (text: string | undefined) => BigInt(`0x${Buffer.from(text ?? '', 'base64url').toString('hex')}`)
  const sound = { n: number(n), e: number(e), d: number(d), p: number(p), q: number(q) }
  const inverseOf = (a: bigint, m: bigint): bigint => {
    let [r, s, x, y] = [a % m, m, 1n, 0n]
    while (r > 1n) [r, s, x, y] = [s % r, r, y - (s / r) * x, x]
    return ((x % m) + m) % m
  }
  const encode = (k: typeof sound, more: Partial<Record<'dp' | 'dq' | 'qi', bigint>> = {}): Buffer => {
    const dp = more.dp ?? k.d % (k.p - 1n)
    const dq = more.dq ?? k.d % (k.q - 1n)
    const qi = more.qi ?? inverseOf(k.q, k.p)
    const bytes = [k.n, k.e, k.d, k.p, k.q, dp, dq, qi].map((one) => {
      const hex = one.toString(16)
      return writeNumber(Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex'))
    })
    const inner = write(asn1.sequence, writeNumber(Buffer.alloc(0)), ...bytes)
    return writePkcs8({ algorithm: pairOf('rsa-2048'), inner })
  }

  test('not when it is sound', async () => {
    const pair = await readPair(pairOf('rsa-2048'), encode(sound))
    expect(pair.publicKey.equals(createPublicKey(rsa))).toBe(true)
  })

  test.each([
    ['whose primes are not those of the modulus', encode({ ...sound, p: sound.p + 2n })],
    ['with the modulus as a prime', encode({ ...sound, p: sound.n, q: 2n })],
    ['with primes much longer than the modulus', encode({ ...sound, p: 2n ** 400_000n, q: 2n ** 400_000n + 1n })],
    ['with a private exponent much longer than the modulus', encode({ ...sound, d: 2n ** 400_000n })],
    ['whose private exponent is another', encode({ ...sound, d: sound.d + 2n })],
    ['with a wrong CRT exponent', encode(sound, { dp: 5n })],
    ['with a wrong CRT coefficient', encode(sound, { qi: 5n })],
  ])('%s', async (_, der) => {
    expect(await refused('rsa-2048', der)).toBe('error parsing asymmetric key: its numbers do not belong together')
  })

  test.each([1n, 2n, 65536n, 2n ** 33n + 1n])('with the public exponent %s', async (exponent) => {
    const text = 'error parsing asymmetric key: its public exponent is out of range'
    expect(await refused('rsa-2048', encode({ ...sound, e: exponent }))).toBe(text)
  })

  test('whose primes are none, though every equation holds', async () => {
    for (let at = 0; at < 1000; at++) {
      const digits = createHash('sha512').update(`composite ${at}`).digest('hex').repeat(2)
      const other = BigInt(`0x${digits}`) | (3n << 1022n) | 1n
      const order = (sound.p - 1n) * (other - 1n)
      if (other % 3n !== 0n || (other * sound.p).toString(2).length !== 2048 || order % sound.e === 0n) continue
      const key = { n: sound.p * other, e: sound.e, d: inverseOf(sound.e, order), p: sound.p, q: other }
      expect(await refused('rsa-2048', encode(key))).toBe('error parsing asymmetric key: its primes are none')
      return
    }
    throw new Error('no candidate')
  })
})

describe('an EC key is refused', () => {
  const algorithm = pairOf('ecdsa-p256')
  const order = 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551'
  const encode = (scalar: Buffer, ...optional: Buffer[]): Buffer =>
    writePkcs8({
      algorithm,
      inner: write(asn1.sequence, writeNumber(Buffer.from([1])), write(asn1.octetString, scalar), ...optional),
    })
  const point = (bytes: Buffer): Buffer => write(0xa1, write(asn1.bitString, Buffer.alloc(1), bytes))

  test.each([
    ['with the scalar 0', Buffer.alloc(32)],
    ['with the order as its scalar', Buffer.from(order, 'hex')],
    ['with a scalar beyond the order', Buffer.alloc(32, 255)],
    ['with a scalar of 200 bytes', Buffer.alloc(200, 1)],
    ['without a scalar', Buffer.alloc(0)],
  ])('%s', async (_, scalar) => {
    expect(await refused('ecdsa-p256', encode(scalar))).toMatch(/^error parsing asymmetric key/)
  })

  test('whose public key is not on the curve, or another’s', async () => {
    const scalar = Buffer.alloc(32, 7)
    const { x, y } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
    const coordinates = [x, y].map((one) => Buffer.from(one ?? '', 'base64url'))
    const theirs = Buffer.concat([Buffer.from([4]), ...coordinates])
    const off = Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 1)])
    for (const bytes of [off, theirs, Buffer.alloc(0), Buffer.from([0])]) {
      const text = 'error parsing asymmetric key: its public key is not that of its private key'
      expect(await refused('ecdsa-p256', encode(scalar, point(bytes)))).toBe(text)
    }
  })

  test('not when its public key is compressed, or its scalar short', async () => {
    const scalar = Buffer.from([5])
    const { publicKey } = await readPair(algorithm, encode(scalar))
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
    const last = Buffer.from(y, 'base64url').at(-1) ?? 0
    const compressed = Buffer.concat([Buffer.from([2 + (last & 1)]), Buffer.from(x, 'base64url')])
    expect((await readPair(algorithm, encode(scalar, point(compressed)))).publicKey.equals(publicKey)).toBe(true)
  })
})

test('whatever bytes come, a key is read or refused with 400', async () => {
  const valid = names.map((type) => [type, pkcs8(samples[type]())] as const)
  const changes = [fc.constantFrom(...valid), fc.nat(), fc.integer({ min: 1, max: 255 }), fc.boolean()] as const
  const property = fc.asyncProperty(...changes, async ([type, der], at, change, cut) => {
    const copy = Buffer.from(cut ? der.subarray(0, at % der.length) : der)
    if (!cut) copy[at % copy.length] = (copy[at % copy.length] ?? 0) ^ change
    try {
      await readPair(pairOf(type), copy)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 400) throw error
    }
  })
  await fc.assert(property, { numRuns: 400 })
}, 60_000)
