import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLogTo } from '../../src/log.ts'
import type { Reader } from '../../src/store/reader.ts'
import { Line } from './line.ts'
import { type Bench, counters, createBench, policies, policy, randomName } from './support.ts'

let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

/** A transaction that stays open until it is let go; resolves `begun` when it holds its connection. */
function occupy(database = bench.database) {
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const done = database.transaction(async () => {
    begun.resolve()
    await gate.promise
  })
  return { begun: begun.promise, release: gate.resolve, done }
}

describe('under overload', () => {
  test('every refused change changed nothing, every acknowledged one is there, and cached reads continue', async () => {
    const database = await bench.another({ poolSize: 50, lease: { leaseMilliseconds: 5000 } })
    const table = database.table(policies)
    const cache = database.cache({ table: 'other', limit: 10, load: async (_, id) => id })
    await database.start()
    await (await bench.another()).start()
    await cache.get('warm')
    const names = Array.from({ length: 3000 }, (_, n) => `storm-${n}-${randomName()}`)
    const storm = Promise.allSettled(
      names.map((name) =>
        database.transaction(async (tx) => {
          await table.insert(tx, policy(name))
          tx.touch('policies', name)
        }),
      ),
    )
    let running = true
    const reading = (async () => {
      for (; running; await delay(5)) expect(await cache.get('warm')).toBe('warm')
    })()
    const outcomes = await storm
    running = false
    await reading
    const stored = new Set((await bench.sql('SELECT name FROM policies')).map(({ name }) => name))
    const untrue = names.filter((name, n) => stored.has(name) !== (outcomes[n]?.status === 'fulfilled'))
    expect(untrue).toEqual([])
    const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.filter(({ status, retryAfterSeconds }) => status !== 503 || !(retryAfterSeconds > 0))).toEqual([])
  }, 120_000)

  test('a change is refused before its work begins when the queue is full', async () => {
    const database = await bench.another({ poolSize: 1 })
    const { begun, release, done } = occupy(database)
    await begun
    let worked = 0
    const work = async () => void worked++
    const waiting = Array.from({ length: 256 }, () => database.transaction(work))
    await expect(database.transaction(work)).rejects.toMatchObject({ status: 503, retryAfterSeconds: 1 })
    expect(worked).toBe(0)
    release()
    await Promise.all([done, ...waiting])
    expect(worked).toBe(256)
  })

  test('public reads have a lane of their own: beyond it they are refused, and requests continue', async () => {
    const database = await bench.another({ poolSize: 4 })
    const table = database.table(policies)
    const [first, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let begun = 0
    const load = async (q: Reader, id: string) => {
      // A node that takes no writes refuses here, and another is asked.
      await table.count(q, {})
      begun++
      first.resolve()
      await gate.promise
      return id
    }
    const cache = database.cache({ table: 'pki_certificates', limit: 10, lane: 'public', load })
    await database.start()
    const strangers = Array.from({ length: 600 }, async (_, n) => cache.get(`stranger ${n}`))
    const refused = Promise.all(
      strangers.slice(257).map((one) =>
        one.then(
          () => undefined,
          (error) => error,
        ),
      ),
    )
    for (const error of await refused) expect(error).toMatchObject({ status: 503, retryAfterSeconds: 1 })
    const plain = database.read((q) => table.count(q, {}), 'public')
    await expect(plain).rejects.toMatchObject({ status: 503, retryAfterSeconds: 1 })
    const names = Array.from({ length: 20 }, () => randomName())
    const made = await Promise.all(names.map((name) => database.transaction((tx) => table.insert(tx, policy(name)))))
    expect(await database.read((q) => table.count(q, {}))).toBe(made.length)
    await first.promise
    expect(begun).toBe(1)
    gate.resolve()
    expect(await Promise.all(strangers.slice(0, 257))).toEqual(Array.from({ length: 257 }, (_, n) => `stranger ${n}`))
  })

  test('counters have a lane of their own', async () => {
    const database = await bench.another({ poolSize: 1 })
    const { begun, release, done } = occupy(database)
    await begun
    const table = database.table(counters)
    const material = crypto.randomUUID()
    await database.transaction((tx) => table.insert(tx, { material, used: 1 }), { lane: 'counters' })
    release()
    await done
    expect((await database.read((q) => table.find(q, { material })))?.used).toBe(1)
  })
})

test('while polls are slower than L all work is refused before it begins, the log reports it once, and service resumes', async () => {
  await using line = await Line.open(bench.url)
  const said: string[] = []
  const log = createLogTo({ write: (text) => said.push(JSON.parse(text).msg) }, 'info')
  const database = await bench.another({ url: line.url, log, lease: { leaseMilliseconds: 400 } })
  await database.start()
  const row = await database.transaction((tx) => database.table(policies).insert(tx, policy(randomName())))
  const read = () => database.read((q) => database.table(policies).get(q, row.id))
  const refused = () =>
    read().then(
      () => false,
      (error) => error.status === 503,
    )
  line.lagMilliseconds = 500
  while (!(await refused())) await delay(50)
  let worked = false
  const work = async () => {
    worked = true
  }
  await expect(database.transaction(work)).rejects.toMatchObject({ status: 503, retryAfterSeconds: 1 })
  expect(worked).toBe(false)
  line.lagMilliseconds = 0
  while (await refused()) await delay(50)
  expect((await read())?.id).toBe(row.id)
  const service = said.filter((text) => /caches/.test(text))
  expect(service).toEqual([
    'the versions cannot be read in time: caches stop serving',
    'the versions are read in time again: caches serve',
  ])
}, 60_000)
