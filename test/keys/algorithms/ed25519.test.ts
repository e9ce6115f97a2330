import { createPrivateKey, createPublicKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { ed25519Pair, seedKey } from '../../../src/keys/algorithms/ed25519.ts'
import { privateText } from '../../../src/keys/transfer/keytext.ts'
import { joined } from '../../support/intermediates.ts'

/** Of a work: that it joined the seed with other bytes, and wiped the result. */
function expectWiped(seed: Buffer, work: () => unknown): void {
  const given = joined(work)
  expect(given.filter(({ length }) => length > seed.length).length).toBeGreaterThan(0)
  expect(given.filter((bytes) => bytes.includes(seed))).toEqual([])
}

test('the form in which node:crypto takes a seed is wiped', () => {
  const seed = randomBytes(32)
  expectWiped(seed, () => {
    const { d } = seedKey(seed).export({ format: 'jwk' })
    expect(Buffer.from(d ?? '', 'base64url')).toEqual(seed)
  })
})

const pair = ed25519Pair(randomBytes(32))
const key = { kind: 'pair', pair } as const

test('a pair is exported as seed and point, whose bytes are wiped', () => {
  const { x = '' } = pair.publicKey.export({ format: 'jwk' })
  expectWiped(pair.inner, () => {
    const both = Buffer.from(privateText(key, 'seed', ''), 'base64')
    expect(both).toHaveLength(64)
    expect(both.subarray(0, 32).equals(pair.inner)).toBe(true)
    expect(both.toString('base64url', 32)).toBe(x)
  })
})

test('a pair is exported as PKCS#8, in DER and PEM', () => {
  const der = Buffer.from(privateText(key, 'seed', 'der'), 'base64')
  const whole = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  expect(createPublicKey(whole).equals(pair.publicKey)).toBe(true)
  expect(createPrivateKey(privateText(key, 'seed', 'pem')).equals(whole)).toBe(true)
})
