import { expect, test } from 'vitest'
import { type Change, freedoms, rules } from './model/rules.ts'
import { simulate } from './model/simulation.ts'

/** The first seed of the search, for rules whose absence shows only in rare histories. */
const rare: Partial<Record<Change, number>> = { lower: 65, oldlook: 80, dry: 750, missed: 600 }

const failures = (seed: number, without?: Change): number => {
  const { stale, overdue } = simulate(seed, without)
  return stale + overdue
}

test('the protocol as designed gives no stale read, and no writer waits beyond its time', () => {
  let reads = 0
  for (let seed = 0; seed < 100; seed++) {
    const counts = simulate(seed)
    expect([counts.stale, counts.overdue], `seed ${seed}`).toEqual([0, 0])
    reads += counts.reads
  }
  expect(reads).toBeGreaterThan(80_000)
}, 120_000)

test.each(Object.keys(rules) as (keyof typeof rules)[])(
  'without the rule "%s" a failure appears',
  (rule) => {
    const first = rare[rule] ?? 0
    let found = 0
    for (let seed = first; seed < first + 1000 && found === 0; seed++) found = failures(seed, rule)
    expect(found, rules[rule]).toBeGreaterThan(0)
  },
  120_000,
)

test.each(Object.keys(freedoms) as (keyof typeof freedoms)[])(
  'the freedom "%s" does no harm',
  (freedom) => {
    for (let seed = 0; seed < 15; seed++) expect(failures(seed, freedom), `seed ${seed}`).toBe(0)
  },
  120_000,
)
