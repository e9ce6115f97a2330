import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { unavailable } from '../../../src/errors.ts'
import type { CoherentCache } from '../../../src/store/coherence/cache.ts'
import { groupOf, leafOf } from '../../../src/store/coherence/leaves.ts'
import type { Database } from '../../../src/store/database.ts'
import { DamagedRow, Outdated } from '../../../src/store/faults.ts'
import type { Transaction } from '../../../src/store/reader.ts'
import type { Row } from '../../../src/store/table.ts'
import { clustered } from '../../support/engine.ts'
import { Line } from '../line.ts'
import { type Bench, createBench, open, policies, policy, randomName, testMac } from '../support.ts'

/** Changes by rows that a cache holds, unread: each raises a number, the text of a row, by one. */

type PolicyRow = Row<typeof policies>

/** Policies have few leaves of their own, of which two rows could share one. */
const cached = 'rows'

/** On a busy machine, too, caches serve until their next poll. */
const patient = { leaseMilliseconds: 20_000, pollMilliseconds: 100 }

let bench: Bench
beforeEach(async () => {
  bench = await createBench({ lease: patient })
})
afterEach(() => bench[Symbol.asyncDispose]())

interface Worker {
  readonly database: Database
  readonly cache: CoherentCache<PolicyRow>
  /** Changes that were committed by each form. */
  readonly made: { blind: number; reading: number }
}

async function started(database: Database): Promise<Worker> {
  const cache = database.cache<PolicyRow>({
    table: cached,
    limit: 100,
    load: (q, id) => database.table(policies).get(q, id),
  })
  await database.start()
  return { database, cache, made: { blind: 0, reading: 0 } }
}
const worker = async () => started(await bench.another())

const inserted = (text = '0') =>
  bench.database.transaction((tx) => bench.database.table(policies).insert(tx, policy(randomName(), text)))
const stored = async (id: string) => (await bench.database.read((q) => bench.database.table(policies).get(q, id)))?.text

async function raised({ database, cache }: Worker, tx: Transaction, row: PolicyRow): Promise<number> {
  const next = Number(row.text) + 1
  tx.touch(cached, row.id)
  cache.put(tx, row.id, await database.table(policies).update(tx, row, { text: String(next) }))
  return next
}

interface Made {
  readonly form: 'blind' | 'reading'
  readonly next: number
}

/** Raises the number of a row. @param meanwhile runs between the assumption and the commit */
async function raise(one: Worker, id: string, meanwhile = async (): Promise<unknown> => undefined): Promise<number> {
  const { database, cache, made } = one
  const table = database.table(policies)
  const { form, next } = await database.assuming<Made>({
    name: id,
    blind:
      cache.peek(id) &&
      (async (tx) => {
        const row = cache.assume(tx, id)
        if (row === undefined) throw new Outdated()
        table.assume(tx, row)
        await meanwhile()
        return { form: 'blind', next: await raised(one, tx, row) }
      }),
    reading: async (tx) => {
      const row = await table.lock(tx, { id })
      if (row === undefined) throw new Error('the row is gone')
      return { form: 'reading', next: await raised(one, tx, row) }
    },
  })
  made[form]++
  return next
}

/** So long a time between polls that none is counted below. */
const rarely = { leaseMilliseconds: 120_000, pollMilliseconds: 60_000 }

// In a cluster, statements go one by one.
test.skipIf(clustered)('a change of a cached row is one round trip', async () => {
  await using line = await Line.open(bench.url)
  await using database = await open(line.url, { lease: rarely })
  const one = await started(database)
  const { id } = await inserted()
  await raise(one, id)
  const before = line.commands
  for (let n = 2; n <= 6; n++) expect(await raise(one, id)).toBe(n)
  expect(line.commands - before).toBe(5)
  expect(one.made).toEqual({ blind: 5, reading: 1 })
  expect(one.cache.peek(id)?.text).toBe('6')
  expect(await stored(id)).toBe('6')
})

