import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tag, untag } from '../../src/engines/transit/input/tagged.ts'

test('a tagged payload is read back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 31 }), fc.base64String(), (version, payload) => {
      expect(untag(tag(version, payload), 'ciphertext')).toEqual({ version, payload })
    }),
  )
})

test('version 0 of a ciphertext is read as 1, and of nothing else', () => {
  expect(untag('vault:v0:abcd', 'ciphertext').version).toBe(1)
  expect(untag('vault:v0:abcd', 'signature').version).toBe(0)
  expect(untag('vault:v0:abcd', 'HMAC').version).toBe(0)
})

test.each([
  ['abcd', 'invalid ciphertext: no prefix'],
  ['vault:v1', 'invalid ciphertext: wrong number of fields'],
  ['vault:vx:abcd', 'invalid ciphertext: version number could not be decoded'],
  ['vault:v-1:abcd', 'invalid ciphertext: version number could not be decoded'],
  ['vault:v:abcd', 'invalid ciphertext: version number could not be decoded'],
])('%s is refused: %s', (text, why) => {
  expect(() => untag(text, 'ciphertext')).toThrow(why)
})
