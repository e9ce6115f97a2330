import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/clock.ts'
import { acknowledge } from '../../src/store/coherence/acks.ts'
import { Known } from '../../src/store/coherence/known.ts'
import { firstLeaf } from '../../src/store/coherence/leaves.ts'
import { Reaper } from '../../src/store/coherence/reaper.ts'
import { Registry } from '../../src/store/coherence/registry.ts'
import { Outcomes } from '../../src/store/pool/outcomes.ts'
import { Pool } from '../../src/store/pool/pool.ts'
import { parseTargets } from '../../src/store/pool/target.ts'
import { type Bench, createBench, quiet } from './support.ts'

let bench: Bench
let pool: Pool
beforeAll(async () => {
  bench = await createBench()
  const timeouts = { connectMilliseconds: 3000, statementMilliseconds: 8000 }
  pool = new Pool({
    targets: parseTargets(bench.url),
    limit: 2,
    queueLimit: 10,
    tls: undefined,
    timeouts,
    clock: systemClock,
  })
})
afterAll(async () => {
  await pool[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

const acknowledged = (registration: string, group: number, v: number): Promise<void> =>
  pool.use((connection) => acknowledge(connection, registration, [[group, v]]))

/** A clock that moves only when it is told to. */
function stoppedClock(): { clock: Clock; monotonic: number; wall: number } {
  const hands = {
    monotonic: 1000,
    wall: 1000,
    clock: { ...systemClock, monotonic: () => hands.monotonic, wall: () => hands.wall },
  }
  return hands
}

test('a condemned registration is removed only when its time is over by the clock of the remover', async () => {
  const registry = new Registry(pool, systemClock)
  const [silent, alive] = [await registry.register('a', 1000), await registry.register('b', 1000)]
  await acknowledged(silent, 7, 1)
  await registry.condemn([silent])
  const hands = stoppedClock()
  await using _ = new Reaper({ registry, clock: hands.clock, log: quiet, marginMilliseconds: 250 })
  await delay(2500)
  expect((await registry.condemned()).map(({ registration }) => registration)).toEqual([silent])
  hands.monotonic += 1250
  while ((await registry.condemned()).length > 0) await delay(50)
  const left = await bench.sql('SELECT id FROM registrations WHERE id IN (?, ?)', [silent, alive])
  expect(left.map(({ id }) => id)).toEqual([alive])
  expect(await bench.sql('SELECT bucket FROM acks WHERE registration = ?', [silent])).toEqual([])
})

test('acknowledgements without a registration are swept, others stay', async () => {
  const registry = new Registry(pool, systemClock)
  const alive = await registry.register('c', 1000)
  await acknowledged(alive, 1, 5)
  const stray = crypto.randomUUID()
  await acknowledged(stray, 1, 5)
  await registry.sweep()
  const left = await bench.sql('SELECT registration FROM acks WHERE registration IN (?, ?)', [alive, stray])
  expect(left.map(({ registration }) => registration)).toEqual([alive])
})

test('however many registrations left acknowledgements behind, all of them are swept', async () => {
  const registry = new Registry(pool, systemClock)
  const strays = Array.from({ length: 130 }, () => crypto.randomUUID())
  for (const stray of strays) await bench.sql('INSERT INTO acks VALUES (?, 1, 1), (?, 2, 1)', [stray, stray])
  await registry.sweep()
  expect(await bench.sql('SELECT bucket FROM acks WHERE registration IN (?)', [strays])).toEqual([])
})

test('of ended processes nothing else is forgotten, and where none has ended nothing at all', async () => {
  const registry = new Registry(pool, systemClock)
  const [ended, alive] = [await registry.register('e', 1000), await registry.register('f', 1000)]
  await acknowledged(alive, 3, 1)
  const left = async () =>
    (await bench.sql('SELECT id FROM registrations WHERE id IN (?, ?)', [ended, alive])).map(({ id }) => String(id))
  await registry.forget([])
  expect(new Set(await left())).toEqual(new Set([ended, alive]))
  await registry.forget(['e'])
  expect(await left()).toEqual([alive])
  expect((await registry.look([3])).acknowledged.get(alive)?.get(3)).toBe(1)
})

test('an acknowledgement never goes backwards', async () => {
  const registry = new Registry(pool, systemClock)
  const one = await registry.register('d', 1000)
  await acknowledged(one, 2, 5)
  await acknowledged(one, 2, 4)
  expect((await registry.look([2])).acknowledged.get(one)?.get(2)).toBe(5)
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

test('many old outcomes are purged in portions, and the purge ends between two of them when it is told to', async () => {
  const outcomes = new Outcomes(pool, systemClock)
  await bench.sql('DELETE FROM outcomes')
  const rows = Array.from({ length: 2500 }, () => [randomBytes(16), 1, 1000])
  await bench.sql('INSERT INTO outcomes VALUES ?', [rows])
  const left = async () => Number((await bench.sql('SELECT COUNT(*) AS n FROM outcomes'))[0]?.n)
  await outcomes.purge(AbortSignal.abort())
  expect(await left()).toBe(1500)
  await outcomes.purge()
  expect(await left()).toBe(0)
})

test('known versions are fresh for less than L by both clocks, from the beginning of the poll', () => {
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

test('an entry is covered until its leaf is known to have moved, and versions only rise', () => {
  const known = new Known(systemClock, 1000)
  const [first, second, elsewhere] = [firstLeaf(0), firstLeaf(0) + 1, firstLeaf(1)]
  known.learn([[first, 8]])
  expect(known.covers(first, 8)).toBe(false)
  known.learnBases([{ group: 0, v: 8, base: 2 }])
  expect([known.covers(first, 7), known.covers(first, 8)]).toEqual([false, true])
  expect([known.covers(second, 1), known.covers(second, 2), known.covers(elsewhere, 9)]).toEqual([false, true, false])
  known.learn([[first, 7]])
  expect(known.covers(first, 7)).toBe(false)
  known.learnBases([{ group: 0, v: 12, base: 9 }])
  expect(known.covers(first, 8)).toBe(false)
})

test('whatever is learned or forgotten, what was covered before is to be checked again', () => {
  const known = new Known(systemClock, 1000)
  const seen = [known.changes]
  for (const change of [
    () => known.learn([[firstLeaf(0), 1]]),
    () => known.learnBases([{ group: 0, v: 1, base: 0 }]),
    () => known.learnBases([{ group: 0, v: 2, base: 1 }]),
    () => known.forget(),
  ]) {
    change()
    expect(seen).not.toContain(known.changes)
    seen.push(known.changes)
  }
  known.learn([])
  known.learnBases([])
  expect(known.changes).toBe(seen.at(-1))
})