test('a row that is not cached is read', async () => {
  const one = await worker()
  const { id } = await inserted()
  expect(await raise(one, id)).toBe(1)
  expect(await raise(one, id)).toBe(2)
  expect(one.made).toEqual({ blind: 1, reading: 1 })
})

test('a row that another worker changed meanwhile is read, and neither change is lost', async () => {
  const [one, other] = [await worker(), await worker()]
  const { id } = await inserted()
  await Promise.all([one.cache.get(id), other.cache.get(id)])
  expect(await raise(one, id, () => raise(other, id))).toBe(2)
  expect([one.made, other.made]).toEqual([
    { blind: 0, reading: 1 },
    { blind: 1, reading: 0 },
  ])
  expect(await stored(id)).toBe('2')
})

test('what another worker has changed is read for half a second, and then assumed again', async () => {
  let now = 1_000_000
  await using database = await open(bench.url, { lease: patient, clock: { ...systemClock, monotonic: () => now } })
  const [one, other] = [await started(database), await worker()]
  const { id } = await inserted()
  await one.cache.get(id)
  await raise(one, id, () => raise(other, id))
  await raise(one, id)
  now += 499
  await raise(one, id)
  expect(one.made).toEqual({ blind: 0, reading: 3 })
  now += 1
  expect(await raise(one, id)).toBe(5)
  expect(one.made).toEqual({ blind: 1, reading: 3 })
})

test('of two changes of one row at once the second reads, and so do those that follow soon', async () => {
  let now = 1_000_000
  await using database = await open(bench.url, { lease: patient, clock: { ...systemClock, monotonic: () => now } })
  const one = await started(database)
  const { id } = await inserted()
  await one.cache.get(id)
  // The first one may be overtaken by the second one, and reads then.
  expect((await Promise.all([raise(one, id), raise(one, id)])).sort()).toEqual([1, 2])
  const { reading } = one.made
  expect(reading).toBeGreaterThan(0)
  await raise(one, id)
  expect(one.made.reading).toBe(reading + 1)
  now += 500
  await raise(one, id)
  expect(one.made.reading).toBe(reading + 1)
})

test('a row that was removed meanwhile is read', async () => {
  const [one, other] = [await worker(), await worker()]
  const { id } = await inserted()
  await one.cache.get(id)
  const remove = () =>
    other.database.transaction(async (tx) => {
      const row = await other.database.table(policies).lock(tx, { id })
      if (row) await other.database.table(policies).remove(tx, row)
    })
  await expect(raise(one, id, remove)).rejects.toThrow('the row is gone')
})

test('a row that was edited in the database is read, and refused', async () => {
  const one = await worker()
  const { id } = await inserted()
  await one.cache.get(id)
  await bench.sql('UPDATE policies SET rev = rev + 1 WHERE id = ?', [id])
  await expect(raise(one, id)).rejects.toThrow(DamagedRow)
  expect(one.made).toEqual({ blind: 0, reading: 0 })
})

test('a value that was only touched meanwhile is read: it may depend on other rows', async () => {
  await using line = await Line.open(bench.url)
  await using database = await open(line.url, { lease: patient })
  const [one, other] = [await started(database), await worker()]
  const { id } = await inserted()
  await one.cache.get(id)
  const touch = () => other.database.transaction(async (tx) => tx.touch(cached, id))
  expect(await raise(one, id, touch)).toBe(1)
  expect(one.made).toEqual({ blind: 0, reading: 1 })
  // The database has said that nothing was committed: the connection is as good as before.
  expect(line.closed).toBe(0)
})

