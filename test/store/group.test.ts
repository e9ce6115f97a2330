import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nextTurn } from '../../src/after.ts'
import { unavailable } from '../../src/errors.ts'
import { DuplicateRow, LeaseLost } from '../../src/store/faults.ts'
import { Batch } from '../../src/store/group.ts'
import { together } from '../../src/store/together.ts'
import { Line } from './line.ts'
import { type Bench, counters, createBench, open, policies, policy, randomName } from './support.ts'

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const stored = (mount: string) => bench.database.read((q) => bench.database.table(policies).count(q, { mount }))

describe('a group insert', () => {
  test('answers each caller with its own row, in few commits', async () => {
    const group = bench.database.group(policies)
    const mount = randomName()
    const names = Array.from({ length: 200 }, (_, n) => `${n}${mount}`)
    const before = await bench.sql('SELECT COUNT(*) AS n FROM outcomes')
    const rows = await Promise.all(names.map((name) => group.insert({ ...policy(name), mount })))
    expect(rows.map(({ name }) => name)).toEqual(names)
    expect(await stored(mount)).toBe(200)
    const after = await bench.sql('SELECT COUNT(*) AS n FROM outcomes')
    expect(after[0]?.n - before[0]?.n).toBeLessThan(10)
    const one = rows[77]
    if (!one) throw new Error('no row')
    expect(await bench.database.read((q) => bench.database.table(policies).get(q, one.id))).toEqual(one)
  })

  test('stores all but the bad row', async () => {
    const group = bench.database.group(policies)
    const mount = randomName()
    const names = ['a', 'b', 'c', 'a', 'x'.repeat(600), 'd'].map((name) => name + mount)
    const results = await Promise.allSettled(names.map((name) => group.insert({ ...policy(name), mount })))
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
      'fulfilled',
    ])
    expect(results[3]).toMatchObject({ reason: expect.any(DuplicateRow) })
    expect(await stored(mount)).toBe(4)
  })

  test('stores each row once when the line is cut around its COMMIT', async () => {
    await using line = await Line.open(bench.url)
    await using database = await open(line.url)
    const group = database.group(policies)
    const mount = randomName()
    for (const cut of ['before', 'after'] as const) {
      line.cut = cut
      await Promise.all(Array.from({ length: 50 }, (_, n) => group.insert({ ...policy(`${cut}${n}${mount}`), mount })))
    }
    expect(await stored(mount)).toBe(100)
  })

  test('takes plain tables too', async () => {
    const group = bench.database.group(counters)
    const materials = Array.from({ length: 10 }, () => crypto.randomUUID())
    const rows = await Promise.all(materials.map((material) => group.insert({ material, used: 1 })))
    expect(rows.map(({ material }) => material)).toEqual(materials)
  })
})

