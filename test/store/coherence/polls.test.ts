import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock as clock } from '../../../src/clock.ts'
import { Coherence } from '../../../src/store/coherence/coherence.ts'
import { firstLeaf } from '../../../src/store/coherence/leaves.ts'
import { Registry } from '../../../src/store/coherence/registry.ts'
import { SharedLog } from '../../../src/store/coherence/sharedlog.ts'
import { Pool } from '../../../src/store/pool/pool.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { Line } from '../line.ts'
import { type Bench, createBench, quiet as log } from '../support.ts'
import { TestLog } from './testlog.ts'

const timeouts = { connectMilliseconds: 3000, statementMilliseconds: 8000 }
const poolOf = (url: string) =>
  new Pool({ targets: parseTargets(url), limit: 1, queueLimit: 10, tls: undefined, timeouts, clock })

let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

/** A worker that polls through a line of its own. @param begun called when it reads the log, and before it registers */
async function poller(sharedLog?: SharedLog, begun = () => undefined as unknown) {
  const stack = new AsyncDisposableStack()
  const wire = stack.use(await Line.open(bench.url))
  const [line, open] = [stack.use(poolOf(wire.url)), stack.use(poolOf(bench.url))]
  const [polls, failedPolls] = [{ value: 0 }, { value: 0 }]
  const times = { leaseMilliseconds: 1000, marginMilliseconds: 0, pollMilliseconds: 20 }
  const coherence = new Coherence({
    ...{ line, registry: new Registry(open, clock), clock, log, incarnation: 'own', times },
    ...{ drop: () => undefined, polls, failedPolls, sharedLog },
  })
  stack.defer(() => coherence.stop())
  /** Waits until a poll that has begun after this call has ended. */
  const polled = async () => {
    const before = polls.value
    while (polls.value < before + 3) await delay(10)
  }
  await begun()
  await coherence.start()
  return { coherence, wire, polled, failedPolls, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('a poll that the database did not answer is counted as failed, and no other', async () => {
  await using one = await poller()
  await one.polled()
  expect(one.failedPolls.value).toBe(0)
  one.wire.left.down = 0
  await one.polled()
  expect(one.failedPolls.value).toBe(1)
})

test('a change heard of from a neighbour is acknowledged in rows only if others before it were missed', async () => {
  await using one = await poller()
  await one.polled()
  const hear = (v: number) => one.coherence.publish({ leaves: [[firstLeaf(0), v]], groups: [[0, v]] })
  const commit = () => bench.sql('UPDATE versions SET v = v + 1, itemised = itemised + 1 WHERE bucket = 0')
  const row = async () => (await bench.sql('SELECT v FROM acks WHERE bucket = 0'))[0]?.v
  hear(1)
  await commit()
  await one.polled()
  expect(await row()).toBe(0)
  hear(3)
  await commit()
  await commit()
  await one.polled()
  expect(await row()).toBe(3)
})

test('the leaves of a group are read only if a change of it was not heard of', async () => {
  await using one = await poller()
  await one.polled()
  const [heard, read] = [firstLeaf(0), firstLeaf(0) + 1]
  const commit = () => bench.sql('UPDATE versions SET v = v + 1, itemised = itemised + 1 WHERE bucket = 0')
  const { known } = one.coherence
  await bench.sql('INSERT INTO version_leaves (leaf, v) VALUES (?, 9)', [read])
  for (const v of [1, 2]) {
    one.coherence.publish({ leaves: [[heard, v]], groups: [[0, v]] })
    await commit()
    await one.polled()
    expect([known.version(heard), known.version(read)]).toEqual([v, 0])
  }
  // The third change is another node's.
  await commit()
  one.coherence.publish({ leaves: [[heard, 3]], groups: [[0, 4]] })
  await commit()
  await one.polled()
  expect([known.version(heard), known.version(read)]).toEqual([3, 9])
})

test.each(['before its first poll', 'with the loss of others'])(
  'the news of another poll is not taken for all of a group: %s',
  async (when) => {
    using log = new TestLog()
    const [other, own] = [new SharedLog(log.place()), new SharedLog(log.place())]
    const leaf = firstLeaf(0)
    // Another worker has learned of the change of the leaf before, and shares only what is new to it.
    const share = async () => {
      const lost = when === 'with the loss of others' ? Array.from({ length: 16_385 }, () => [9000, 1] as const) : []
      other.append({ leaves: lost, groups: [] })
      await delay(100)
      other.append({ leaves: [], groups: [] }, [{ group: 0, v: 5, base: 0 }])
      await delay(50)
      await bench.sql('INSERT INTO version_leaves (leaf, v) VALUES (?, 3)', [leaf])
      await bench.sql('UPDATE versions SET v = 5, itemised = 5 WHERE bucket = 0')
    }
    const first = when === 'before its first poll'
    await using one = await poller(own, first ? share : undefined)
    if (!first) await share()
    await one.polled()
    expect(one.coherence.known.version(leaf)).toBe(3)
  },
)

test('a worker whose registration is condemned, or that finds the versions gone backwards, registers anew', async () => {
  await using one = await poller()
  const names = [one.coherence.registration]
  for (const event of [
    'UPDATE registrations SET condemned = 1',
    'UPDATE versions SET v = 7 WHERE bucket = 0',
    'UPDATE versions SET v = 6 WHERE bucket = 0',
  ]) {
    await bench.sql(event)
    await one.polled()
    await one.polled()
    names.push(one.coherence.registration)
  }
  const [first, condemned, forwards, backwards] = names
  expect(forwards).toBe(condemned)
  expect(new Set([first, condemned, backwards, undefined]).size).toBe(4)
  expect((await bench.sql('SELECT id, condemned FROM registrations'))[0]).toEqual({ id: backwards, condemned: 0 })
})

test('polls that are answered, but later than the lease allows, are late until they are in time again', async () => {
  await using one = await poller()
  expect(one.coherence.late).toBe(false)
  one.wire.lagMilliseconds = 1100
  await expect.poll(() => one.coherence.late, { timeout: 15_000 }).toBe(true)
  expect(one.failedPolls.value).toBe(0)
  one.wire.lagMilliseconds = 0
  await expect.poll(() => one.coherence.late, { timeout: 15_000 }).toBe(false)
})

test('a worker that was condemned and cannot register again is late until it can', async () => {
  await using one = await poller()
  await bench.sql(`CREATE TRIGGER refusing BEFORE INSERT ON registrations FOR EACH ROW SIGNAL SQLSTATE '45000'`)
  await bench.sql('UPDATE registrations SET condemned = 1')
  await expect.poll(() => one.coherence.late, { timeout: 15_000 }).toBe(true)
  expect(one.coherence.registration).toBeUndefined()
  await bench.sql('DROP TRIGGER refusing')
  await expect.poll(() => one.coherence.late, { timeout: 15_000 }).toBe(false)
  expect(one.coherence.registration).toBeDefined()
})
