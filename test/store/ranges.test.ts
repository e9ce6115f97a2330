import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pages } from '../../src/store/pages.ts'
import { atLeast, atMost, between, column, defineTable, type Range, type Where } from '../../src/store/table.ts'
import { type Bench, createBench } from './support.ts'

/** The query of a job: due rows, in pages, even if many have the same time. */

const items = defineTable(
  'items',
  { id: column.text(), shelf: column.integer(), at: column.integer().nullable() },
  { sealed: false },
)
type Item = { readonly id: string; readonly shelf: number; readonly at: number | null }

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
  await bench.sql('CREATE TABLE items (id VARCHAR(36) PRIMARY KEY, shelf BIGINT NOT NULL, at BIGINT, KEY (shelf, at))')
})
afterAll(() => bench[Symbol.asyncDispose]())

let shelves = 0
/** Stores rows at these times on a shelf of their own. */
async function store(times: readonly (number | null)[]): Promise<Item[]> {
  const shelf = shelves++
  const rows = times.map((at, n) => ({ id: `${(n * 7919) % 10_007}-${shelf}`, shelf, at }))
  await bench.database.transaction((tx) => bench.database.table(items).insertMany(tx, rows))
  return rows
}

async function all(where: Where<typeof items>, limit: number, descending = false): Promise<Item[][]> {
  const found: Item[][] = []
  const order = { by: ['at', 'id'], limit, descending } as const
  for await (const page of pages(bench.database, bench.database.table(items), where, order)) found.push(page)
  return found
}

/** NULLs first, then by time and id. */
const inOrder = (rows: readonly Item[]): Item[] =>
  rows.toSorted((one, other) => Number(one.at) - Number(other.at) || (one.id < other.id ? -1 : 1))

const time = fc.integer({ min: -4, max: 4 })
const range = fc.oneof(
  time.map((at): [Range, (n: number) => boolean] => [atMost(at), (n) => n <= at]),
  time.map((at): [Range, (n: number) => boolean] => [atLeast(at), (n) => n >= at]),
  fc.tuple(time, time).map(([a, b]): [Range, (n: number) => boolean] => [between(a, b), (n) => n >= a && n <= b]),
)
const few = { numRuns: 60 }

describe('a listing', () => {
  test('of a range by time and id has each row of the range once, in pages as full as can be, both ways', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.option(time), { minLength: 1, maxLength: 25 }),
        range,
        fc.integer({ min: 1, max: 6 }),
        async (times, [at, within], limit) => {
          const rows = await store(times)
          const wanted = inOrder(rows.filter((row) => row.at !== null && within(row.at)))
          const where = { shelf: rows[0]?.shelf ?? 0, at }
          const found = await all(where, limit)
          expect(found.flat()).toEqual(wanted)
          expect(found.slice(0, -1).every((page) => page.length === limit)).toBe(true)
          expect((await all(where, limit, true)).flat()).toEqual(wanted.toReversed())
        },
      ),
      few,
    ))

  test('tells which of many values are there, whatever the collation takes as equal', async () => {
    const { database } = bench
    const rows = await store(Array.from({ length: 150 }, () => 1))
    const there = rows.map(({ id }) => id).filter((_, n) => n % 3 === 0)
    const asked = [...rows.map(({ id }) => `${id} `), 'absent', ...there]
    const found = await database.read((q) => database.table(items).among(q, 'id', asked))
    expect(found).toEqual(new Set(there))
    expect(await database.read((q) => database.table(items).among(q, 'id', []))).toEqual(new Set())
    expect(await database.read((q) => database.table(items).among(q, 'at', [1, 7]))).toEqual(new Set([1]))
  })

  test('finds, counts and removes by a range', async () => {
    const { database } = bench
    const table = database.table(items)
    const [row] = await store([1, 5, 9, null])
    const shelf = row?.shelf ?? 0
    expect(await database.read((q) => table.find(q, { shelf, at: between(2, 6) }))).toMatchObject({ at: 5 })
    expect(await database.read((q) => table.exists(q, { shelf, at: atLeast(10) }))).toBe(false)
    expect(await database.read((q) => table.exists(q, { shelf, at: atLeast(9) }))).toBe(true)
    expect(await database.read((q) => table.count(q, { shelf, at: atMost(5) }))).toBe(2)
    expect(await database.transaction((tx) => table.removeWhere(tx, { shelf, at: atMost(5) }))).toBe(2)
    expect((await all({ shelf, at: atLeast(0) }, 10)).flat()).toMatchObject([{ at: 9 }])
  })

  test('by two columns takes no cursor of one, and no bound that is not a whole number', async () => {
    const table = bench.database.table(items)
    const page = { by: ['at', 'id'], limit: 1 } as const
    const list = (after: string | number, at: Range) =>
      bench.database.read((q) => table.list(q, { at }, { ...page, after }))
    await expect(list('x', atMost(1))).rejects.toThrow('cursor')
    await expect(bench.database.read((q) => table.list(q, { at: atMost(0.5) }, page))).rejects.toThrow('whole number')
  })

  test('leaves out rows that only seem to be in the range', async () => {
    const text = defineTable('oddities', { id: column.text(), at: column.loose() }, { sealed: false })
    await bench.sql('CREATE TABLE oddities (id VARCHAR(36) PRIMARY KEY, at VARCHAR(36) NOT NULL)')
    await bench.sql("INSERT INTO oddities VALUES ('a', 'x'), ('b', '3'), ('c', '5y'), ('d', '99999999999999999999')")
    const rows = bench.database.unverified(text)
    const found = (at: Range) => bench.database.read((q) => rows.list(q, { at }, { by: 'id', limit: 9 }))
    expect((await found(between(-1, 6))).map(({ id }) => id)).toEqual(['b'])
  })
})
