import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiError } from '../../../src/errors.ts'
import { groupOf } from '../../../src/store/coherence/leaves.ts'
import { WriteSession } from '../../../src/store/pool/session.ts'
import type { Transaction } from '../../../src/store/reader.ts'
import { additions } from '../../../src/store/tally.ts'
import { type Bench, counters, createBench, policies, policy, randomName } from '../support.ts'

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const table = () => bench.database.table(counters)
const used = async (material: string): Promise<number | undefined> =>
  (await bench.database.read((q) => table().find(q, { material })))?.used

async function counter(): Promise<string> {
  const material = crypto.randomUUID()
  await bench.database.transaction((tx) => table().insert(tx, { material, used: 0 }))
  return material
}

const add = (tx: Transaction, material: string) => table().add(tx, { material }, { used: 1 })

describe('a transaction whose work has branches', () => {
  test('writes nothing when one branch fails while another continues', async () => {
    const [a, b] = [await counter(), await counter()]
    const failing = bench.database.transaction(async (tx) => {
      await add(tx, a)
      const slow = async () => {
        await table().count(tx, { material: a })
        await add(tx, b)
        await table().insert(tx, { material: `${b}x`, used: 0 })
        await table().count(tx, { material: a })
      }
      const bad = async () => {
        throw new ApiError(400, 'no')
      }
      await Promise.all([slow(), bad()])
    })
    await expect(failing).rejects.toMatchObject({ status: 400 })
    await delay(200)
    expect([await used(a), await used(b), await used(`${b}x`)]).toEqual([0, 0, undefined])
  })

  test('writes nothing once the server has ended it, though a statement was asked for before that was known', async () => {
    const [a, b, c] = [await counter(), await counter(), await counter()]
    const gate = Promise.withResolvers<void>()
    const other = bench.database.transaction(async (tx) => {
      // The server ends the transaction that has written least.
      for (let n = 0; n < 3; n++) await add(tx, b)
      await gate.promise
      await add(tx, a)
    })
    await delay(100)
    let runs = 0
    const mine = bench.database.transaction(async (tx) => {
      if (runs++ > 0) throw new ApiError(400, 'enough')
      await add(tx, a)
      const first = add(tx, b)
      await delay(100)
      const second = add(tx, c)
      gate.resolve()
      await Promise.all([first, second])
    })
    const results = await Promise.allSettled([other, mine])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect([runs, await used(a), await used(b), await used(c)]).toEqual([2, 1, 3, 0])
  })

  test('is not committed in part when the failure of a write is ignored', async () => {
    const name = randomName()
    const rows = bench.database.table(policies)
    await bench.database.transaction((tx) => rows.insert(tx, policy(name)))
    const material = await counter()
    const partly = bench.database.transaction(async (tx) => {
      await rows.insert(tx, policy(name))
      await rows.find(tx, { name: 'x' }).catch(() => undefined)
      await add(tx, material)
    })
    await expect(partly).rejects.toThrow()
    expect(await used(material)).toBe(0)
  })
})

test('a transaction increments its leaves in ascending order, whatever the order in which it touched them', async () => {
  const leaves = await bench.database.transaction(async (tx) => {
    for (let n = 0; n < 100; n++) tx.touch('transit_rings', String(n % 50))
    return WriteSession.of(tx).leaves
  })
  expect(leaves).toHaveLength(50)
  expect(leaves).toEqual(leaves.toSorted((one, other) => (one < other ? -1 : 1)))
  expect(new Set(leaves.map(groupOf)).size).toBeGreaterThan(10)
})

test('counts are added in the order of their names, and those that stay the same not at all', () => {
  const names = ['leases-b', 'tokens', 'leases', 'leases-a', 'authorities']
  const statements = additions(new Map([...names.map((name, n) => [name, n + 1] as const), ['mounts', 0]]))
  expect(statements.map(({ values: [name, , delta] }) => `${name},${delta}`)).toEqual([
    'authorities,5',
    'leases,3',
    'leases-a,4',
    'leases-b,1',
    'tokens,2',
  ])
})
