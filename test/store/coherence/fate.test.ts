import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock as clock } from '../../../src/clock.ts'
import { joinedRows } from '../../../src/store/coherence/joined.ts'
import { leafOf } from '../../../src/store/coherence/leaves.ts'
import { Outcomes } from '../../../src/store/pool/outcomes.ts'
import { Pool } from '../../../src/store/pool/pool.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { Transactions } from '../../../src/store/pool/transactions.ts'
import { Seal } from '../../../src/store/sealed/seal.ts'
import { type Bench, counters, createBench, quiet } from '../support.ts'

/** Caches' reads that wait for the database together, when all its connections are taken. */

let bench: Bench
let pool: Pool
beforeEach(async () => {
  bench = await createBench()
  const timeouts = { connectMilliseconds: 3000, statementMilliseconds: 8000 }
  const targets = parseTargets(bench.url)
  pool = new Pool({ targets, limit: 1, queueLimit: 0, tls: undefined, timeouts, clock })
})
afterEach(async () => {
  await pool[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

test('reads that wait are refused with the first ones, without a try of their own, and later ones are answered', async () => {
  const table = bench.database.table(counters)
  const ids = Array.from({ length: 200 }, (_, used) => ({ material: `m${used}`, used }))
  await bench.database.transaction((tx) => table.insertMany(tx, ids))
  const line = new Transactions(pool, clock, new Outcomes(pool, clock))
  const read = joinedRows(
    { tables: { counter: counters }, key: (material) => ({ material }), value: ({ counter }) => counter?.used },
    new Seal(quiet),
  )
  const readAll = (some = ids) =>
    Promise.allSettled(some.map(({ material }) => read(line, leafOf('c', material), material)))
  const tries = vi.spyOn(line, 'askAll')
  const refused = await pool.use(() => readAll())
  expect(refused).toEqual(Array(200).fill({ status: 'rejected', reason: expect.objectContaining({ status: 503 }) }))
  // Two groups may be on their way at once; all together would be thirteen.
  expect(tries.mock.calls.length).toBeLessThanOrEqual(2)
  // As few as go in one group.
  const few = ids.slice(0, 13)
  const answered = few.map(({ used }) => ({ status: 'fulfilled', value: { stamp: 0, value: used } }))
  expect(await readAll(few)).toEqual(answered)
})
