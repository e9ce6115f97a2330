import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Rsa } from '../../../src/keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../../src/keys/algorithms.ts'
import { rsaKey } from '../../../src/keys/transfer/numbers.ts'

/** RSA keys out of bare numbers. */

const algorithm = algorithmOf('rsa-2048') as Rsa
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwk = privateKey.export({ format: 'jwk' })

/** New ones for each use, which wipes them. */
const numbers = () => {
  const of = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64url')
  return { n: of(jwk.n), e: of(jwk.e), d: of(jwk.d), p: of(jwk.p), q: of(jwk.q) }
}

test('modulus, exponents and primes make the same key again, and are wiped', () => {
  const given = numbers()
  const { kind, bytes } = rsaKey(algorithm, given)
  expect(kind).toBe('pair')
  expect(createPrivateKey({ key: Buffer.from(bytes), format: 'der', type: 'pkcs8' }).equals(privateKey)).toBe(true)
  for (const secret of [given.d, given.p, given.q]) expect(secret.equals(Buffer.alloc(secret.length))).toBe(true)
})

test('modulus and public exponent alone make the public key', () => {
  const { n, e } = numbers()
  const { kind, bytes } = rsaKey(algorithm, { n, e, d: undefined, p: undefined, q: undefined })
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
  for (const name of ['p', 'q'] as const) {
    const given = { ...numbers(), [name]: prime && Buffer.from(prime) }
    expect(() => rsaKey(algorithm, given)).toThrow('error parsing asymmetric key: its primes are missing')
    for (const secret of [given.d, given.p, given.q]) expect(secret?.every((byte) => byte === 0) ?? true).toBe(true)
  }
})
