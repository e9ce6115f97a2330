import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/clock.ts'
import type { CoherentCache } from '../../src/store/coherence/cache.ts'
import type { LeaseTimes } from '../../src/store/coherence/coherence.ts'
import type { Database, DatabaseOptions } from '../../src/store/database.ts'
import type { Row } from '../../src/store/table.ts'
import { TestLog } from './coherence/testlog.ts'
import { RemoteWorker } from './fleet.ts'
import { Line } from './line.ts'
import { type Bench, createBench, policies, policy, randomName } from './support.ts'

type Policy = Row<typeof policies>
let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

const insert = async (text: string): Promise<string> =>
  (await bench.database.transaction((tx) => bench.database.table(policies).insert(tx, policy(randomName(), text)))).id

const write = (database: Database, id: string, text: string): Promise<void> =>
  database.transaction(async (tx) => {
    const row = await database.table(policies).get(tx, id)
    if (!row) throw new Error('gone')
    await database.table(policies).update(tx, row, { text })
    tx.touch('policies', id)
  })

const cacheOf = (database: Database, options: { gate?: () => Promise<void> } = {}): CoherentCache<Policy> =>
  database.cache({
    table: 'policies',
    limit: 10,
    async load(q, id) {
      const row = await database.table(policies).get(q, id)
      await options.gate?.()
      return row
    },
  })

async function worker(
  url = bench.nodes(),
  options: Partial<DatabaseOptions> = {},
): Promise<{ database: Database; cache: CoherentCache<Policy> }> {
  const database = await bench.another({ url, ...options })
  const cache = cacheOf(database)
  await database.start()
  return { database, cache }
}

/** A worker whose first fill pauses after its `read`, until `goOn` is called. */
async function pausing(): Promise<{ cache: CoherentCache<Policy>; read: Promise<void>; goOn: () => void }> {
  const { promise: paused, resolve: goOn } = Promise.withResolvers<void>()
  const { promise: read, resolve: onRead } = Promise.withResolvers<void>()
  const gate = (): Promise<void> => {
    onRead()
    return paused
  }
  const database = await bench.another()
  const cache = cacheOf(database, { gate })
  await database.start()
  return { cache, read, goOn }
}

const registrations = () => bench.sql('SELECT id, incarnation, condemned FROM registrations')

async function until(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) await delay(20)
}