describe('a batch', () => {
  test.each([
    [16, {}],
    [3, { worthAnother: 3 }],
  ])('lets a few writes wait for the group that is on its way, and sends %d beside it', async (worth, options) => {
    const groups: number[][] = []
    const ends: (() => void)[] = []
    const batch = new Batch<number, number>((writes) => {
      groups.push(writes)
      return new Promise((resolve) => ends.push(() => resolve(writes)))
    }, options)
    const add = (first: number, count: number) =>
      Promise.all(Array.from({ length: count }, (_, n) => batch.add(first + n)))
    const first = add(0, 1)
    await nextTurn()
    const few = add(100, worth - 1)
    await nextTurn()
    expect(groups.map(({ length }) => length)).toEqual([1])
    const another = add(200, 1)
    await nextTurn()
    expect(groups.map(({ length }) => length)).toEqual([1, worth])
    const last = add(300, 2)
    for (const end of ends) end()
    await Promise.all([first, few, another])
    await nextTurn()
    ends.at(-1)?.()
    expect(await last).toEqual([300, 301])
    expect(groups.map(({ length }) => length)).toEqual([1, worth, 2])
  })

  test('takes what the next turn of the event loop brings too, if this one brought more than one write', async () => {
    const groups: number[][] = []
    const batch = new Batch<number, number>(async (writes) => {
      groups.push(writes)
      return writes
    })
    const lone = batch.add(0)
    await nextTurn()
    const [first, second] = [batch.add(1), batch.add(2)]
    await nextTurn()
    const third = batch.add(3)
    await nextTurn()
    const fourth = batch.add(4)
    expect(await Promise.all([lone, first, second, third, fourth])).toEqual([0, 1, 2, 3, 4])
    expect(groups).toEqual([[0], [1, 2, 3], [4]])
  })

  test('makes no empty group when so many come at once that a second one begins', async () => {
    const groups: number[][] = []
    const batch = new Batch<number, number>(async (writes) => {
      groups.push(writes)
      return writes
    })
    const numbers = Array.from({ length: 20 }, (_, n) => n)
    expect(await Promise.all(numbers.map((n) => batch.add(n)))).toEqual(numbers)
    await nextTurn()
    await nextTurn()
    expect(groups).toEqual([numbers])
  })

  test('refuses what comes beyond its limit, and makes groups no larger than told', async () => {
    const groups: number[] = []
    const gate = Promise.withResolvers<void>()
    const batch = new Batch<number, number>(
      async (writes) => {
        groups.push(writes.length)
        await gate.promise
        return writes
      },
      { largest: 4, queueLimit: 10 },
    )
    const first = batch.add(0)
    await nextTurn()
    const waiting = Promise.all(Array.from({ length: 10 }, (_, n) => batch.add(n)))
    await expect(batch.add(10)).rejects.toMatchObject({ status: 503, retryAfterSeconds: 1 })
    gate.resolve()
    expect(await first).toBe(0)
    expect(await waiting).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(groups).toEqual([1, 4, 4, 2])
  })

  test('tries a bad write once when it is alone, and once more alone when it was in a group', async () => {
    const groups: string[] = []
    const batch = new Batch<string, string>(async (writes) => {
      groups.push(writes.join(''))
      if (writes.includes('b')) throw new Error('bad')
      return writes
    })
    await expect(batch.add('b')).rejects.toThrow('bad')
    expect(groups).toEqual(['b'])
    const all = await Promise.allSettled(['a', 'b', 'c'].map((one) => batch.add(one)))
    expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(groups).toEqual(['b', 'abc', 'a', 'b', 'c'])
  })

  test.each([
    [true, 1],
    [false, 3],
  ])('out of reach refuses those that wait, where they share their fate: %s', async (sharesFate, times) => {
    let tried = 0
    const gate = Promise.withResolvers<void>()
    const batch = new Batch<number, number>(
      async () => {
        tried++
        await gate.promise
        throw unavailable('away')
      },
      { largest: 4, sharesFate },
    )
    const first = batch.add(0)
    await nextTurn()
    const all = Promise.allSettled([first, ...Array.from({ length: 8 }, (_, n) => batch.add(n))])
    gate.resolve()
    const refused = { status: 'rejected', reason: expect.objectContaining({ status: 503 }) }
    expect(await all).toEqual(Array(9).fill(refused))
    expect(tried).toBe(times)
  })
})

describe('work on several rows together', () => {
  /** Works on these rows, of which some are bad. */
  async function worked(ids: string, bad: string, error: Error = new Error('bad')) {
    const [calls, failed]: [string[], string[]] = [[], []]
    const work = async (some: readonly string[]): Promise<readonly string[]> => {
      calls.push(some.join(''))
      if (some.some((id) => bad.includes(id))) throw error
      return some
    }
    const done = together([...ids], work, (id) => failed.push(id)).catch((thrown: unknown) => thrown)
    return { done: await done, calls: calls.join(' '), failed: failed.join('') }
  }

  test('is done at once when no row is bad', async () => {
    expect(await worked('abc', '')).toEqual({ done: ['a', 'b', 'c'], calls: 'abc', failed: '' })
    expect(await worked('a', '')).toEqual({ done: ['a'], calls: 'a', failed: '' })
    expect(await worked('', '')).toEqual({ done: [], calls: '', failed: '' })
  })

  test('is done row by row when one is bad, and two bad ones in a row hold up none', async () => {
    expect(await worked('a', 'a')).toEqual({ done: [], calls: 'a', failed: 'a' })
    const calls = 'abcdefg a b c d e f g'
    expect(await worked('abcdefg', 'abdeg')).toEqual({ done: ['c', 'f'], calls, failed: 'abdeg' })
  })

  test('ends at the third failure in a row, with its error', async () => {
    const error = new Error('out of reach')
    expect(await worked('abcdef', 'bcd', error)).toEqual({ done: error, calls: 'abcdef a b c d', failed: 'bc' })
  })

  test('ends at once when the lease is lost', async () => {
    const error = new LeaseLost('job')
    expect(await worked('ab', 'a', error)).toEqual({ done: error, calls: 'ab', failed: '' })
    expect(await worked('a', 'a', error)).toEqual({ done: error, calls: 'a', failed: '' })
  })
})

test('writes that wait behind groups that do not end are groups of their own, where that is asked for', async () => {
  const [begun, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const commit = async (writes: number[]): Promise<number[]> => {
    if (!writes.includes(0)) return writes
    begun.resolve()
    await release.promise
    return writes
  }
  const batch = new Batch(commit, { patienceMilliseconds: 10 })
  const first = batch.add(0)
  await begun.promise
  const others = await Promise.all([1, 2, 3].map((n) => batch.add(n)))
  expect(others).toEqual([1, 2, 3])
  release.resolve()
  expect(await first).toBe(0)
})