test('a value whose whole group an older program has changed meanwhile is read', async () => {
  const one = await worker()
  const { id } = await inserted()
  await raise(one, id)
  const group = groupOf(leafOf(cached, id))
  const older = () => bench.sql('UPDATE versions SET v = v + 1 WHERE bucket = ?', [group])
  expect(await raise(one, id, older)).toBe(2)
  expect(one.made).toEqual({ blind: 0, reading: 2 })
  while (one.cache.peek(id) === undefined) await one.cache.get(id)
  await delay(600)
  expect(await raise(one, id)).toBe(3)
  expect(one.made).toEqual({ blind: 1, reading: 2 })
})

test('changes of many rows at once share their commits', async () => {
  const one = await worker()
  const ids = await Promise.all(Array.from({ length: 20 }, async () => (await inserted()).id))
  await Promise.all(ids.map((id) => one.cache.get(id)))
  const outcomes = async () => Number((await bench.sql('SELECT COUNT(*) AS n FROM outcomes'))[0]?.n)
  const before = await outcomes()
  expect(await Promise.all(ids.map((id) => raise(one, id)))).toEqual(ids.map(() => 1))
  expect(one.made).toEqual({ blind: 20, reading: 0 })
  expect((await outcomes()) - before).toBeLessThan(10)
})

test('of changes that share a commit one that is outdated is read, and fails no other', async () => {
  const [one, other] = [await worker(), await worker()]
  const ids = await Promise.all(Array.from({ length: 8 }, async () => (await inserted()).id))
  await Promise.all(ids.map((id) => one.cache.get(id)))
  let done: Promise<unknown> | undefined
  const change = (id: string, n: number) =>
    raise(one, id, async () => {
      if (n !== 3) return
      done ??= raise(other, id)
      await done
    })
  expect(await Promise.all(ids.map(change))).toEqual(ids.map((_, n) => (n === 3 ? 2 : 1)))
  expect(one.made).toEqual({ blind: 7, reading: 1 })
})

/** Another worker holds a row until it is released. */
async function held(by: Worker, id: string): Promise<() => Promise<void>> {
  const holding = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const holder = by.database.transaction(async (tx) => {
    await by.database.table(policies).lock(tx, { id })
    holding.resolve()
    await release.promise
  })
  await holding.promise
  return () => {
    release.resolve()
    return holder
  }
}

test.each([0, 30])(
  'a row that another transaction holds holds up no change of other rows %d ms later',
  async (milliseconds) => {
    const [one, other] = [await worker(), await worker()]
    const ids = await Promise.all(Array.from({ length: 8 }, async () => (await inserted()).id))
    await Promise.all(ids.map((id) => one.cache.get(id)))
    const [first = '', ...rest] = ids
    const release = await held(other, first)
    const waiting = raise(one, first)
    if (milliseconds > 0) await delay(milliseconds)
    expect(await Promise.all(rest.map((id) => raise(one, id)))).toEqual(rest.map(() => 1))
    await release()
    expect(await waiting).toBe(1)
    // Between nodes of a cluster nothing waits.
    if (!clustered) expect(one.made.reading).toBeGreaterThan(0)
  },
)

test('a change that fails, even for a reason of the server, fails no other', async () => {
  const one = await worker()
  const table = one.database.table(policies)
  const create = (n: number) =>
    one.database.assuming({
      name: String(n),
      blind: (tx) => table.insert(tx, policy(randomName())),
      reading: (tx) => table.insert(tx, policy(randomName())),
    })
  const fail = async () => {
    throw unavailable('only this one')
  }
  const failing = one.database.assuming({ name: 'failing', blind: fail, reading: fail })
  const [failed, ...made] = await Promise.allSettled([failing, ...Array.from({ length: 100 }, (_, n) => create(n))])
  expect(failed).toMatchObject({ status: 'rejected', reason: { status: 503, message: 'only this one' } })
  expect(new Set(made.map(({ status }) => status))).toEqual(new Set(['fulfilled']))
})