describe('a change that was answered', () => {
  test('is seen at once by every worker of every process, a thousand times', async () => {
    using log = new TestLog()
    const locals = await Promise.all(
      [0, 1, 2].map(async () => {
        const database = await bench.another({ sharedLog: log.place() })
        const cache = cacheOf(database)
        await database.start()
        return { database, cache }
      }),
    )
    await using first = await RemoteWorker.start(bench.nodes(), log.place())
    await using second = await RemoteWorker.start(bench.nodes(), log.place())
    const id = await insert('-1')
    for (let n = 0; n < 1000; n++) {
      const writer = locals[n % locals.length]
      if (!writer) throw new Error('no writer')
      await write(writer.database, id, String(n))
      for (const { cache } of locals) {
        const held = cache.peek(id)
        expect(held === undefined || held.text === String(n)).toBe(true)
        expect((await cache.get(id))?.text).toBe(String(n))
      }
      expect(await Promise.all([first.get(id), second.get(id)])).toEqual([String(n), String(n)])
    }
  }, 120_000)

  test('is seen though a fill was paused between its read and its use', async () => {
    const { cache, read, goOn } = await pausing()
    const id = await insert('old')
    const getting = cache.get(id)
    await read
    await write(bench.database, id, 'new')
    const joining = cache.get(id)
    goOn()
    expect((await getting)?.text).toBe('new')
    expect((await joining)?.text).toBe('new')
    expect(cache.peek(id)?.text).toBe('new')
  })

  test('is seen even if an unfinished fill did not find it', async () => {
    const { cache, read, goOn } = await pausing()
    const id = crypto.randomUUID()
    const before = cache.get(id)
    await read
    await bench.database.transaction((tx) => bench.database.table(policies).insert(tx, { ...policy(randomName()), id }))
    const after = cache.get(id)
    goOn()
    expect(await before).toBeUndefined()
    expect((await after)?.id).toBe(id)
  })

  test('is never undone by a process that was stopped and continued', async () => {
    const remote = await RemoteWorker.start(bench.nodes())
    const id = await insert('0')
    await remote.watch(id)
    const answered: number[] = []
    for (let n = 1; n <= 3; n++) {
      await until(async () => (await remote.seen()).length > 0)
      remote.signal('SIGSTOP')
      await write(bench.database, id, String(n))
      answered[n] = Date.now()
      remote.signal('SIGCONT')
      expect(await remote.get(id)).toBe(String(n))
      for (const { text, at } of await remote.seen()) {
        const replaced = answered[Number(text) + 1]
        expect(replaced === undefined || at <= replaced, `saw ${text} too late`).toBe(true)
      }
    }
    await remote[Symbol.asyncDispose]()
  })

  test('does not wait for ever for a process that was killed, and then not at all', async () => {
    const { database } = await worker()
    const remote = await RemoteWorker.start(bench.nodes())
    const id = await insert('0')
    await remote.get(id)
    await remote.kill()
    await write(database, id, '1')
    const mine = async () => (await registrations()).find(({ incarnation }) => incarnation === remote.incarnation)
    await until(async () => (await mine())?.condemned !== 0)
    await until(async () => (await registrations()).every(({ incarnation }) => incarnation !== remote.incarnation))
  })

  test('does not wait for a process that the supervisor saw end', async () => {
    const { database } = await worker()
    const remote = await RemoteWorker.start(bench.nodes())
    await remote.kill()
    await database.forget([remote.incarnation])
    expect((await registrations()).map(({ incarnation }) => incarnation)).toEqual([database.incarnation])
  })

  test('does not wait for a process that stopped cleanly', async () => {
    const { database } = await worker()
    const remote = await RemoteWorker.start(bench.nodes())
    expect((await database.incarnations()).sort()).toEqual([database.incarnation, remote.incarnation].sort())
    await remote[Symbol.asyncDispose]()
    expect(await database.incarnations()).toEqual([database.incarnation])
    const acks = await bench.sql('SELECT DISTINCT registration FROM acks')
    expect(acks).toHaveLength(1)
  })

  test('whose answer was lost together with its versions is in no cache when it is found out', async () => {
    const lease = { leaseMilliseconds: 1000, marginMilliseconds: 250, pollMilliseconds: 900 }
    const far = await worker(bench.nodes(), { lease })
    await using line = await Line.open(bench.url)
    const writer = await bench.another({ url: line.url, lease })
    await writer.start()
    for (let n = 0; n < 3; n++) {
      const id = await insert('old')
      await far.cache.get(id)
      line.cut = 'after'
      await writer.transaction(async (tx) => {
        await writer.table(policies).removeWhere(tx, { id })
        tx.touch('policies', id)
      })
      expect(line.cut).toBe('none')
      expect(far.cache.peek(id)).toBeUndefined()
    }
  })

  test('is seen by a worker that was cut off, which serves nothing from its cache meanwhile', async () => {
    await using line = await Line.open(bench.url)
    const far = await worker(line.url)
    const id = await insert('old')
    expect((await far.cache.get(id))?.text).toBe('old')
    line.silent = true
    await write(bench.database, id, 'new')
    expect(far.cache.peek(id)).toBeUndefined()
    line.silent = false
    const text = async (): Promise<string | undefined> => (await far.cache.get(id))?.text
    expect(await text().catch(text)).toBe('new')
  })
})

/** A clock that only the test moves, and lease times with which polls happen only on request. */
function still(): { clock: Clock & { now: number }; lease: LeaseTimes } {
  const { sleep } = systemClock
  const clock = { now: 1_000_000, wall: () => clock.now, monotonic: () => clock.now, sleep }
  return { clock, lease: { leaseMilliseconds: 1000, marginMilliseconds: 250, pollMilliseconds: 600_000 } }
}

