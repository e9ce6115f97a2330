import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SortedList } from '../../../src/store/sortedlist.ts'

interface Item {
  readonly key: string
  readonly value: number
}

const key = fc.integer({ min: 0, max: 600 }).map(String)
/** Many at once, so that chunks are split and emptied. */
const change = fc.record({
  gone: fc.array(key, { maxLength: 300, size: 'max' }),
  news: fc.uniqueArray(fc.record({ key, value: fc.integer() }), {
    selector: (item) => item.key,
    maxLength: 300,
    size: 'max',
  }),
})

const inOrder = (model: ReadonlyMap<string, Item>): Item[] =>
  [...model.values()].sort((a, b) => (a.key < b.key ? -1 : 1))

test('a list after any changes is what a map is, in the order of its keys, and those before it stay as they were', () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 8 }), fc.array(key), (changes, asked) => {
      const model = new Map<string, Item>()
      let list = SortedList.of<Item>((item) => item.key)
      const before: [list: SortedList<Item>, items: Item[]][] = []
      for (const { gone, news } of changes) {
        before.push([list, [...list]])
        list = list.changed(gone, news)
        for (const one of gone) model.delete(one)
        for (const item of news) model.set(item.key, item)
        expect([...list]).toEqual(inOrder(model))
        expect(list.size).toBe(model.size)
        for (const one of asked) {
          expect(list.get(one)).toEqual(model.get(one))
          expect(list.from(one)).toEqual(inOrder(model).find((item) => item.key >= one))
        }
      }
      for (const [earlier, items] of before) expect([...earlier]).toEqual(items)
    }),
    { numRuns: 200 },
  )
})

test('a change copies the chunks that it meets and shares the others', () => {
  const items = Array.from({ length: 1000 }, (_, n): Item => ({ key: String(n).padStart(4, '0'), value: n }))
  const list = SortedList.of((item: Item) => item.key, items)
  const changed = list.changed(['0500'], [{ key: '0501', value: -1 }])
  const shared = changed.chunks.filter((chunk) => list.chunks.includes(chunk))
  expect(changed.chunks.length).toBeGreaterThan(5)
  expect(shared).toHaveLength(changed.chunks.length - 1)
  expect(changed.get('0501')?.value).toBe(-1)
  expect(changed.get('0500')).toBeUndefined()
})
