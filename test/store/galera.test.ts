import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createConnection } from 'mysql2/promise'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/database.ts'
import { createDatabase } from '../support/database.ts'
import { engine } from '../support/engine.ts'
import { type Bench, counters, createBench, policies, policy, randomName } from './support.ts'

const galera = (...words: string[]): string =>
  execFileSync(join(import.meta.dirname, '../../scripts/galera'), words, { encoding: 'utf8' })

describe.runIf(engine === 'galera')('on three Galera nodes', () => {
  let bench: Bench
  let nodes: Database[]
  // New connections for each test: after the loss of a node all would go to the same one.
  beforeEach(async () => {
    bench = await createBench()
    nodes = [await bench.another(), await bench.another(), await bench.another()]
  })
  afterEach(() => bench[Symbol.asyncDispose]())

  const node = (n: number): Database => nodes[n % 3] ?? bench.database

  test('a write through one node is read through every other', async () => {
    const { id } = await node(0).transaction((tx) => node(0).table(policies).insert(tx, policy(randomName(), '0')))
    for (let n = 1; n <= 300; n++) {
      await node(n).transaction(async (tx) => {
        const row = await node(n).table(policies).get(tx, id)
        if (row)
          await node(n)
            .table(policies)
            .update(tx, row, { text: String(n) })
      })
      const read = (one: Database) => one.read((q) => one.table(policies).get(q, id))
      const rows = await Promise.all([read(node(n + 1)), read(node(n + 2))])
      expect(rows.map((row) => row?.text)).toEqual([String(n), String(n)])
    }
  })

  test('a test gets its schema when the slowest node has it', async () => {
    await using slow = await createConnection(bench.nodeUrl(1))
    await slow.query('FLUSH TABLES WITH READ LOCK')
    const unlocked = delay(500).then(() => slow.query('UNLOCK TABLES'))
    await using held = await createDatabase()
    await using session = await createConnection(held.urls[1] ?? '')
    await session.query('SELECT 1')
    await unlocked
  })

  test('increments of one row through all nodes are all made, each once', async () => {
    const material = crypto.randomUUID()
    await node(0).transaction((tx) => node(0).table(counters).insert(tx, { material, used: 0 }))
    let runs = 0
    const add = async (n: number) => {
      for (let i = 0; i < 40; i++) {
        await node(n).transaction(
          (tx) => {
            runs++
            return node(n).table(counters).add(tx, { material }, { used: 1 })
          },
          { deadlineMilliseconds: 60_000 },
        )
      }
    }
    await Promise.all([0, 1, 2, 0, 1, 2].map(add))
    const row = await node(1).read((q) => node(1).table(counters).find(q, { material }))
    expect(row?.used).toBe(240)
    expect(runs).toBeGreaterThan(240)
  }, 120_000)

  test('two nodes that create the same name at once make one row', async () => {
    for (let i = 0; i < 30; i++) {
      const name = randomName()
      const create = (database: Database) =>
        database.transaction(async (tx) => {
          const table = database.table(policies)
          return (await table.find(tx, { name })) ?? (await table.insert(tx, policy(name)))
        })
      const rows = await Promise.all(nodes.map(create))
      expect(new Set(rows.map(({ id }) => id)).size).toBe(1)
    }
  })

  test('a node that was cut off and serves dirty reads never gives a stale answer', async () => {
    const far = bench.nodeUrl(2)
    await bench.sql('SET GLOBAL wsrep_dirty_reads = ON', [], far)
    const { id } = await node(0).transaction((tx) => node(0).table(policies).insert(tx, policy(randomName(), 'old')))
    const database = await bench.another({ url: far })
    const table = database.table(policies)
    const cache = database.cache({ table: 'policies', limit: 10, load: (q, wanted) => table.get(q, wanted) })
    await database.start()
    expect((await cache.get(id))?.text).toBe('old')
    const plain = await bench.another({ url: far })
    await bench.sql("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'", [], far)
    const near = await bench.another({ url: bench.nodeUrl(0) })
    await near.transaction(
      async (tx) => {
        const row = await near.table(policies).get(tx, id)
        if (row) await near.table(policies).update(tx, row, { text: 'new' })
        tx.touch('policies', id)
      },
      { deadlineMilliseconds: 60_000 },
    )
    const ways = [
      async () => cache.get(id),
      () => database.read((q) => table.get(q, id)),
      () => plain.read((q) => plain.table(policies).get(q, id)),
      () => plain.snapshot((q) => plain.table(policies).get(q, id)),
      () => plain.transaction((tx) => plain.table(policies).get(tx, id)),
    ]
    for (const answer of await Promise.allSettled(ways.map((way) => way()))) {
      expect(answer.status === 'rejected' || answer.value?.text).not.toBe('old')
    }
    await bench.sql("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'", [], far)
    await bench.sql('SET GLOBAL wsrep_dirty_reads = OFF', [], far)
    while ((await Promise.resolve(cache.get(id)).catch(() => undefined))?.text !== 'new') await delay(100)
  }, 180_000)

  test('a killed node loses no acknowledged write, and its clients continue', async () => {
    const material = crypto.randomUUID()
    await node(0).transaction((tx) => node(0).table(counters).insert(tx, { material, used: 0 }))
    const names: string[] = []
    let running = true
    const write = async (n: number) => {
      for (let i = 0; running; i++) {
        const name = `${n}-${i}-${material}`
        await node(n).transaction(
          async (tx) => {
            await node(n).table(policies).insert(tx, policy(name))
            await node(n).table(counters).add(tx, { material }, { used: 1 })
          },
          { deadlineMilliseconds: 60_000 },
        )
        names.push(name)
      }
    }
    const writing = Promise.all([0, 1, 2].map(write))
    await delay(500)
    const before = names.length
    galera('kill', '3')
    await delay(6000)
    galera('start', '3')
    await delay(500)
    running = false
    await writing
    expect(names.length).toBeGreaterThan(before)
    for (const database of nodes) {
      const stored = await database.read((q) =>
        database.table(policies).list(q, { mount: '' }, { by: 'name', limit: 100_000 }),
      )
      const found = new Set(stored.map(({ name }) => name))
      expect(names.filter((name) => !found.has(name))).toEqual([])
      const row = await database.read((q) => database.table(counters).find(q, { material }))
      expect(row?.used).toBe(names.length)
    }
  }, 180_000)
})
