import { describe, expect, test } from 'vitest'
import type { Transaction } from '../../../src/store/reader.ts'
import { engine } from '../../support/engine.ts'
import { type Bench, createBench, policies, policy, randomName } from '../support.ts'

/** What a transaction may read next when another node has broken its lock. */
const reads: readonly [string, (bench: Bench, tx: Transaction) => Promise<unknown>][] = [
  ['a row', (bench, tx) => bench.database.table(policies).find(tx, { name: 'none' })],
  ['a page', (bench, tx) => bench.database.table(policies).list(tx, {}, { by: 'id', limit: 10 })],
  ['whether there is a row', (bench, tx) => bench.database.table(policies).exists(tx, { name: 'none' })],
  ['whether there is any row', (bench, tx) => bench.database.table(policies).exists(tx, {})],
  ['which values there are', (bench, tx) => bench.database.table(policies).among(tx, 'name', ['none', 'other'])],
  ['how many rows there are', (bench, tx) => bench.database.table(policies).count(tx, { name: 'none' })],
  ['how many rows no index has', (bench, tx) => bench.database.table(policies).count(tx, { text: 'none' })],
  ['the members of a set', (bench, tx) => bench.database.table(policies).members(tx)],
  ['their revisions', (bench, tx) => bench.database.table(policies).revisions(tx)],
  ['a tally', (_, tx) => tx.tallied('none')],
  ['nothing', async () => undefined],
]

describe.runIf(engine === 'galera' || engine === 'multi')('a transaction whose lock another node breaks', () => {
  test.each(reads)('commits all or nothing, on every node, where it reads next %s', async (_, read) => {
    await using bench = await createBench()
    const { database } = bench
    const near = await bench.another()
    const table = database.table(policies)
    const { id } = await database.transaction((tx) => table.insert(tx, policy(randomName())))
    const [before, after] = [randomName(), randomName()]
    let runs = 0
    await database.transaction(async (tx) => {
      await table.lock(tx, { id })
      await table.insert(tx, policy(before))
      await table.find(tx, { name: 'sends the insert' })
      if (runs++ === 0) {
        await near.transaction(async (other) => {
          const row = await near.table(policies).get(other, id)
          if (row) await near.table(policies).update(other, row, { text: 'changed' })
        })
        // A read waits until the commit has come here.
        await database.read((q) => table.find(q, { id }))
      }
      await read(bench, tx)
      await table.insert(tx, policy(after))
    })
    expect(runs).toBe(2)
    const names = `SELECT COUNT(*) AS n FROM policies WHERE name IN ('${before}', '${after}')`
    for (const node of [0, 1, 2]) expect(await bench.sql(names, [], bench.nodeUrl(node))).toEqual([{ n: 2 }])
  })
})

test('a transaction does not count all rows of a table, which would hide that it has ended', async () => {
  await using bench = await createBench()
  const table = bench.database.table(policies)
  await expect(bench.database.transaction((tx) => table.count(tx, {}))).rejects.toThrow(TypeError)
  expect(await bench.database.read((q) => table.count(q, {}))).toBe(0)
})
