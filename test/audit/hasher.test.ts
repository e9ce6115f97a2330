import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Hasher } from '../../src/audit/render.ts'

test('a hash is the HMAC-SHA-256 of the text, whatever was hashed before', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.uint8Array(),
    fc.string({ minLength: 8000, maxLength: 9000, unit: 'grapheme' }),
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.array(texts, { maxLength: 5 }), (key, several) => {
      const hasher = new Hasher(key)
      for (const text of several) {
        expect(hasher.hash(text)).toBe(`hmac-sha256:${createHmac('sha256', key).update(text).digest('hex')}`)
      }
    }),
  )
})

test('a key longer than a block is refused', () => {
  expect(() => new Hasher(new Uint8Array(65))).toThrow('longer than a block')
})
