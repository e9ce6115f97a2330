import { expect, test } from 'vitest'
import { mostRings } from '../../../src/store/coherence/ring.ts'
import { SharedLog } from '../../../src/store/coherence/sharedlog.ts'
import { Slots } from '../../../src/store/coherence/slots.ts'

/** Places in a shared log, and the memory for them. */

test('each process has the smallest place that no other one has', () => {
  using slots = new Slots()
  const slot = (...taken: (number | undefined)[]) => slots.take(new Set(taken), 9)?.slot
  expect([slot(), slot(0, undefined), slot(0, 1), slot(1, 2)]).toEqual([0, 1, 2, 0])
  expect(slot(...Array.from({ length: mostRings }, (_, n) => n))).toBe(undefined)
})

test('a place of more than was reserved works, and so does one that is taken again', () => {
  using slots = new Slots(1)
  const logs = [0, 1, 0].map((_, n) => {
    const place = slots.take(new Set(n === 1 ? [0] : []), slots.descriptor)
    if (place === undefined) throw new Error('no place')
    return new SharedLog(place)
  })
  logs[2]?.append({ leaves: [[1, 1]], groups: [] })
  expect(logs[1]?.news()?.leaves).toEqual([[1, 1]])
})