test('of two changes of one row that are known by different names neither is lost', async () => {
  const one = await worker()
  const table = one.database.table(policies)
  const { id } = await inserted()
  await one.cache.get(id)
  const change = (name: string) =>
    one.database.assuming({
      name,
      blind: async (tx) => {
        const row = one.cache.assume(tx, id)
        if (row === undefined) throw new Outdated()
        table.assume(tx, row)
        return raised(one, tx, row)
      },
      reading: async (tx) => {
        const row = await table.lock(tx, { id })
        if (row === undefined) throw new Error('the row is gone')
        return raised(one, tx, row)
      },
    })
  const answers = await Promise.all(['first', 'second', 'third'].map(change))
  expect(answers.toSorted()).toEqual([1, 2, 3])
  expect(await stored(id)).toBe('3')
})

test('a change that throws before it returns a promise fails no other, nor leaves one behind', async () => {
  const one = await worker()
  const ids = await Promise.all(Array.from({ length: 4 }, async () => (await inserted()).id))
  await Promise.all(ids.map((id) => one.cache.get(id)))
  const blind = () => {
    throw new Outdated()
  }
  const throwing = () => one.database.assuming({ name: 'throwing', blind, reading: async () => 'read' })
  const slow = () => delay(20)
  const [first = '', ...rest] = ids
  const changes = [raise(one, first, slow), ...rest.map((id) => raise(one, id, slow)), throwing()]
  expect(await Promise.all(changes)).toEqual([1, 1, 1, 1, 'read'])
  expect(await Promise.all(ids.map(stored))).toEqual(['1', '1', '1', '1'])
})

test('changes that share a commit are sealed at the same time', async () => {
  let [now, most] = [0, 0]
  const mac = testMac()
  const slow = {
    ...mac,
    compute: async (message: Buffer) => {
      most = Math.max(most, ++now)
      await delay(20)
      now--
      return mac.compute(message)
    },
  }
  const database = await bench.another()
  database.useMac(slow)
  const one = await started(database)
  const ids = await Promise.all(Array.from({ length: 16 }, async () => (await inserted()).id))
  await Promise.all(ids.map((id) => one.cache.get(id)))
  expect(await Promise.all(ids.map((id) => raise(one, id)))).toEqual(ids.map(() => 1))
  expect(most).toBe(16)
})

test('a unique key that is taken is found by reading, and fails no other', async () => {
  const one = await worker()
  const table = one.database.table(policies)
  const name = randomName()
  await one.database.transaction((tx) => table.insert(tx, policy(name, 'first')))
  const create = (wanted: string) =>
    one.database.assuming({
      name: wanted,
      blind: (tx) => table.insert(tx, policy(wanted, 'second')),
      reading: async (tx) =>
        (await table.find(tx, { name: wanted })) ?? (await table.insert(tx, policy(wanted, 'second'))),
    })
  const made = await Promise.all([randomName(), name, randomName()].map(create))
  expect(made.map(({ text }) => text)).toEqual(['second', 'first', 'second'])
})

test('three workers and 24 clients raise 16 rows 900 times: no answer twice, none lost', async () => {
  const workers = [await worker(), await worker(), await worker()]
  const ids = await Promise.all(Array.from({ length: 16 }, async () => (await inserted()).id))
  const answers = new Map(ids.map((id) => [id, [] as number[]]))
  const clients = Array.from({ length: 24 }, async (_, client) => {
    for (let n = 0; n < 37 + Number(client < 12); n++) {
      const [one, id] = [workers[client % 3], ids[(5 * client + n) % 16]]
      if (one && id !== undefined) answers.get(id)?.push(await raise(one, id))
    }
  })
  await Promise.all(clients)
  const all = [...answers.values()]
  expect(all.flat()).toHaveLength(900)
  for (const numbers of all) expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers.map((_, n) => n + 1))
  const sum = (form: 'blind' | 'reading') => workers.reduce((count, { made }) => count + made[form], 0)
  expect(sum('blind') + sum('reading')).toBe(900)
  expect([sum('blind') > 0, sum('reading') > 0]).toEqual([true, true])
}, 120_000)
