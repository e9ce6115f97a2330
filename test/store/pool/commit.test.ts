import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { Connection } from '../../../src/store/pool/connection.ts'
import { Pool } from '../../../src/store/pool/pool.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { clustered } from '../../support/engine.ts'
import { type Bench, createBench, policies, policy, randomName } from '../support.ts'

/** Statements sent with a COMMIT, and the read right after it, whose failure does not change the COMMIT's outcome. */

let bench: Bench
let pool: Pool
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())
beforeEach(() => {
  const timeouts = { connectMilliseconds: 1000, statementMilliseconds: 8000 }
  const targets = parseTargets(bench.url)
  pool = new Pool({ targets, limit: 2, queueLimit: 4, tls: undefined, timeouts, clock: systemClock })
})
afterEach(() => pool[Symbol.asyncDispose]())

const add = (name: string) => `INSERT INTO usage_counters (material, used) VALUES ('${name}', 1)`
const used = async (name: string) => Number((await bench.sql(`SELECT COUNT(*) AS n ${from(name)}`))[0]?.n)
const from = (name: string) => `FROM usage_counters WHERE material = '${name}'`

function commit(statements: readonly string[], next?: string) {
  return pool.use(async (connection: Connection) => {
    await connection.open('change', [])
    const committed = await connection.commit(statements, { opened: true, next })
    return { ...committed, broken: connection.broken }
  })
}

// In a cluster, statements go one by one.
const alone = test.skipIf(clustered)

alone('it opens its transaction itself', async () => {
  const name = randomName()
  const blind = () =>
    pool.use((connection) => connection.commit([add(name)], { opened: false, next: `used ${from(name)}` }))
  expect(await blind()).toEqual({ given: [], sure: true, rows: [[1]] })
})

alone('it sees committed changes', async () => {
  const name = randomName()
  const committed = await commit([add(name)], `used ${from(name)}`)
  expect(committed).toEqual({ given: [], sure: true, rows: [[1]], broken: false })
})

alone('a statement before the COMMIT that fails is a failure, and nothing is committed', async () => {
  const name = randomName()
  await expect(commit([add(name), 'INSERT INTO nothing VALUES (1)'], `used ${from(name)}`)).rejects.toThrow('nothing')
  expect(await used(name)).toBe(0)
})

alone('one that fails after the COMMIT leaves no doubt', async () => {
  const name = randomName()
  const committed = await commit([add(name)], '1 FROM nothing')
  expect(committed).toEqual({ given: undefined, sure: true, rows: undefined, broken: true })
  expect(await used(name)).toBe(1)
})

alone('one without an answer leaves no doubt, and is not waited for', async () => {
  const name = randomName()
  const waiting = commit([add(name)], `SLEEP(30) ${from(name)}`)
  const committed = await Promise.race([waiting, delay(15_000)])
  expect(committed).toEqual({ given: undefined, sure: true, rows: undefined, broken: true })
  expect(await used(name)).toBe(1)
})

alone('one that stays without an answer costs no acknowledged change, and the change waits for its timer', async () => {
  const id = randomName()
  await bench.sql('RENAME TABLE registrations TO registrations_elsewhere')
  try {
    const row = await bench.database.transaction(async (tx) => {
      tx.touch('policies', id)
      return bench.database.table(policies).insert(tx, policy(id))
    })
    expect((await bench.sql('SELECT name FROM policies WHERE id = ?', [row.id]))[0]?.name).toBe(id)
  } finally {
    await bench.sql('RENAME TABLE registrations_elsewhere TO registrations')
  }
})
