import { afterEach, beforeEach, expect, test } from 'vitest'
import type { CoherentCache } from '../../../src/store/coherence/cache.ts'
import type { Database } from '../../../src/store/database.ts'
import type { Row } from '../../../src/store/table.ts'
import { type Bench, createBench, policies, policy, randomName } from '../support.ts'

/** New values that are cached without being read, by the version that their leaf was known to have before. */

type PolicyRow = Row<typeof policies>

let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

interface Worker {
  readonly database: Database
  readonly cache: CoherentCache<PolicyRow>
  reads: number
}

/** @param started whether it caches */
async function worker(started = true): Promise<Worker> {
  const database = await bench.another()
  const cache = database.cache<PolicyRow>({
    table: 'rows',
    limit: 100,
    load: (q, id) => {
      one.reads++
      return database.table(policies).get(q, id)
    },
  })
  const one: Worker = { database, cache, reads: 0 }
  if (started) await database.start()
  return one
}

/** @param meanwhile runs between the COMMIT and the caching */
async function created({ database, cache }: Worker, meanwhile = async (_id: string): Promise<unknown> => undefined) {
  const id = crypto.randomUUID()
  const creating = cache.creating(id)
  const row = await database.transaction((tx) => database.table(policies).insert(tx, { id, ...policy(randomName()) }))
  await meanwhile(id)
  creating.done(row)
  return id
}

const change = ({ database }: Worker, id: string) =>
  database.transaction(async (tx) => {
    const row = await database.table(policies).lock(tx, { id })
    if (row) await database.table(policies).update(tx, row, { text: 'changed' })
    tx.touch('rows', id)
  })

test('a new value is cached without being read', async () => {
  const one = await worker()
  const id = await created(one)
  expect(one.cache.peek(id)?.id).toBe(id)
  expect(one.reads).toBe(0)
})

test.each([
  ['another worker', () => worker()],
  ['the same worker', async (one: Worker) => one],
])('it is not used once %s has changed it, before or after it was cached', async (_title, other) => {
  const one = await worker()
  const changer = await other(one)
  const before = await created(one, (id) => change(changer, id))
  const after = await created(one)
  await change(changer, after)
  for (const id of [before, after]) {
    expect(one.cache.peek(id)).toBeUndefined()
    expect((await one.cache.get(id))?.text).toBe('changed')
  }
})

test('it is not cached once the cache was emptied, nor where nothing is cached', async () => {
  const one = await worker()
  const id = await created(one, async () => one.cache.clear())
  expect(one.cache.peek(id)).toBeUndefined()
  const quiet = await worker(false)
  const other = await created(quiet)
  expect([quiet.cache.peek(other), quiet.cache.size]).toEqual([undefined, 0])
})
