import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isKeyPoint } from '../../src/crypto/edwards.ts'

const point = (hex: string): Buffer => Buffer.from(hex, 'hex')

test('the public half of every key is a point that a key can have', () => {
  for (let count = 0; count < 20; count++) {
    const { x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
    expect(isKeyPoint(Buffer.from(x ?? '', 'base64url'))).toBe(true)
  }
})

test.each([
  ['of order 1', `01${'00'.repeat(31)}`],
  ['of order 2', `ec${'ff'.repeat(30)}7f`],
  ['of order 4', '00'.repeat(32)],
  ['of order 4 with the other sign', `${'00'.repeat(31)}80`],
  ['of order 8', '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05'],
  ['of order 8 with the other sign', '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85'],
  ['of order 8, the other one', 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'],
  ['of order 8, the other one with the other sign', 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa'],
  ['that is not on the curve', `02${'00'.repeat(31)}`],
  ['whose y is the prime', `ed${'ff'.repeat(30)}7f`],
  ['whose y is beyond the prime', 'ff'.repeat(32)],
])('a point %s is none', (_, hex) => {
  expect(isKeyPoint(point(hex))).toBe(false)
})

test('about half of all 32 bytes are points, and nothing else happens', () => {
  const bytes = fc.sample(fc.uint8Array({ minLength: 32, maxLength: 32 }), 200)
  expect(bytes.filter(isKeyPoint).length).toBeGreaterThan(40)
})
