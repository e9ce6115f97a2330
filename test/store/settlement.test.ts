import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock as clock } from '../../src/clock.ts'
import { createLogTo } from '../../src/log.ts'
import { acknowledge } from '../../src/store/coherence/acks.ts'
import { Coherence } from '../../src/store/coherence/coherence.ts'
import { Registry } from '../../src/store/coherence/registry.ts'
import { Settlement } from '../../src/store/coherence/settlement.ts'
import { Pool } from '../../src/store/pool/pool.ts'
import { parseTargets } from '../../src/store/pool/target.ts'
import { Line } from './line.ts'
import { type Bench, createBench, quiet as log } from './support.ts'

let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

const times = { leaseMilliseconds: 100, marginMilliseconds: 0, pollMilliseconds: 50 }
const poolOf = (url: string, statementMilliseconds = 3000) => {
  const timeouts = { connectMilliseconds: 3000, statementMilliseconds }
  return new Pool({ targets: parseTargets(url), limit: 1, queueLimit: 10, tls: undefined, timeouts, clock })
}

test('a writer whose looks all fail waits for the longest lease of the cluster, and blames nobody', async () => {
  await using line = await Line.open(bench.url)
  await using open = poolOf(bench.url)
  await using cut = poolOf(line.url, 300)
  const registry = new Registry(open, clock)
  await registry.register('longer', 1500)
  const own = new Coherence({
    ...{ line: open, registry, clock, log, incarnation: 'own', times },
    drop: () => undefined,
    polls: { value: 0 },
    failedPolls: { value: 0 },
  })
  await own.start()
  line.silent = true
  const said: string[] = []
  const settlement = new Settlement({
    ...{ registry: new Registry(cut, clock), clock, times, own },
    log: createLogTo({ write: (text) => said.push(text) }, 'info'),
  })
  const began = clock.monotonic()
  await settlement.settled({ leaves: [[1, 1]], groups: [[0, 1]] })
  expect(clock.monotonic() - began).toBeGreaterThanOrEqual(1499)
  expect(said).toEqual([])
  await own.stop()
})
/** A writer that caches nothing itself. */
const writer = (longestLeaseMilliseconds: number) => ({ registration: undefined, longestLeaseMilliseconds })
const versions = { leaves: [[1, 5]], groups: [[0, 5]] } as const

test('a writer waits beyond its own lease for a worker that has a longer one', async () => {
  await using pool = poolOf(bench.url)
  const registry = new Registry(pool, clock)
  const other = await registry.register('other', 100_000)
  const settlement = new Settlement({ registry, clock, log, times, own: writer(100) })
  let settled = false
  const settling = settlement.settled(versions, await registry.look([0])).then(() => {
    settled = true
  })
  await delay(500)
  expect(settled).toBe(false)
  expect(await registry.condemned()).toEqual([])
  await pool.use((connection) => acknowledge(connection, other, [[0, 5]]))
  await settling
})

test('a registration that stays silent is condemned, and no other one', async () => {
  await using pool = poolOf(bench.url)
  const registry = new Registry(pool, clock)
  const [silent, other] = [await registry.register('silent', 100), await registry.register('other', 100)]
  await pool.use((connection) => acknowledge(connection, other, [[0, 5]]))
  const settlement = new Settlement({ registry, clock, log, times, own: writer(100) })
  await settlement.settled(versions, await registry.look([0]))
  let condemned = await registry.condemned()
  for (; condemned.length === 0; condemned = await registry.condemned()) await delay(10)
  expect(condemned).toEqual([{ registration: silent, leaseMilliseconds: 100 }])
}, 30_000)

test('a look at the very moment in which the wait begins is one after the COMMIT', async () => {
  // The clock stands still: a look that fails is never repeated.
  await using pool = poolOf(bench.url, 25_000)
  const registry = new Registry(pool, clock)
  const settlement = new Settlement({
    ...{ registry, log, times, own: writer(1_000_000) },
    clock: { ...clock, monotonic: () => 1000 },
  })
  await settlement.settled(versions)
}, 30_000)

test('a writer waits for no worker that reads the log with its record, and for every other one', async () => {
  await using pool = poolOf(bench.url)
  const registry = new Registry(pool, clock)
  const own = writer(1_000_000)
  const settlement = new Settlement({ registry, clock, log, times, own })
  await registry.register('reads it', 100, 'log')
  await settlement.settled(versions, await registry.look([0]), 'log')
  for (const it of ['another log', undefined]) {
    const other = await registry.register('other', 100, it)
    let settled = false
    const settling = settlement.settled(versions, await registry.look([0]), 'log').then(() => {
      settled = true
    })
    await delay(100)
    expect(settled).toBe(false)
    await pool.use((connection) => acknowledge(connection, other, [[0, 5]]))
    await settling
  }
}, 30_000)

test('a writer whose record is in no log waits for all', async () => {
  await using pool = poolOf(bench.url)
  const registry = new Registry(pool, clock)
  const settlement = new Settlement({ registry, clock, log, times, own: writer(300) })
  for (const it of ['log', undefined]) await registry.register(String(it), 100, it)
  const began = clock.monotonic()
  await settlement.settled(versions, await registry.look([0]))
  expect(clock.monotonic() - began).toBeGreaterThanOrEqual(299)
}, 30_000)

test('an acknowledgement counts for all who share the log, and for nobody else', async () => {
  await using pool = poolOf(bench.url)
  const registry = new Registry(pool, clock)
  const settlement = new Settlement({ registry, clock, log, times, own: writer(1_000_000) })
  const [one] = [await registry.register('one', 100, 'log'), await registry.register('another', 100, 'log')]
  await pool.use((connection) => acknowledge(connection, one, [[0, 4]]))
  let settled = false
  const settling = settlement.settled(versions, await registry.look([0])).then(() => {
    settled = true
  })
  await delay(100)
  expect(settled).toBe(false)
  await pool.use((connection) => acknowledge(connection, one, [[0, 5]]))
  await settling
  await registry.register('stranger', 100)
  settled = false
  void settlement.settled(versions, await registry.look([0])).then(() => {
    settled = true
  })
  await delay(100)
  expect(settled).toBe(false)
  await registry.forget(['stranger'])
  await expect.poll(() => settled).toBe(true)
}, 30_000)

test('a worker that was silent for once makes no later change wait', async () => {
  await using pool = poolOf(bench.url)
  const registry = new Registry(pool, clock)
  const other = await registry.register('other', 100)
  const settlement = new Settlement({ registry, clock, log, times, own: writer(1_000_000) })
  const look = await registry.look([0])
  const wait = (v: number) => settlement.settled({ leaves: [[1, v]], groups: [[0, v]] }, look)
  const said = (v: number) => pool.use((connection) => acknowledge(connection, other, [[0, v]]))
  const slow = Array.from({ length: 30 }, () => wait(5))
  await delay(1000)
  await said(5)
  await Promise.all(slow)
  await said(100)
  const began = clock.monotonic()
  for (let v = 6; v <= 15; v++) await wait(v)
  // Each of them would wait for most of a second if it went by those.
  expect(clock.monotonic() - began).toBeLessThan(4000)
}, 30_000)
