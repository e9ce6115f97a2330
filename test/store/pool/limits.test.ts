import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../../src/store/database.ts'
import { inGroup, membersTable, onMySql } from '../../support/engine.ts'
import { type Bench, counters, createBench, open, policies, policy, randomName } from '../support.ts'

/** Work refused because of the server's own limits may succeed later, so it is repeated, and ends with 503. */

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

/** The database through an account with a limit of its own. */
async function limited(limit: string, poolSize = 5): Promise<Database & AsyncDisposable> {
  const user = `u${randomName()}`
  await bench.sql(`CREATE USER '${user}'@'%' IDENTIFIED BY 'secret' WITH ${limit}`)
  await bench.sql(`CREATE USER '${user}'@'localhost' IDENTIFIED BY 'secret' WITH ${limit}`)
  const schema = (await bench.sql('SELECT DATABASE() AS name'))[0]?.name
  for (const host of ['%', 'localhost']) {
    await bench.sql(`GRANT ALL ON ${schema}.* TO '${user}'@'${host}'`)
    if (inGroup) await bench.sql(`GRANT SELECT ON ${membersTable} TO '${user}'@'${host}'`)
  }
  return open(Object.assign(new URL(bench.url), { username: user, password: 'secret' }).href, { poolSize })
}

describe('a limit of the server', () => {
  afterEach(async () => {
    if (onMySql) await bench.sql('SET GLOBAL max_execution_time = 0')
  })

  // The limit is an account's on MariaDB, the server's on MySQL.
  test('on the time of a statement ends a wait for a lock, and the transaction is repeated', async () => {
    if (onMySql) await bench.sql('SET GLOBAL max_execution_time = 100')
    await using database = await limited(onMySql ? 'MAX_USER_CONNECTIONS 0' : 'MAX_STATEMENT_TIME 0.1')
    const table = bench.database.table(policies)
    const { id } = await bench.database.transaction((tx) => table.insert(tx, policy(randomName())))
    const gate = Promise.withResolvers<void>()
    const holding = bench.database.transaction(async (tx) => {
      await table.lock(tx, { id })
      await gate.promise
    })
    await delay(50)
    let runs = 0
    const waiting = database.transaction(async (tx) => {
      if (++runs === 3) gate.resolve()
      const row = await database.table(policies).lock(tx, { id })
      if (row) await database.table(policies).update(tx, row, { text: 'x' })
    })
    await Promise.race([waiting, holding])
    await waiting
    await holding
    expect(runs).toBeGreaterThan(2)
  })

  test('on connections makes callers wait', async () => {
    await using database = await limited('MAX_USER_CONNECTIONS 2')
    const count = () =>
      database.snapshot(async (q) => {
        const n = await database.table(counters).count(q, { material: 'x' })
        await delay(50)
        return n
      })
    expect(await Promise.all(Array.from({ length: 5 }, count))).toEqual(Array(5).fill(0))
  })
})

describe('a group of rows', () => {
  test('that is too large for one packet goes in several, and by few transactions', async () => {
    const group = bench.database.group(policies)
    const mount = randomName()
    const text = 'x'.repeat(300_000)
    const names = Array.from({ length: 64 }, (_, n) => `${n}${mount}`)
    const commits = async () => Number((await bench.sql('SELECT COUNT(*) AS n FROM outcomes'))[0]?.n)
    const before = await commits()
    await Promise.all(names.map((name) => group.insert({ ...policy(name, text), mount })))
    expect((await commits()) - before).toBeLessThan(5)
    expect(await bench.database.read((q) => bench.database.table(policies).count(q, { mount }))).toBe(64)
  })
})

describe('a row', () => {
  test('is changed once as it was read: the next change is made to the result of the first', async () => {
    const table = bench.database.table(policies)
    const { id } = await bench.database.transaction((tx) => table.insert(tx, policy(randomName(), '0')))
    const twice = bench.database.transaction(async (tx) => {
      const row = await table.lock(tx, { id })
      if (row === undefined) return
      await table.update(tx, row, { text: '1' })
      await table.update(tx, row, { text: '2' })
    })
    await expect(twice).rejects.toThrow('in the transaction')
    expect((await bench.database.read((q) => table.get(q, id)))?.text).toBe('0')
  })
})
