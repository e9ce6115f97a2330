import { createConnection } from 'mysql2/promise'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { groupOf, leafOf } from '../../../src/store/coherence/leaves.ts'
import { Outdated } from '../../../src/store/faults.ts'
import type { Transaction } from '../../../src/store/reader.ts'
import { clustered } from '../../support/engine.ts'
import { type Bench, createBench, policies, policy, randomName } from '../support.ts'

/** What the statements that increment versions assert, and what their failures mean. */

let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

const cached = 'rows'
/** So long a time between polls that none finds out before. */
const rarely = { leaseMilliseconds: 120_000, pollMilliseconds: 60_000 }

async function worker() {
  const database = await bench.another({ lease: rarely, url: bench.url })
  const table = database.table(policies)
  const cache = database.cache({ table: cached, limit: 10, load: (q, id) => table.get(q, id) })
  await database.start()
  const { id } = await database.transaction((tx) => table.insert(tx, policy(randomName(), '0')))
  await database.transaction(async (tx) => tx.touch(cached, id))
  await cache.get(id)
  const change = () =>
    database.assuming({
      name: id,
      blind: async (tx) => {
        const row = cache.assume(tx, id)
        if (row === undefined) throw new Outdated()
        return 'blind'
      },
      reading: async () => 'reading',
    })
  return { id, leaf: leafOf(cached, id), change }
}

test('a version that the database has kept is assumed', async () => {
  expect(await (await worker()).change()).toBe('blind')
})

test('a version whose leaf the database has lost, with its only change, is noticed before the next poll', async () => {
  const { leaf, change } = await worker()
  await bench.sql('DELETE FROM version_leaves WHERE leaf = ?', [leaf])
  await bench.sql('UPDATE versions SET v = v - 1, itemised = itemised - 1 WHERE bucket = ?', [groupOf(leaf)])
  expect(await change()).toBe('reading')
})

test('the versions of two leaves of a group that always change together are assumed', async () => {
  const database = await bench.another({ lease: rarely, url: bench.url })
  const cache = database.cache({ table: cached, limit: 10, load: async (_, id) => id })
  await database.start()
  const [first = '', second = ''] = pairOfGroup()
  for (let n = 0; n < 3; n++)
    await database.transaction(async (tx) => void [first, second].map((id) => tx.touch(cached, id)))
  await Promise.all([first, second].map((id) => cache.get(id)))
  const change = async (tx: Transaction) => [first, second].map((id) => cache.assume(tx, id))
  expect(await database.transaction(change)).toEqual([first, second])
})

/** Two ids whose leaves are of one group. */
function pairOfGroup(): string[] {
  const ids = Array.from({ length: 500 }, (_, n) => `id${n}`)
  const groups = Map.groupBy(ids, (id) => groupOf(leafOf(cached, id)))
  const pair = [...groups.values()].find((some) => new Set(some.map((id) => leafOf(cached, id))).size > 1)
  const [one = ''] = pair ?? []
  return [one, pair?.find((id) => leafOf(cached, id) !== leafOf(cached, one)) ?? '']
}

// Nodes of a cluster hold no rows for each other.
test.skipIf(clustered)(
  'a change that has waited for a leaf in vain is read: its outcome is not in doubt',
  async () => {
    const { leaf, change } = await worker()
    const holder = await createConnection(bench.url)
    await holder.query('START TRANSACTION')
    await holder.query('SELECT * FROM version_leaves WHERE leaf = ? FOR UPDATE', [leaf])
    const outcomes = () => bench.sql('SELECT id FROM outcomes')
    const before = await outcomes()
    expect(await change()).toBe('reading')
    expect(await outcomes()).toEqual(before)
    await holder.end()
  },
  30_000,
)
