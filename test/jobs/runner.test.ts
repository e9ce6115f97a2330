import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Job } from '../../src/job.ts'
import { Runner } from '../../src/jobs/runner.ts'
import { createLog } from '../../src/log.ts'
import { Database } from '../../src/store/database.ts'
import { LeaseLost } from '../../src/store/faults.ts'
import { openSql } from '../attack/sql.ts'
import { Line } from '../store/line.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigrated } from '../support/template/migrated.ts'

const log = createLog('silent')
let schema: TestDatabase
let databases: Database[]
beforeAll(async () => {
  schema = await createMigrated()
  const open = () => Database.open({ url: schema.url, poolSize: 2, log, clock: systemClock })
  databases = [await open(), await open()]
})
afterAll(async () => {
  for (const database of databases ?? []) await database[Symbol.asyncDispose]()
  await schema?.[Symbol.asyncDispose]()
})

/** A runner for each worker. */
const runners = (graceSeconds = 15) =>
  databases.map((database) => new Runner({ database, clock: systemClock, log, graceSeconds }))
const all = <T>(each: readonly T[], what: (one: T) => Promise<unknown>) => Promise.all(each.map(what))

test('a leased job is done by one worker, and by the other as soon as the first has stopped', async () => {
  const both = runners()
  const done: number[] = []
  for (const [index, runner] of both.entries())
    runner.schedule({ name: 'turns', everySeconds: 0.02, run: async () => void done.push(index) })
  const until = async (count: number) => {
    while (done.length < count) await systemClock.sleep(5)
  }
  await until(5)
  const [first = 0] = done
  expect(new Set(done).size).toBe(1)
  await both[first]?.[Symbol.asyncDispose]()
  const before = done.length
  await until(before + 3)
  expect(new Set(done.slice(before))).toEqual(new Set([1 - first]))
  await all(both, (runner) => runner[Symbol.asyncDispose]())
})

test('a started job runs once at a time over all workers, and can be started again when it has ended', async () => {
  const both = runners()
  let runs = 0
  let finish = () => {}
  const ended = new Promise<void>((resolve) => {
    finish = resolve
  })
  const job: Job = {
    name: 'once',
    everySeconds: 60,
    async run() {
      runs++
      await ended
    },
  }
  const started = await all([...both, ...both], (runner) => runner.start(job))
  expect(started.filter((yes) => yes)).toHaveLength(1)
  finish()
  while (!(await both[1]?.start(job))) await systemClock.sleep(5)
  await all(both, (runner) => runner[Symbol.asyncDispose]())
  expect(runs).toBe(2)
})

test('a runner tells the jobs it started to stop, and ends when they have', async () => {
  const [runner] = runners()
  let over = false
  const run = async (signal: AbortSignal) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    await systemClock.sleep(20)
    over = true
  }
  expect(await runner?.start({ name: 'long', everySeconds: 60, run })).toBe(true)
  await runner?.[Symbol.asyncDispose]()
  expect(over).toBe(true)
})

test('a started job that fails is logged, and can be started again', async () => {
  const [runner] = runners()
  const job = { name: 'fails', everySeconds: 60, run: async () => Promise.reject(new Error('no')) }
  expect(await runner?.start(job)).toBe(true)
  while (!(await runner?.start(job))) await systemClock.sleep(5)
  await runner?.[Symbol.asyncDispose]()
})

/** A job that goes on until it is told to stop or to finish, in each worker that begins it. */
function endless(name: string, everySeconds = 0.01) {
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
  const begun: bigint[] = []
  const stopped: unknown[] = []
  const run = async (signal: AbortSignal, fence: bigint): Promise<void> => {
    begun.push(fence)
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    await Promise.race([finished, aborted])
    if (signal.aborted) stopped.push(signal.reason)
  }
  return { job: { name, everySeconds, run } satisfies Job, begun, stopped, finish }
}

test('a job that lasts longer than its lease is not taken over while its worker lives', async () => {
  const both = runners(1.5)
  const { job, begun, stopped, finish } = endless('lasting')
  for (const runner of both) runner.schedule(job)
  await systemClock.sleep(4000)
  expect(begun).toHaveLength(1)
  finish()
  while (begun.length < 2) await systemClock.sleep(5)
  expect(stopped).toEqual([])
  await all(both, (runner) => runner[Symbol.asyncDispose]())
})

test('so is one that was started', async () => {
  const both = runners(1.5)
  const { job, begun, finish } = endless('started', 60)
  expect(await both[0]?.start(job)).toBe(true)
  await systemClock.sleep(4000)
  expect(await both[1]?.start(job)).toBe(false)
  finish()
  while (!(await both[1]?.start(job))) await systemClock.sleep(5)
  expect(begun).toHaveLength(2)
  await all(both, (runner) => runner[Symbol.asyncDispose]())
})

test('a job whose lease was taken over is told to stop', async () => {
  const [runner] = runners(0.3)
  const { job, begun, stopped } = endless('robbed', 60)
  expect(await runner?.start(job)).toBe(true)
  while (begun.length < 1) await systemClock.sleep(5)
  await using sql = await openSql(schema.url)
  await sql.rows(`UPDATE job_leases SET fence = fence + 1, holder = 'somebody' WHERE name = 'robbed'`)
  while (stopped.length < 1) await systemClock.sleep(5)
  expect(stopped).toEqual([expect.any(LeaseLost)])
  await runner?.[Symbol.asyncDispose]()
})

test('a job whose lease cannot be renewed is told to stop before another can take it', async () => {
  await using line = await Line.open(schema.url)
  await using cut = await Database.open({ url: line.url, poolSize: 2, log, clock: systemClock })
  const runner = new Runner({ database: cut, clock: systemClock, log, graceSeconds: 3 })
  const { job, begun, stopped } = endless('cut off', 60)
  expect(await runner.start(job)).toBe(true)
  while (begun.length < 1) await systemClock.sleep(5)
  line.silent = true
  const next = async () => databases[1]?.jobLease('cut off', 60)
  let taken = await next()
  for (; taken === undefined && stopped.length === 0; taken = await next()) await systemClock.sleep(20)
  expect(stopped).toHaveLength(1)
  expect(taken).toBe(undefined)
  line.silent = false
  await runner[Symbol.asyncDispose]()
}, 30_000)

test('a walk that a dead worker began continues from its place in another, and a finished one is not begun again', async () => {
  const both = runners(0.2)
  const [dead] = databases
  const from: string[] = []
  const job: Job = {
    name: 'walk',
    everySeconds: 0.05,
    async run(_, fence) {
      from.push((await databases[1]?.jobPlace('walk')) ?? '')
      await databases[1]?.transaction((tx) => tx.fence('walk', fence, ''))
    },
  }
  both[1]?.resume(job)
  const lease = await dead?.jobLease('walk', 0.6)
  await systemClock.sleep(300)
  await dead?.transaction((tx) => tx.fence('walk', lease?.fence ?? 0n, 'row 64'))
  expect(from).toEqual([])
  while (from.length < 1) await systemClock.sleep(5)
  await systemClock.sleep(300)
  expect(from).toEqual(['row 64'])
  await all(both, (runner) => runner[Symbol.asyncDispose]())
})
