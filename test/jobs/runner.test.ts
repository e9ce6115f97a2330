import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Job } from '../../src/engine.ts'
import { Runner } from '../../src/jobs/runner.ts'
import { createLog } from '../../src/log.ts'
import { Database } from '../../src/store/database.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'

const log = createLog('silent')
let schema: TestDatabase
let databases: Database[]
beforeAll(async () => {
  schema = await createDatabase()
  const open = () => Database.open({ url: schema.url, poolSize: 2, log, clock: systemClock })
  databases = [await open(), await open()]
  await databases[0]?.migrate()
})
afterAll(async () => {
  for (const database of databases ?? []) await database[Symbol.asyncDispose]()
  await schema?.[Symbol.asyncDispose]()
})

/** A runner for each worker. */
const runners = () => databases.map((database) => new Runner({ database, clock: systemClock, log }))
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

test('what is started runs once at a time over all workers, and can be started again when it has ended', async () => {
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

test('a runner ends when what it started has ended, which it tells to stop', async () => {
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

test('what is started and fails is logged, and can be started again', async () => {
  const [runner] = runners()
  const job = { name: 'fails', everySeconds: 60, run: async () => Promise.reject(new Error('no')) }
  expect(await runner?.start(job)).toBe(true)
  while (!(await runner?.start(job))) await systemClock.sleep(5)
  await runner?.[Symbol.asyncDispose]()
})
