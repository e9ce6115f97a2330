import { expect, test } from 'vitest'
import { base62, randomSecret, randomText } from '../../src/crypto/randomtext.ts'

test('a text has its length, and every letter and digit equally often', () => {
  for (const length of [0, 1, 25, 1000]) expect(randomText(length)).toMatch(new RegExp(`^[0-9A-Za-z]{${length}}$`))
  const counts = new Map<string, number>()
  const total = 620_000
  for (const character of randomText(total)) counts.set(character, (counts.get(character) ?? 0) + 1)
  expect([...counts.keys()].sort()).toEqual([...base62].sort())
  // Ten standard deviations: a byte modulo 62 would give the first eight characters a quarter more.
  for (const count of counts.values()) expect(Math.abs(count - total / 62)).toBeLessThan(1000)
})

test('a secret has 256 bits, and no two are equal', () => {
  expect(43 * Math.log2(base62.length)).toBeGreaterThan(256)
  const secrets = Array.from({ length: 1000 }, randomSecret)
  expect(new Set(secrets).size).toBe(1000)
  for (const secret of secrets) expect(secret).toMatch(/^[0-9A-Za-z]{43}$/)
})
