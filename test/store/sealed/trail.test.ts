import fc from 'fast-check'
import { expect, test } from 'vitest'
import { changedBetween, trailAfter } from '../../../src/store/sealed/trail.ts'

const ids = fc.uniqueArray(
  fc.integer({ min: 0, max: 200 }).map((n) => `id-${n}`),
  { maxLength: 70, size: 'max' },
)
const few = fc.uniqueArray(fc.integer({ min: 0, max: 20 }).map(String), { maxLength: 4 })
const changes = fc.array(fc.oneof({ weight: 4, arbitrary: few }, { weight: 1, arbitrary: ids }), { maxLength: 20 })

/** The trails of a set after each change, the first one before any. */
function trailsOf(first: string | null, all: readonly (readonly string[])[]): (string | null)[] {
  const trails = [first]
  for (const changed of all) trails.push(trailAfter(trails.at(-1) ?? null, changed))
  return trails
}

test('a trail tells just what has changed since each state that it knows, which are the latest', () => {
  fc.assert(
    fc.property(changes, (all) => {
      const trails = trailsOf(null, all)
      const last = trails.at(-1) ?? null
      let since: Set<string> | undefined = new Set()
      for (let at = trails.length - 1; at > 0; at--) {
        const told = changedBetween(trails[at] ?? null, last)
        // Once it does not tell, it tells of no state before either.
        if (told === undefined) since = undefined
        expect(told).toEqual(since)
        if (since) since = new Set([...since, ...(all[at - 1] ?? [])])
      }
      expect(changedBetween(null, last)).toBeUndefined()
      if (all.length > 1) expect(changedBetween(trails.at(-2) ?? null, last)).toEqual(new Set(all.at(-1)))
    }),
  )
})

test('a trail of small changes tells of seven states before the current one', () => {
  const trails = trailsOf(
    null,
    Array.from({ length: 20 }, (_, n) => [`m${n}`]),
  )
  const told = trails.map((trail) => changedBetween(trail, trails.at(-1) ?? null)?.size)
  expect(told.slice(-9)).toEqual([undefined, 7, 6, 5, 4, 3, 2, 1, 0])
})

test('a trail does not grow with the number of changes, and little with that of a single one', () => {
  const uuid = '01a21fd8-f207-7fbd-9282-e4f4a8deda85'
  const small = trailsOf(null, Array(100).fill([uuid])).at(-1) ?? ''
  expect(small.length).toBeLessThan(400)
  const large = trailsOf(null, Array(100).fill(Array(64).fill(uuid))).at(-1) ?? ''
  expect(large.length).toBeLessThan(65 * 40)
})

test('a trail tells nothing of a state that a restore has undone', () => {
  fc.assert(
    fc.property(few, few, few, (kept, undone, made) => {
      const [, before = null] = trailsOf(null, [kept])
      const [, lost = null] = trailsOf(before, [undone])
      const [, now = null] = trailsOf(before, [made])
      expect(changedBetween(lost, now)).toBeUndefined()
      expect(changedBetween(before, now)).toEqual(new Set(made))
    }),
  )
})
