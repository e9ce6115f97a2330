import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/clock.ts'
import { Known } from '../../src/store/coherence/known.ts'
import { Registry } from '../../src/store/coherence/registry.ts'
import { Undertaker } from '../../src/store/coherence/undertaker.ts'
import { Outcomes } from '../../src/store/pool/outcomes.ts'
import { Pool } from '../../src/store/pool/pool.ts'
import { parseTargets } from '../../src/store/pool/target.ts'
import { type Bench, createBench, quiet } from './support.ts'

let bench: Bench
let pool: Pool
beforeAll(async () => {
  bench = await createBench()
  const timeouts = { connectMilliseconds: 3000, statementMilliseconds: 8000 }
  pool = new Pool({ targets: parseTargets(bench.url), limit: 2, tls: undefined, timeouts, clock: systemClock })
})
afterAll(async () => {
  await pool[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

/** A clock that goes only when it is told to. */
function stoppedClock(): { clock: Clock; monotonic: number; wall: number } {
  const hands = {
    monotonic: 1000,
    wall: 1000,
    clock: { ...systemClock, monotonic: () => hands.monotonic, wall: () => hands.wall },
  }
  return hands
}

test('a condemned registration is removed only when its time is over by the clock of whoever removes it', async () => {
  const registry = new Registry(pool, systemClock)
  const [silent, alive] = [await registry.register('a'), await registry.register('b')]
  await registry.acknowledge(silent, [[7, 1]])
  await registry.condemn([silent])
  const hands = stoppedClock()
  const outcomes = new Outcomes(pool, systemClock)
  await using _ = new Undertaker({ registry, outcomes, clock: hands.clock, log: quiet, graceMilliseconds: 1250 })
  await delay(2500)
  expect(await registry.condemned()).toEqual([silent])
  hands.monotonic += 1250
  while ((await registry.condemned()).length > 0) await delay(50)
  expect((await bench.sql('SELECT id FROM registrations')).map(({ id }) => id)).toEqual([alive])
  expect(await bench.sql('SELECT bucket FROM acks')).toEqual([])
})

test('acknowledgements without a registration are swept, others stay', async () => {
  const registry = new Registry(pool, systemClock)
  const alive = await registry.register('c')
  await registry.acknowledge(alive, [[1, 5]])
  await registry.acknowledge(crypto.randomUUID(), [[1, 5]])
  await registry.sweep()
  expect((await bench.sql('SELECT registration FROM acks')).map(({ registration }) => registration)).toEqual([alive])
})

test('an acknowledgement never goes backwards', async () => {
  const registry = new Registry(pool, systemClock)
  const one = await registry.register('d')
  await registry.acknowledge(one, [[2, 5]])
  await registry.acknowledge(one, [[2, 4]])
  const mine = (await registry.pending([2])).filter(({ registration }) => registration === one)
  expect(mine.map(({ acknowledged }) => acknowledged)).toEqual([5])
})

test('old outcomes are purged, young ones answer', async () => {
  const outcomes = new Outcomes(pool, systemClock)
  const [old, young] = [randomBytes(16), randomBytes(16)]
  await bench.sql('INSERT INTO outcomes VALUES (?, 1, UNIX_TIMESTAMP() - 4000), (?, 1, UNIX_TIMESTAMP())', [old, young])
  await outcomes.purge()
  expect(await outcomes.committed(young)).toBe(true)
  expect(await outcomes.committed(old)).toBe(false)
  expect(await outcomes.committed(old)).toBe(false)
})

test('what is known is fresh for less than L by both clocks, from the beginning of the poll', () => {
  for (const hand of ['monotonic', 'wall'] as const) {
    const hands = stoppedClock()
    const known = new Known(hands.clock, 1000)
    expect(known.fresh()).toBe(false)
    const began = known.now()
    hands[hand] += 600
    known.confirm(began)
    expect(known.fresh()).toBe(true)
    hands[hand] += 400
    expect(known.fresh()).toBe(false)
  }
})

test('an entry is covered until its bucket is known to have moved, and versions only grow', () => {
  const known = new Known(systemClock, 1000)
  expect(known.learn([[3, 8]])).toBe(true)
  expect([known.covers(3, 7), known.covers(3, 8), known.covers(4, 0)]).toEqual([false, true, true])
  expect(known.learn([[3, 7]])).toBe(false)
})
