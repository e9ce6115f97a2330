import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Logger } from '../../src/log.ts'
import type { Database } from '../../src/store/database.ts'
import { LeaseLost } from '../../src/store/faults.ts'
import type { JobLease } from '../../src/store/lease.ts'
import { waitForLease } from '../../src/store/waiting.ts'
import { type Bench, counters, createBench, randomName } from './support.ts'

let bench: Bench
let other: Database
beforeAll(async () => {
  bench = await createBench()
  other = await bench.another()
})
afterAll(() => bench[Symbol.asyncDispose]())

async function taken(database: Database, job: string, ttlSeconds: number): Promise<JobLease> {
  for (;;) {
    const lease = await database.jobLease(job, ttlSeconds)
    if (lease) return lease
    await delay(20)
  }
}

const count = (database: Database, job: string, fence: bigint, material: string, gate?: Promise<void>) =>
  database.transaction(async (tx) => {
    await gate
    await tx.fence(job, fence)
    await database.table(counters).add(tx, { material }, { used: 1 })
  })

describe("a job's lease", () => {
  test('is held by one at a time, and prolonged by its holder', async () => {
    const job = randomName()
    const mine = await bench.database.jobLease(job, 60)
    expect(mine?.fence).toBe(1n)
    expect(await other.jobLease(job, 60)).toBeUndefined()
    expect((await bench.database.jobLease(job, 60))?.fence).toBe(1n)
    await mine?.release()
    expect((await other.jobLease(job, 60))?.fence).toBe(2n)
    expect(await bench.database.jobLease(job, 60)).toBeUndefined()
  })

  test('is renewed after its time too, unless another has taken it', async () => {
    const job = randomName()
    const mine = await bench.database.jobLease(job, 0.05)
    await delay(100)
    expect(await mine?.renew()).toBe(true)
    const next = await taken(other, job, 60)
    expect(await mine?.renew()).toBe(false)
    expect(await bench.database.jobLease(job, 60)).toBeUndefined()
    expect(await next.renew()).toBe(true)
  })

  test('is free at once when its holder is known to have ended', async () => {
    const job = randomName()
    const ended = await bench.another()
    await ended.jobLease(job, 60)
    const kept = randomName()
    await bench.database.jobLease(kept, 60)
    expect(await other.jobLease(job, 60)).toBeUndefined()
    await other.forget([ended.incarnation])
    expect((await other.jobLease(job, 60))?.fence).toBe(2n)
    expect(await other.jobLease(kept, 60)).toBeUndefined()
  })

  test('stores a place together with the work, but not without the lease', async () => {
    const job = randomName()
    expect(await other.jobPlace(job)).toBe('')
    const mine = await taken(bench.database, job, 0.05)
    await bench.database.transaction((tx) => tx.fence(job, mine.fence, 'k 64'))
    await bench.database
      .transaction(async (tx) => {
        await tx.fence(job, mine.fence, 'k 128')
        throw new Error('no')
      })
      .catch(() => undefined)
    await count(bench.database, job, mine.fence, crypto.randomUUID())
    const next = await taken(other, job, 60)
    await expect(bench.database.transaction((tx) => tx.fence(job, mine.fence, 'k 192'))).rejects.toThrow('taken over')
    expect([next.fence, await other.jobPlace(job)]).toEqual([2n, 'k 64'])
  })

  test('goes to one of many that ask at once', async () => {
    const job = randomName()
    const crowd = await Promise.all(Array.from({ length: 6 }, () => bench.another()))
    const leases = await Promise.all(crowd.map((database) => database.jobLease(job, 60)))
    expect(leases.filter((lease) => lease !== undefined)).toHaveLength(1)
  })

  test('that was taken over lets the paused holder write nothing', async () => {
    const job = randomName()
    const material = crypto.randomUUID()
    await bench.database.transaction((tx) => bench.database.table(counters).insert(tx, { material, used: 0 }))
    const old = await taken(bench.database, job, 0.05)
    await count(bench.database, job, old.fence, material)
    const gate = Promise.withResolvers<void>()
    const paused = count(bench.database, job, old.fence, material, gate.promise)
    const next = await taken(other, job, 60)
    gate.resolve()
    await expect(paused).rejects.toBeInstanceOf(LeaseLost)
    await count(other, job, next.fence, material)
    const row = await other.read((q) => other.table(counters).find(q, { material }))
    expect([next.fence, row?.used]).toEqual([2n, 2])
  })

  test('that was taken over between the fence and the COMMIT leaves nothing to be written later', async () => {
    const job = randomName()
    const material = crypto.randomUUID()
    await bench.database.transaction((tx) => bench.database.table(counters).insert(tx, { material, used: 0 }))
    const used = async () => (await other.read((q) => other.table(counters).find(q, { material })))?.used
    const old = await taken(bench.database, job, 0.05)
    const writing = bench.database
      .transaction(async (tx) => {
        await tx.fence(job, old.fence)
        await delay(300)
        await bench.database.table(counters).add(tx, { material }, { used: 1 })
      })
      .catch((error: unknown) => expect(error).toBeInstanceOf(LeaseLost))
    await taken(other, job, 60)
    const seen = await used()
    await writing
    expect(await used()).toBe(seen)
  })
})

/** Says what is logged while one waits. */
function waiting(clock = systemClock) {
  const lines: string[] = []
  const log = { warn: (line: string) => void lines.push(line) } as unknown as Logger
  return { lines, place: { clock, database: bench.database, log } }
}

test('a lease that is free is taken without a word', async () => {
  const { lines, place } = waiting()
  const lease = await waitForLease(place, { name: randomName(), ttlSeconds: 60, work: 'repair' })
  expect([lease.fence, lines]).toEqual([1n, []])
})

test('a lease that another has is waited for, which the log says once', async () => {
  const { lines, place } = waiting()
  const name = randomName()
  const theirs = await other.jobLease(name, 60)
  const lease = waitForLease(place, { name, ttlSeconds: 60, work: 'repair' })
  await expect.poll(() => lines).toHaveLength(1)
  await new Promise((resolve) => setTimeout(resolve, 600))
  await theirs?.release()
  expect((await lease).fence).toBe(2n)
  expect(lines).toEqual(['another repair is under way, or has died: waiting for up to 65 s'])
})

test('one that is renewed for longer than a dead process keeps it is not waited for', async () => {
  let seconds = 0
  const { place } = waiting({ ...systemClock, monotonic: () => 1000 * seconds++ })
  const name = randomName()
  await other.jobLease(name, 60)
  await expect(waitForLease(place, { name, ttlSeconds: 1, work: 'repair' })).rejects.toThrow(
    'another repair is under way: run this again when that has ended',
  )
  expect(seconds).toBe(8)
})
