import { expect, test } from 'vitest'
import { rules, simulate } from './model.ts'

test('the protocol as designed gives no stale read', () => {
  let reads = 0
  for (let seed = 0; seed < 1500; seed++) {
    const result = simulate(seed)
    expect(result.stale, `seed ${seed}`).toBe(0)
    reads += result.reads
  }
  expect(reads).toBeGreaterThan(100_000)
})

test.each(rules)('without the rule "%s" stale reads appear', (rule) => {
  let stale = 0
  for (let seed = 0; seed < 5000 && stale === 0; seed++) stale += simulate(seed, rule).stale
  expect(stale).toBeGreaterThan(0)
})
