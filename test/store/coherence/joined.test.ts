import { afterEach, beforeEach, expect, test } from 'vitest'
import type { CoherentCache } from '../../../src/store/coherence/cache.ts'
import type { Database } from '../../../src/store/database.ts'
import { Line } from '../line.ts'
import { type Bench, createBench, mounts, open, policies, policy, randomName } from '../support.ts'

/** Caches that read the rows of two tables, and the version of their leaf, by one statement. */

let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

interface Pair {
  readonly text: string
  readonly path: string | undefined
}

/** A policy by its id with the mount of the same id, where there is one. */
async function worker(): Promise<{ database: Database; cache: CoherentCache<Pair> }> {
  const database = await bench.another()
  const joined = database.joined({
    tables: { policy: policies, mount: mounts },
    key: (id) => ({ id }),
    value: ({ policy, mount }) => policy && { text: policy.text, path: mount?.path },
  })
  const cache = database.cache({ table: 'policies', limit: 10, load: { joined } })
  await database.start()
  return { database, cache }
}

const mountOf = (id: string) => ({
  ...{ id, path: 'p/', type: 't', description: '', accessor: 'a', config: {}, options: null },
  ...{ local: false, sealWrap: false, touched: false, createdAt: 1 },
})

async function insert(text: string): Promise<string> {
  const { database } = bench
  return (await database.transaction((tx) => database.table(policies).insert(tx, policy(randomName(), text)))).id
}

test('rows are there each for itself, and a change of either is seen at once', async () => {
  const id = await insert('old')
  const { cache } = await worker()
  const { database } = bench
  expect(await cache.get(id)).toEqual({ text: 'old', path: undefined })
  expect(await cache.get('none')).toBeUndefined()
  await database.transaction(async (tx) => {
    await database.table(mounts).insert(tx, mountOf(id))
    tx.touch('policies', id)
  })
  expect(await cache.get(id)).toEqual({ text: 'old', path: 'p/' })
  await database.transaction(async (tx) => {
    const row = await database.table(policies).get(tx, id)
    if (row) await database.table(policies).update(tx, row, { text: 'new' })
    tx.touch('policies', id)
  })
  expect(cache.peek(id)).toBeUndefined()
  expect(await cache.get(id)).toEqual({ text: 'new', path: 'p/' })
})

test('a row that was edited is refused, and one that a lax collation takes for the key is not the answer', async () => {
  const id = await insert('old')
  const { cache } = await worker()
  await bench.sql(`UPDATE policies SET text = 'edited' WHERE id = '${id}'`)
  await expect(cache.get(id)).rejects.toThrow('the seal is broken')
  await bench.sql(`UPDATE policies SET text = 'old' WHERE id = '${id}'`)
  expect(await cache.get(id)).toEqual({ text: 'old', path: undefined })
  await bench.sql('ALTER TABLE policies MODIFY id VARCHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci')
  expect(await cache.get(id.toUpperCase())).toBeUndefined()
})

test('before a process caches anything it reads the same', async () => {
  const id = await insert('text')
  const { database } = bench
  const joined = database.joined({ tables: { policy: policies }, key: () => ({ id }), value: ({ policy }) => policy })
  const cache = database.cache({ table: 'policies', limit: 10, load: { joined } })
  expect((await cache.get(id))?.text).toBe('text')
  expect(cache.size).toBe(0)
})

test('of many that are asked for at once each gets its own, in few statements, and a damaged one harms no other', async () => {
  const ids: string[] = []
  for (let n = 0; n < 40; n++) ids.push(await insert(`text ${n}`))
  const damaged = ids[7] as string
  await bench.sql(`UPDATE policies SET text = 'edited' WHERE id = '${damaged}'`)
  const { cache } = await worker()
  const statements = await bench.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'").then(countOf)
  const found = await Promise.allSettled([...ids, 'none', ...ids].map((id) => cache.get(id)))
  const more = (await bench.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'").then(countOf)) - statements
  expect(found.map((one) => (one.status === 'fulfilled' ? one.value?.text : 'refused'))).toEqual(
    [...ids, 'none', ...ids].map((id, index) =>
      id === damaged ? 'refused' : id === 'none' ? undefined : `text ${index % 41}`,
    ),
  )
  expect(more).toBeLessThan(ids.length)
})

test('while the database says nothing, those that wait are refused with the first of them', async () => {
  await using line = await Line.open(bench.url)
  await using database = await open(line.url)
  const joined = database.joined({
    ...{ tables: { policy: policies }, key: (id: string) => ({ id }) },
    value: ({ policy }) => policy,
  })
  const cache = database.cache({ table: 'policies', limit: 10, load: { joined } })
  expect(await cache.get('none')).toBeUndefined()
  line.silent = true
  const before = line.connections
  const found = await Promise.allSettled(Array.from({ length: 200 }, (_, n) => cache.get(`none${n}`)))
  expect(found).toEqual(Array(200).fill({ status: 'rejected', reason: expect.objectContaining({ status: 503 }) }))
  // Five while the first two groups try; fifty if all thirteen tried.
  expect(line.connections - before).toBeLessThan(25)
}, 200_000)

const countOf = ([row]: readonly Readonly<Record<string, unknown>>[]): number => Number(row?.Value)
