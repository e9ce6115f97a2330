import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { DamagedRow } from '../../src/store/faults.ts'
import type { Transaction } from '../../src/store/reader.ts'
import { type Head, memberList } from '../../src/store/sealed/heads.ts'
import type { Row } from '../../src/store/table.ts'
import { type Bench, createBench, policies, policy, randomName } from './support.ts'

let bench: Bench
let mount: string
let head: Head
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const page = { by: 'name', limit: 1000 } as const
const table = () => bench.database.table(policies)

/** Adds, changes or removes members as an owner of a set does: verify, change, advance. */
const change = (work: (tx: Transaction, rows: Row<typeof policies>[]) => Promise<Row<typeof policies>[]>) =>
  bench.database.transaction(async (tx) => {
    const rows = await table().list(tx, { mount }, page)
    await head.verify(tx, rows)
    await head.advance(tx, await work(tx, rows))
  })

/** Of members in the order of their ids, which are ASCII. */
function digestOf(members: readonly { readonly id: string; readonly rev: number }[]): Buffer {
  const hex = (number: number, digits: number) => number.toString(16).padStart(digits, '0')
  const listed = members.map(({ id, rev }) => hex(id.length, 8) + Buffer.from(id).toString('hex') + hex(rev, 16))
  return createHash('sha256')
    .update(Buffer.from(listed.join(''), 'hex'))
    .digest()
}

const verified = () =>
  bench.database.snapshot(async (q) => {
    const rows = await table().list(q, { mount }, page)
    await head.verify(q, rows)
    return rows
  })

beforeEach(async () => {
  mount = randomName()
  head = bench.database.head(`set/${mount}`)
  await bench.database.transaction((tx) => head.create(tx))
  await change((tx) =>
    table().insertMany(
      tx,
      [1, 2, 3].map((n) => ({ ...policy(`${n}${mount}`), mount })),
    ),
  )
})

describe('a set with a head', () => {
  test('is read whole', async () => {
    expect(await verified()).toHaveLength(3)
  })

  test('lists its members by the length of each id, the id and eight bytes of its rev', async () => {
    const members = [
      { id: 'b-ü-€', rev: 2 ** 32 + 7 },
      { id: 'a', rev: 1 },
    ]
    const { digest, count } = await bench.database.transaction(async (tx) => {
      await head.verify(tx, await table().list(tx, { mount }, page))
      return head.advance(tx, members)
    })
    const listed = ['00000001', '61', '0000000000000001', '00000008', '622dc3bc2de282ac', '0000000100000007']
    const expected = createHash('sha256')
      .update(Buffer.from(listed.join(''), 'hex'))
      .digest()
    expect([digest, count]).toEqual([expected, 2])
  })

  test('lists its members after changes of a few of many, too', async () => {
    const member = fc.record({ id: fc.integer({ min: 0, max: 999 }).map(String), rev: fc.integer({ min: 1 }) })
    const change = fc.record({ gone: fc.array(member), news: fc.uniqueArray(member, { selector: ({ id }) => id }) })
    const all = Array.from({ length: 700 }, (_, n) => ({ id: String(n), rev: 1 }))
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 5 }), (changes) =>
        bench.database.transaction(async (tx) => {
          await head.verify(tx, await table().list(tx, { mount }, page))
          let list = memberList(all)
          for (const { gone, news } of changes) {
            list = list.changed(
              gone.map(({ id }) => id),
              news,
            )
            const { digest, count } = await head.advance(tx, list)
            expect([digest, count]).toEqual([digestOf([...list]), list.size])
          }
          await head.advance(tx, await table().list(tx, { mount }, page))
        }),
      ),
      { numRuns: 30 },
    )
  })

  test('refuses when a member was deleted', async () => {
    await bench.sql('DELETE FROM policies WHERE mount = ? LIMIT 1', [mount])
    await expect(verified()).rejects.toBeInstanceOf(DamagedRow)
  })

  test('refuses when all members were deleted', async () => {
    await bench.sql('DELETE FROM policies WHERE mount = ?', [mount])
    await expect(verified()).rejects.toBeInstanceOf(DamagedRow)
  })

  test('refuses when its head was deleted, and writing does not heal it', async () => {
    await bench.sql('DELETE FROM heads WHERE `set` = ?', [`set/${mount}`])
    await expect(verified()).rejects.toBeInstanceOf(DamagedRow)
    await expect(change(async (_, rows) => rows)).rejects.toBeInstanceOf(DamagedRow)
    const blind = bench.database.transaction((tx) => head.advance(tx, []))
    await expect(blind).rejects.toBeInstanceOf(DamagedRow)
  })

  test("refuses another set's head in its place", async () => {
    const other = bench.database.head(`other/${mount}`)
    await bench.database.transaction((tx) => other.create(tx))
    await bench.sql('DELETE FROM policies WHERE mount = ?', [mount])
    await bench.sql('DELETE FROM heads WHERE `set` = ?', [`set/${mount}`])
    await bench.sql('UPDATE heads SET `set` = ? WHERE `set` = ?', [`set/${mount}`, `other/${mount}`])
    await expect(verified()).rejects.toBeInstanceOf(DamagedRow)
  })

  test('refuses an older revision of a member, and a removed member that was put back', async () => {
    await bench.sql('CREATE TABLE kept LIKE policies')
    await bench.sql('INSERT INTO kept SELECT * FROM policies WHERE mount = ?', [mount])
    await change(async (tx, [first, second, third]) => {
      if (!first || !second || !third) throw new Error('three members')
      await table().remove(tx, third)
      return [await table().update(tx, first, { text: 'stricter' }), second]
    })
    expect(await verified()).toHaveLength(2)
    await bench.sql('REPLACE INTO policies SELECT * FROM kept WHERE name LIKE "1%"')
    await expect(verified()).rejects.toBeInstanceOf(DamagedRow)
    await bench.sql('DELETE FROM policies WHERE mount = ?', [mount])
    await bench.sql('INSERT INTO policies SELECT * FROM kept')
    await expect(verified()).rejects.toBeInstanceOf(DamagedRow)
    await bench.sql('DROP TABLE kept')
  })

  test('accepts head and members put back together: only an anchor outside the database would show it', async () => {
    await bench.sql('CREATE TABLE kept LIKE policies')
    await bench.sql('INSERT INTO kept SELECT * FROM policies WHERE mount = ?', [mount])
    await bench.sql('CREATE TABLE kept_heads LIKE heads')
    await bench.sql('INSERT INTO kept_heads SELECT * FROM heads WHERE `set` = ?', [`set/${mount}`])
    await change(async (tx, rows) => {
      for (const row of rows) await table().remove(tx, row)
      return []
    })
    await bench.sql('REPLACE INTO policies SELECT * FROM kept')
    await bench.sql('REPLACE INTO heads SELECT * FROM kept_heads')
    expect(await verified()).toHaveLength(3)
    await bench.sql('DROP TABLE kept, kept_heads')
  })

  test('loses no member when two writers add at once', async () => {
    const add = (n: number) =>
      change(async (tx, rows) => [...rows, await table().insert(tx, { ...policy(`x${n}${mount}`), mount })])
    await Promise.all(Array.from({ length: 8 }, (_, n) => add(n)))
    expect(await verified()).toHaveLength(11)
  })

  test('is not verified from reads of different moments', async () => {
    const loose = bench.database.read(async (q) => head.verify(q, await table().list(q, { mount }, page)))
    await expect(loose).rejects.toThrow('snapshot or transaction')
  })
})