describe('a worker', () => {
  test('may serve from its cache for one lease from the beginning of a poll, however late its answer came', async () => {
    const { clock, lease } = still()
    await using line = await Line.open(bench.url)
    const { cache } = await worker(line.url, { clock, lease })
    const id = await insert('0')
    await cache.get(id)
    clock.now += 1000
    expect(cache.peek(id)).toBeUndefined()
    const poll = line.hold()
    const getting = cache.get(id)
    await poll.arrived
    clock.now += 600
    poll.release()
    expect((await getting)?.text).toBe('0')
    clock.now += 399
    expect(cache.peek(id)?.text).toBe('0')
    clock.now += 1
    expect(cache.peek(id)).toBeUndefined()
  })

  test('that was condemned drops its cache and registers again', async () => {
    const { database, cache } = await worker()
    const id = await insert('0')
    await cache.get(id)
    const [before] = await registrations()
    await bench.sql('UPDATE registrations SET condemned = 1')
    await until(async () => {
      const [only, ...others] = await registrations()
      return others.length === 0 && only?.id !== before?.id && only?.condemned === 0
    })
    expect(cache.size).toBe(0)
    expect((await cache.get(id))?.text).toBe('0')
    expect(await database.incarnations()).toEqual([database.incarnation])
  })

  test('whose registration is gone does the same', async () => {
    const { cache } = await worker()
    const id = await insert('0')
    await cache.get(id)
    await bench.sql('DELETE FROM registrations')
    await until(async () => (await registrations()).length === 1)
    await write(bench.database, id, '1')
    expect((await cache.get(id))?.text).toBe('1')
  })

  test('that finds the versions gone backwards starts over', async () => {
    const { cache } = await worker()
    const id = await insert('0')
    await write(bench.database, id, '1')
    await cache.get(id)
    const [before] = await registrations()
    await bench.sql('UPDATE versions SET v = 0')
    await until(async () => (await registrations()).some((one) => one.id !== before?.id))
    expect(cache.peek(id)).toBeUndefined()
  })

  test('that starts over takes nothing from a fill that read a database which was restored since', async () => {
    const { cache, read, goOn } = await pausing()
    const id = await insert('kept')
    const [kept] = await bench.sql('SELECT * FROM policies WHERE id = ?', [id])
    await write(bench.database, id, 'lost')
    const getting = cache.get(id)
    await read
    const [before] = await registrations()
    await bench.sql('UPDATE policies SET ? WHERE id = ?', [kept, id])
    await bench.sql('UPDATE versions SET v = 0')
    await until(async () => (await registrations()).some((one) => one.id !== before?.id && one.condemned === 0))
    goOn()
    // Its stamp is newer than any version the restored database has.
    expect((await getting)?.text).toBe('kept')
    expect(cache.peek(id)?.text).toBe('kept')
  })

  test('caches nothing before it has started, but can read', async () => {
    const cache = cacheOf(bench.database)
    const id = await insert('0')
    expect((await cache.get(id))?.text).toBe('0')
    expect(cache.size).toBe(0)
    await write(bench.database, id, '1')
    expect((await cache.get(id))?.text).toBe('1')
  })

  test('holds no more entries than its limit, and reports the ones it drops', async () => {
    const dropped: string[] = []
    const database = await bench.another()
    const cache = database.cache({
      table: 'policies',
      limit: 2,
      load: async (_, id) => id,
      onEvict: (value) => dropped.push(value),
    })
    await database.start()
    for (const id of ['a', 'b', 'c']) await cache.get(id)
    expect([cache.size, dropped]).toEqual([2, ['a']])
    cache.clear()
    expect(dropped.sort()).toEqual(['a', 'b', 'c'])
  })

  test('never caches absence', async () => {
    const { cache } = await worker()
    const id = crypto.randomUUID()
    expect(await cache.get(id)).toBeUndefined()
    await bench.database.transaction((tx) => bench.database.table(policies).insert(tx, { ...policy(randomName()), id }))
    expect((await cache.get(id))?.id).toBe(id)
  })
})
