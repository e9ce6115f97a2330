import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { Pool } from '../../../src/store/pool/pool.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { Line } from '../line.ts'
import { type Bench, createBench } from '../support.ts'

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const poolOf = (url: string, monotonic: () => number) =>
  new Pool({
    targets: parseTargets(url),
    limit: 1,
    queueLimit: 1,
    tls: undefined,
    timeouts: { connectMilliseconds: 3000, statementMilliseconds: 8000 },
    clock: { ...systemClock, monotonic },
  })

const use = (pool: Pool) => pool.use(async (connection) => (await connection.rows('SELECT CONNECTION_ID()'))[0]?.[0])

test('a connection is used again until it has been idle for five seconds, and then replaced', async () => {
  await using line = await Line.open(bench.url)
  let now = 1000
  await using pool = poolOf(line.url, () => now)
  await use(pool)
  now += 4999
  await use(pool)
  expect(line.connections).toBe(1)
  now += 5000
  await use(pool)
  expect(line.connections).toBe(2)
})

test('a connection that is not used any more is closed without a further use of the pool', async () => {
  let now = 1000
  await using pool = poolOf(bench.url, () => now)
  const id = await use(pool)
  // Else the server would close it by itself.
  await pool.use((connection) => connection.command('SET SESSION wait_timeout = 600'))
  const here = async () =>
    (await bench.sql('SELECT id FROM information_schema.processlist WHERE id = ?', [id])).length > 0
  expect(await here()).toBe(true)
  now += 5000
  while (await here()) await delay(50)
}, 30_000)

test('an idle connection that the server closes is given up quietly, and replaced at the next use', async () => {
  await using pool = poolOf(bench.url, systemClock.monotonic)
  const idle = await pool.use(async (connection) => connection)
  const id = await use(pool)
  await bench.sql(`KILL ${id}`)
  await expect.poll(() => idle.broken, { timeout: 5000 }).toBe(true)
  expect(await use(pool)).not.toBe(id)
})
