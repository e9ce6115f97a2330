import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addTimings, quantile, recentOf, Timing } from '../../src/metrics/timing.ts'

const milliseconds = fc.double({ min: 0.02, max: 100_000, noNaN: true })
const timingOf = (values: readonly number[]): Timing => {
  const timing = new Timing()
  for (const value of values) timing.observe(value)
  return timing
}

describe('a timing', () => {
  test('of several workers together equal those that one would have measured', () => {
    fc.assert(
      fc.property(fc.array(milliseconds), fc.array(milliseconds), (one, other) => {
        const together = addTimings(timingOf(one).state(), timingOf(other).state())
        const alone = timingOf([...one, ...other]).state()
        expect(together.count).toBe(alone.count)
        expect(together.recent).toEqual(alone.recent)
        expect(together.sumMilliseconds).toBeCloseTo(alone.sumMilliseconds, 3)
        expect(together.recentMilliseconds).toBeCloseTo(alone.recentMilliseconds, 3)
      }),
    )
  })

  test('gives quantiles that are off by 7 % at most', () => {
    fc.assert(
      fc.property(fc.array(milliseconds, { minLength: 1 }), fc.constantFrom(0.5, 0.9, 0.99), (values, share) => {
        const sorted = values.toSorted((a, b) => a - b)
        const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0
        expect(Math.abs(quantile(timingOf(values).state(), share) / exact - 1)).toBeLessThan(0.07)
      }),
    )
  })

  test('keeps its totals and forgets its quantiles after two rolls', () => {
    const timing = timingOf([1, 2])
    timing.roll()
    timing.observe(4)
    expect(recentOf(timing.state())).toMatchObject({ count: 3, sum: 7 })
    timing.roll()
    expect(recentOf(timing.state())).toMatchObject({ count: 1, sum: 4 })
    timing.roll()
    const state = timing.state()
    expect(recentOf(state)).toEqual({ count: 0, sum: 0, minimum: 0, maximum: 0, deviation: 0 })
    expect(state).toMatchObject({ count: 3, sumMilliseconds: 7 })
    expect(quantile(state, 0.5)).toBeNaN()
  })

  test('accepts durations that no clock should give', () => {
    const timing = timingOf([0, -1, 1e12, 0.0001])
    expect(timing.state().count).toBe(4)
    expect(timing.state().recent.reduce((sum, [, count]) => sum + count, 0)).toBe(4)
  })
})
