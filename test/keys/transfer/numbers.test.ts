import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Ec, Rsa } from '../../../src/keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../../src/keys/algorithms.ts'
import { ecKey, rsaKey } from '../../../src/keys/transfer/numbers.ts'

/** Keys out of bare numbers. */

const algorithm = algorithmOf('rsa-2048') as Rsa
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwk = privateKey.export({ format: 'jwk' })

const of = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64url')
/** New ones for each use, which wipes them. */
const numbers = () => ({ n: of(jwk.n), e: of(jwk.e), d: of(jwk.d), primes: [of(jwk.p), of(jwk.q)] })
const expectWiped = (...secrets: readonly (Buffer | undefined)[]) => {
  for (const secret of secrets) expect(secret?.every((byte) => byte === 0) ?? true).toBe(true)
}

test('modulus, exponents and primes make the same key again, and are wiped', () => {
  const given = numbers()
  const { kind, bytes } = rsaKey(algorithm, given)
  expect(kind).toBe('pair')
  expect(createPrivateKey({ key: Buffer.from(bytes), format: 'der', type: 'pkcs8' }).equals(privateKey)).toBe(true)
  expectWiped(given.d, ...given.primes)
})

test('modulus and public exponent alone make the public key', () => {
  const { n, e } = numbers()
  const { kind, bytes } = rsaKey(algorithm, { n, e, d: undefined, primes: [] })
  expect(kind).toBe('public')
  expect(createPublicKey({ key: Buffer.from(bytes), format: 'der', type: 'spki' }).equals(publicKey)).toBe(true)
})

test.each([
  ['absent', undefined],
  ['empty', Buffer.alloc(0)],
  ['0', Buffer.from([0])],
  ['1', Buffer.from([1])],
  ['2', Buffer.from([2])],
])('one prime that is %s is refused, whichever it is, and the secrets are wiped', (_, prime) => {
  for (const index of [0, 1]) {
    const given = numbers()
    const primes = given.primes.map((good, at) => (at === index ? prime && Buffer.from(prime) : good))
    expect(() => rsaKey(algorithm, { ...given, primes })).toThrow('its primes are missing')
    expectWiped(given.d, ...primes)
  }
})

test.each([
  ['without a modulus', { n: undefined }, 'its modulus is missing'],
  ['without a public exponent', { e: undefined }, 'its modulus is missing'],
  ['with three primes', { primes: [of('Cw'), of('Cw'), of('Cw')] }, 'it has more than two primes'],
])('numbers of an RSA key %s are refused, and the secrets are wiped', (_, change, text) => {
  const given = { ...numbers(), ...change }
  expect(() => rsaKey(algorithm, given)).toThrow(`error parsing asymmetric key: ${text}`)
  expectWiped(given.d, ...given.primes)
})

test('numbers of an EC key without a coordinate, or with one of another key, are refused, and the secret is wiped', () => {
  const p256 = algorithmOf('ecdsa-p256') as Ec
  const [one, other] = [1, 2].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
  const { x, y, d } = one?.export({ format: 'jwk' }) ?? {}
  for (const wrong of [undefined, of(other?.export({ format: 'jwk' }).x)]) {
    const secret = of(d)
    expect(() => ecKey(p256, { x: wrong, y: of(y), d: secret })).toThrow('error parsing asymmetric key')
    expectWiped(secret)
  }
  expect(ecKey(p256, { x: of(x), y: of(y), d: of(d) }).kind).toBe('pair')
})
