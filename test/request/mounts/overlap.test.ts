import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mountsByPath, overlapping } from '../../../src/request/mounts/overlap.ts'

/** Few names, so that paths often meet; some begin with another. */
const path = fc
  .array(fc.constantFrom('a', 'b', 'ab', 'a.b'), { minLength: 1, maxLength: 4 })
  .map((names) => `${names.join('/')}/`)

test('a mount is in the way of its own path, and of those above and below it', () => {
  const mounts = mountsByPath(['a/', 'b/c/', 'd/'].map((one) => ({ path: one })))
  const found = ['a/', 'a/x/', 'b/', 'b/c/d/', 'b/d/', 'ab/'].map((wanted) => overlapping(mounts, wanted)?.path)
  expect(found).toEqual(['a/', 'a/', 'b/c/', 'b/c/', undefined, undefined])
})

test('of all mounts one that begins with the path, or that the path begins with, is found if there is one', () => {
  fc.assert(
    fc.property(fc.uniqueArray(path, { maxLength: 20 }), path, (paths, wanted) => {
      const found = overlapping(mountsByPath(paths.map((one) => ({ path: one }))), wanted)
      const inTheWay = paths.filter((one) => one.startsWith(wanted) || wanted.startsWith(one))
      if (inTheWay.length === 0) expect(found).toBeUndefined()
      else expect(inTheWay).toContain(found?.path)
    }),
    { numRuns: 2000 },
  )
})
