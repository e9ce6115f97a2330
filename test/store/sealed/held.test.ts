import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { holdManagedKey } from '../../../src/keys/managed/hold.ts'
import { managedKeysTable } from '../../../src/keys/managed/table.ts'
import type { Database } from '../../../src/store/database.ts'
import { createBench, policies, policy, randomName } from '../support.ts'

const settings = {
  ...{ library: 'x', tokenLabel: null, slot: 1, keyLabel: 'x', keyId: '', mechanism: 1, curve: '', keyBits: 0 },
  ...{ usages: [], anyMount: true, allowGenerateKey: false, allowReplaceKey: false, allowStoreKey: false },
  ...{ forceRwSession: false, maxParallel: 1, pin: '', pinRefused: false, createdAt: 1, updatedAt: 1 },
}

/** Stores something that uses the managed key. */
const use = (database: Database, id: string, name: string) =>
  database.transaction(async (tx) => {
    const table = database.table(policies)
    await table.find(tx, { name: 'the first read of a change that is not about managed keys' })
    await holdManagedKey(database, tx, id)
    await delay(20)
    await table.insert(tx, policy(name))
  })

/** Removes the managed key unless something uses it, as its registry does. */
const remove = (database: Database, id: string, name: string) =>
  database.transaction(async (tx) => {
    const table = database.table(managedKeysTable)
    const row = await table.lock(tx, { id })
    if (row === undefined) return
    if (await database.table(policies).exists(tx, { name })) throw new Error('used')
    await delay(20)
    await table.remove(tx, row)
    tx.touch(managedKeysTable.name, id)
  })

test('a managed key is used or removed, never both, through two connections, on different nodes if there are several', async () => {
  await using bench = await createBench()
  const [one, other] = [await bench.another(), await bench.another()]
  const outcomes: string[] = []
  for (let round = 0; round < 10; round++) {
    const name = randomName()
    const { id } = await one.transaction((tx) => one.table(managedKeysTable).insert(tx, { ...settings, name }))
    const late = 8 * ((round % 5) - 2)
    const [used, removed] = await Promise.allSettled([
      delay(Math.max(0, -late)).then(() => use(one, id, name)),
      delay(Math.max(0, late)).then(() => remove(other, id, name)),
    ])
    outcomes.push(`${used.status} ${removed.status}`)
  }
  expect(new Set(outcomes)).toEqual(new Set(['fulfilled rejected', 'rejected fulfilled']))
})
