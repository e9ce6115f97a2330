import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nearby, overlapping } from '../../../src/request/mounts/overlap.ts'

/** Few names, so that paths often meet; some begin with another. */
const path = fc
  .array(fc.constantFrom('a', 'b', 'ab', 'a.b'), { minLength: 1, maxLength: 4 })
  .map((names) => `${names.join('/')}/`)

test('a mount is in the way of its own path, and of those above and below it', () => {
  const mounts = ['a/', 'b/c/', 'd/'].map((one) => ({ path: one }))
  const found = ['a/', 'a/x/', 'b/', 'b/c/d/', 'b/d/', 'ab/'].map((wanted) => overlapping(mounts, wanted)?.path)
  expect(found).toEqual(['a/', 'a/', 'b/c/', 'b/c/', undefined, undefined])
})

test('the mounts near some paths are those that overlap one of them', () => {
  fc.assert(
    fc.property(fc.array(path, { maxLength: 20 }), fc.array(path, { maxLength: 5 }), (paths, wanted) => {
      const mounts = paths.map((one) => ({ path: one }))
      expect(nearby(mounts, wanted)).toEqual(
        mounts.filter((mount) => wanted.some((one) => overlapping([mount], one) !== undefined)),
      )
    }),
    { numRuns: 2000 },
  )
})
