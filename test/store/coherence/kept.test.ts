import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { CoherentCache } from '../../../src/store/coherence/cache.ts'
import type { Database } from '../../../src/store/database.ts'
import type { Reader, Transaction } from '../../../src/store/reader.ts'
import { type Bench, counters, createBench, policies, policy, randomName } from '../support.ts'

/**
 * Changes that read the old value from the cache, and leave the new one there. A value here is a number, which each
 * change raises by one, in a row that is never locked; the change locks another row instead, the door.
 */

let bench: Bench
let door: string
let number: string
beforeEach(async () => {
  bench = await createBench()
  const { database } = bench
  number = randomName()
  door = await database.transaction(async (tx) => {
    await database.table(counters).insert(tx, { material: number, used: 0 })
    return (await database.table(policies).insert(tx, policy(randomName()))).id
  })
})
afterEach(() => bench[Symbol.asyncDispose]())

interface Worker {
  readonly database: Database
  readonly cache: CoherentCache<number>
  /** How often the number was read from the database. */
  reads: number
}

async function worker(): Promise<Worker> {
  const database = await bench.another()
  const load = (q: Reader) => {
    one.reads++
    return read(database, q)
  }
  const one: Worker = { database, reads: 0, cache: database.cache({ table: 'policies', limit: 10, load }) }
  await database.start()
  return one
}

const read = async (database: Database, q: Reader): Promise<number> =>
  Number((await database.table(counters).find(q, { material: number }))?.used)

/** Raises the number; the old one comes from the cache, if the cache says that it is current. */
const raise = (one: Worker, meanwhile: (tx: Transaction) => Promise<void> = async () => undefined): Promise<number> =>
  one.database.transaction(async (tx) => {
    const table = one.database.table(policies)
    const locking = table.lock(tx, { id: door })
    const current = one.cache.current(tx, door)
    const [locked, held] = await Promise.all([locking, current])
    if (held === undefined) one.reads++
    const next = (held ?? (await read(one.database, tx))) + 1
    await meanwhile(tx)
    if (locked) await table.update(tx, locked, { updatedAt: next })
    await one.database.table(counters).change(tx, { material: number }, { used: next })
    tx.touch('policies', door)
    one.cache.put(tx, door, next)
    return next
  })

test('the result of a change is cached, and the next change reads nothing', async () => {
  const one = await worker()
  for (let n = 1; n <= 5; n++) {
    expect(await raise(one)).toBe(n)
    expect(one.cache.peek(door)).toBe(n)
  }
  expect(one.reads).toBe(1)
})

test('a change of another worker is seen by the next one here', async () => {
  const [one, other] = [await worker(), await worker()]
  for (let n = 1; n <= 9; n += 2) {
    expect(await raise(one)).toBe(n)
    expect(await raise(other)).toBe(n + 1)
    expect([await one.cache.get(door), await other.cache.get(door)]).toEqual([n + 1, n + 1])
  }
})

test('an uncommitted value is not cached', async () => {
  const one = await worker()
  await raise(one)
  const failed = raise(one, async () => {
    throw new Error('no')
  })
  await expect(failed).rejects.toThrow('no')
  expect(await one.cache.get(door)).toBe(1)
})

test('the result of a change is not put into a cache that was emptied meanwhile', async () => {
  const one = await worker()
  await one.database.transaction(async (tx) => {
    tx.touch('policies', door)
    one.cache.put(tx, door, -1)
    one.cache.clear()
  })
  expect(one.cache.size).toBe(0)
  expect(await one.cache.get(door)).toBe(0)
})

test('of many changes by many workers at once none is lost, and no read is older than an answer', async () => {
  const workers = [await worker(), await worker(), await worker()]
  let answered = 0
  const seen: number[] = []
  const changing = workers.map(async (one) => {
    for (let n = 0; n < 40; n++) {
      const next = await raise(one)
      seen.push(next)
      answered = Math.max(answered, next)
      // Two changes in a row by one worker use its cache.
      if (n % 3 === 0) await turn()
    }
  })
  const reading = workers.map(async (one) => {
    while (answered < 120) {
      const least = answered
      expect(await one.cache.get(door)).toBeGreaterThanOrEqual(least)
      await turn()
    }
  })
  await Promise.all([...changing, ...reading])
  expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 120 }, (_, index) => index + 1))
})
