import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Row } from '../../../src/store/table.ts'
import { type Bench, createBench, mounts, policies, policy, randomName } from '../support.ts'

/** Rows that one statement writes, as they are read and verified afterwards. */

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const mount = () => ({
  ...{ path: `${randomName()}/`, type: 'transit', description: '', accessor: randomName() },
  ...{ config: {}, options: null, local: false, sealWrap: false, touched: false, createdAt: 1 },
})
const text = fc.string({ unit: 'grapheme', maxLength: 20 })
const json = fc.dictionary(text, fc.oneof(text, fc.integer(), fc.constant(null)), { noNullPrototype: true })
const change = fc.record({
  description: fc.oneof(text, fc.constantFrom("'", '\\', '?', 'NULL', "x'00'")),
  config: json,
  options: fc.oneof(json, fc.constant(null)),
  local: fc.boolean(),
  createdAt: fc.maxSafeNat(),
})
const several = { minLength: 1, maxLength: 70 }

test('each row of one UPDATE gets its own values, whatever they are', async () => {
  const { database } = bench
  const table = database.table(mounts)
  await fc.assert(
    fc.asyncProperty(fc.array(change, several), async (changes) => {
      const made = await database.transaction((tx) => table.insertMany(tx, changes.map(mount)))
      const ids = made.map(({ id }) => id)
      const written = await database.transaction(async (tx) => {
        const rows = new Map((await table.lockAll(tx, ids)).map((row) => [row.id, row]))
        const updates = ids.map((id, index) =>
          table.update(tx, rows.get(id) as Row<typeof mounts>, changes[index] ?? {}),
        )
        return Promise.all(updates)
      })
      const read = await database.read((q) => table.sound(q, ids))
      expect(read.toSorted(byId)).toEqual(written.toSorted(byId))
      expect(written).toEqual(changes.map((one) => expect.objectContaining(one)))
      await database.transaction(async (tx) => {
        for (const row of await table.lockAll(tx, ids)) await table.remove(tx, row)
      })
      expect(await database.read((q) => table.sound(q, ids))).toEqual([])
    }),
    { numRuns: 20 },
  )
}, 120_000)

const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1)

test('a row that is made, changed, changed again and removed among others ends as it was left', async () => {
  const { database } = bench
  const table = database.table(policies)
  const [name, other] = [randomName(), randomName()]
  const old = await database.transaction((tx) => table.insert(tx, policy(name, 'old')))
  const [kept, gone] = await database.transaction(async (tx) => {
    const locked = await table.lock(tx, { id: old.id })
    if (locked === undefined) throw new Error('the row is gone')
    const first = await table.update(tx, locked, { text: 'first' })
    const made = await table.insert(tx, policy(other, 'made'))
    const changed = await table.update(tx, made, { text: 'changed' })
    await table.remove(tx, await table.update(tx, first, { text: 'second' }))
    // The name is free again.
    const again = await table.insert(tx, policy(name, 'again'))
    await table.remove(tx, changed)
    return [again, changed]
  })
  const ids = [old.id, kept.id, gone.id]
  expect(await database.read((q) => table.sound(q, ids))).toMatchObject([{ id: kept.id, text: 'again', rev: 1 }])
})
