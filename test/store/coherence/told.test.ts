import { closeSync, openSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { groupOf, leafOf } from '../../../src/store/coherence/leaves.ts'
import { SharedLog } from '../../../src/store/coherence/sharedlog.ts'
import type { Transaction } from '../../../src/store/reader.ts'
import { clustered } from '../../support/engine.ts'
import { type Bench, createBench, policies, policy } from '../support.ts'
import { TestLog } from './testlog.ts'

/** Who hears of a worker's commits, and how. */

let bench: Bench
let log: TestLog
beforeEach(async () => {
  bench = await createBench()
  log = new TestLog()
})
afterEach(async () => {
  await bench[Symbol.asyncDispose]()
  log[Symbol.dispose]()
})

const touch = async (tx: Transaction) => tx.touch('policies', 'a')
const turn = () => new Promise((resolve) => setImmediate(resolve))
/** L and the polls of a worker that acknowledges nothing in time for these tests. */
const slow = { lease: { pollMilliseconds: 60_000, leaseMilliseconds: 90_000 } }

// In a cluster nothing is sent along with a COMMIT: whether there are others shows later.
test.skipIf(clustered)(
  'other nodes are nudged once one is registered, and once for all commits of a turn',
  async () => {
    let nudges = 0
    const writer = await bench.another({ sharedLog: log.place(), nudge: () => void nudges++ })
    await writer.start()
    await (await bench.another({ sharedLog: log.place() })).start()
    await writer.transaction(touch)
    await turn()
    expect(nudges).toBe(0)
    await (await bench.another()).start()
    await writer.transaction(touch)
    await turn()
    expect(nudges).toBe(1)
  },
)

test('a worker that shares the log sees a change at once, though it polls once a minute', async () => {
  const table = bench.database.table(policies)
  const { id } = await bench.database.transaction((tx) => table.insert(tx, policy('a', '0')))
  const [writer, reader] = [
    await bench.another({ sharedLog: log.place(), ...slow }),
    await bench.another({ sharedLog: log.place(), ...slow }),
  ]
  const cache = reader.cache({ table: 'policies', limit: 10, load: (q, key) => reader.table(policies).get(q, key) })
  await writer.start()
  await reader.start()
  for (let n = 1; n <= 100; n++) {
    expect((await cache.get(id))?.text).toBe(String(n - 1))
    expect(cache.peek(id)?.text).toBe(String(n - 1))
    await writer.transaction(async (tx) => {
      tx.touch('policies', id)
      const row = await writer.table(policies).get(tx, id)
      if (row) await writer.table(policies).update(tx, row, { text: String(n) })
    })
    expect(cache.peek(id)).toBeUndefined()
  }
}, 30_000)

test('the poll of one worker counts for all who share its log, and tells them', async () => {
  const table = bench.database.table(policies)
  const { id } = await bench.database.transaction((tx) => table.insert(tx, policy('a', '0')))
  const readers = [
    await bench.another({ sharedLog: log.place(), ...slow }),
    await bench.another({ sharedLog: log.place(), ...slow }),
  ]
  const caches = readers.map((reader) =>
    reader.cache({ table: 'policies', limit: 10, load: (q, key) => reader.table(policies).get(q, key) }),
  )
  for (const reader of readers) await reader.start()
  // The start of the second one made the first one poll.
  for (const cache of caches) await cache.get(id)
  for (let n = 1; n <= 20; n++) {
    for (const cache of caches) expect((await cache.get(id))?.text).toBe(String(n - 1))
    const polling = setInterval(() => readers[n % 2]?.poll(), 20)
    await bench.database.transaction(async (tx) => {
      tx.touch('policies', id)
      const row = await table.get(tx, id)
      if (row) await table.update(tx, row, { text: String(n) })
    })
    clearInterval(polling)
    for (const cache of caches) expect(cache.peek(id)).toBeUndefined()
  }
}, 30_000)

test('a worker that missed records uses nothing that it had before, and polls at once', async () => {
  const table = bench.database.table(policies)
  const { id } = await bench.database.transaction((tx) => table.insert(tx, policy('a', '0')))
  const writer = log.place()
  const reader = await bench.another({ sharedLog: log.place(), ...slow })
  const cache = reader.cache({ table: 'policies', limit: 10, load: (q, key) => reader.table(policies).get(q, key) })
  await reader.start()
  await cache.get(id)
  expect(cache.peek(id)?.text).toBe('0')
  await turn()
  const other = Array.from({ length: 70_000 }, (_, n) => [n % 100, 1] as const)
  new SharedLog(writer).append({ leaves: other, groups: [] })
  expect(cache.peek(id)).toBeUndefined()
  expect((await cache.get(id))?.text).toBe('0')
  await expect.poll(() => cache.peek(id)?.text).toBe('0')
})

test('a worker that cannot write to the log goes on without it', async () => {
  const place = log.place()
  const descriptor = openSync(`/proc/self/fd/${place.descriptor}`, 'r')
  const [writer, reader] = [
    await bench.another({ sharedLog: { ...place, descriptor } }),
    await bench.another({ sharedLog: log.place() }),
  ]
  await writer.start()
  await reader.start()
  for (let v = 1; v <= 3; v++) {
    await writer.transaction(touch)
    const [row] = await bench.sql(
      'SELECT a.v FROM acks a JOIN registrations r ON r.id = a.registration WHERE a.bucket = ? AND r.incarnation = ?',
      [groupOf(leafOf('policies', 'a')), reader.incarnation],
    )
    expect(row?.v).toBe(v)
  }
  // It acknowledges for itself alone from now on.
  const logs = () => bench.sql('SELECT shared_log FROM registrations WHERE incarnation = ?', [writer.incarnation])
  await expect.poll(logs).toEqual([{ shared_log: null }])
  await reader.transaction(touch)
  await bench.database.transaction(touch)
  expect(writer.healthy).toBe(true)
  closeSync(descriptor)
})

test('a worker does not start with a descriptor that is not the log', async () => {
  const stranger = openSync('/dev/null', 'r+')
  await expect(bench.another({ sharedLog: { ...log.place(), descriptor: stranger } })).rejects.toThrow(
    'is not the shared log',
  )
  closeSync(stranger)
})
