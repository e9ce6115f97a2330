import { afterEach, beforeEach, expect, test } from 'vitest'
import { groupOf, leafOf } from '../../src/store/coherence/leaves.ts'
import { Line } from './line.ts'
import { type Bench, createBench, policies, policy, randomName } from './support.ts'

let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

/** A worker that caches policies by name. */
async function worker(url = bench.url) {
  const database = await bench.another({ url })
  const table = database.table(policies)
  const cache = database.cache({ table: 'policies', limit: 10, load: (q, name) => table.find(q, { name }) })
  await database.start()
  return { database, cache, table }
}

async function until(what: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await what())) await new Promise((resolve) => setTimeout(resolve, 10))
}

test('a change causes no refill of values in other leaves', async () => {
  const { database } = await worker()
  let fills = 0
  const cache = database.cache({
    table: 'transit_rings',
    limit: 10,
    load: async (_, id) => {
      fills++
      return id
    },
  })
  const place = (n: number) => leafOf('transit_rings', String(n))
  const near = [...Array(100_000).keys()].find(
    (n) => n > 0 && groupOf(place(n)) === groupOf(place(0)) && place(n) !== place(0),
  )
  await cache.get('0')
  await bench.database.transaction(async (tx) => tx.touch('transit_rings', String(near)))
  expect([await cache.get('0'), fills]).toEqual(['0', 1])
  await bench.database.transaction(async (tx) => tx.touch('transit_rings', '0'))
  expect([await cache.get('0'), fills]).toEqual(['0', 2])
})

test('policies, mounts, audit devices and settings share their leaves with no other table', () => {
  const hashed = new Set(Array.from({ length: 20_000 }, (_, n) => leafOf('transit_rings', String(n))))
  for (const table of ['policies', 'mounts', 'audit_devices', 'system_settings'])
    expect(hashed.has(leafOf(table, 'set'))).toBe(false)
})

test('certificates have groups of their own, which every schema has a row of', async () => {
  const groupsOf = (table: string): number[] => [
    ...new Set(Array.from({ length: 20_000 }, (_, n) => groupOf(leafOf(table, `${n}`)))),
  ]
  const certificates = groupsOf('pki_certificates').toSorted((a, b) => a - b)
  for (const table of ['transit_rings', 'tokens', 'policies', 'mounts', 'audit_devices'])
    for (const group of groupsOf(table)) expect(certificates).not.toContain(group)
  const rows = await bench.sql('SELECT bucket FROM versions WHERE bucket >= 256 ORDER BY bucket')
  expect(rows.map(({ bucket }) => bucket)).toEqual(certificates)
})

test('thousands of revocations cost the caches of other tables nothing', async () => {
  const { database } = await worker()
  const load = async (_: unknown, id: string) => id
  const cache = database.cache({ table: 'transit_rings', limit: 1000, load })
  const keys = Array.from({ length: 500 }, (_, n) => `ring ${n}`)
  for (const key of keys) while (cache.peek(key) === undefined) await cache.get(key)
  const revoke = (group: number) =>
    bench.database.transaction(async (tx) => {
      for (let n = 0; n < 500; n++) tx.touch('pki_certificates', `m ${group} ${n}`)
    })
  await Promise.all(Array.from({ length: 10 }, (_, group) => revoke(group)))
  // Between two late polls nothing is answered from a cache; what was dropped does not come back.
  await expect.poll(() => keys.filter((key) => cache.peek(key) === undefined)).toEqual([])
})

test('a change by a program that knows groups alone replaces every leaf of its groups', async () => {
  const { cache, table, database } = await worker()
  const name = randomName()
  await database.transaction((tx) => table.insert(tx, policy(name, 'old')))
  expect((await cache.get(name))?.text).toBe('old')
  const [before] = await bench.sql('SELECT MAX(v) AS v FROM acks')
  await database.transaction(async (tx) => {
    const row = await table.find(tx, { name })
    if (row) await table.update(tx, row, { text: 'new' })
  })
  const group = groupOf(leafOf('policies', name))
  await bench.sql('UPDATE versions SET v = v + 1 WHERE bucket = ?', [group])
  await until(async () => {
    const [ack] = await bench.sql('SELECT v FROM acks WHERE bucket = ?', [group])
    return Number(ack?.v) > Number(before?.v)
  })
  expect(cache.peek(name)).toBeUndefined()
  expect((await cache.get(name))?.text).toBe('new')
})

test('a name that is deleted and made again is never answered for while its old row is cached anywhere', async () => {
  await using line = await Line.open(bench.url)
  const name = randomName()
  const { database } = bench
  const table = database.table(policies)
  const { id } = await database.transaction((tx) => table.insert(tx, policy(name, 'old')))
  const far = await worker(line.url)
  expect((await far.cache.get(name))?.id).toBe(id)
  line.silent = true
  const deleting = database.transaction(async (tx) => {
    await table.removeWhere(tx, { name })
    tx.touch('policies', name)
  })
  await until(async () => (await bench.sql('SELECT id FROM policies WHERE name = ?', [name])).length === 0)
  expect(far.cache.peek(name)?.id).toBe(id)
  await database.transaction(async (tx) => {
    await table.insert(tx, policy(name, 'new'))
    tx.touch('policies', name)
  })
  expect(far.cache.peek(name)).toBeUndefined()
  await deleting
})

test('a fill that was under way when the versions went backwards is not kept', async () => {
  const { database, table } = await worker()
  const name = randomName()
  await database.transaction((tx) => table.insert(tx, policy(name, 'old')))
  const [read, paused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let fills = 0
  const cache = database.cache({
    table: 'policies',
    limit: 10,
    async load(q, wanted) {
      const row = await table.find(q, { name: wanted })
      if (fills++ > 0) return row
      read.resolve()
      await paused.promise
      return row
    },
  })
  await bench.database.transaction(async (tx) => tx.touch('policies', name))
  const getting = cache.get(name)
  await read.promise
  const [registered] = await bench.sql('SELECT id FROM registrations')
  await bench.sql('UPDATE versions SET v = 0, itemised = 0')
  await until(async () => {
    const [now] = await bench.sql('SELECT id FROM registrations')
    return now !== undefined && now.id !== registered?.id
  })
  paused.resolve()
  await getting
  expect(fills).toBe(2)
})
