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

test('a connection is used again until it has been idle for five seconds, and then replaced', async () => {
  await using line = await Line.open(bench.url)
  let now = 1000
  await using pool = new Pool({
    targets: parseTargets(line.url),
    limit: 1,
    queueLimit: 1,
    tls: undefined,
    timeouts: { connectMilliseconds: 3000, statementMilliseconds: 8000 },
    clock: { ...systemClock, monotonic: () => now },
  })
  const use = () => pool.use(async (connection) => void (await connection.rows('SELECT 1')))
  await use()
  now += 4999
  await use()
  expect(line.connections).toBe(1)
  now += 5000
  await use()
  expect(line.connections).toBe(2)
})
