import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/clock.ts'
import { Metrics } from '../../../src/metrics.ts'
import { type Bench, createBench } from '../support.ts'

let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

/** A host whose wall clock is wrong. */
class WrongClock implements Clock {
  ahead = 0
  wall = () => systemClock.wall() + this.ahead
  monotonic = systemClock.monotonic
  sleep = systemClock.sleep
}

/** Waits until a poll has found the difference. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(10)
}

const refusal = (work: () => void): unknown => {
  try {
    work()
  } catch (error) {
    return error
  }
  return undefined
}

describe("the database's clock beside the host's", () => {
  test('is unknown, and refused, before the first poll', () => {
    expect(bench.database.clockSkew).toBeUndefined()
    expect(refusal(() => bench.database.requireClock())).toMatchObject({ status: 503 })
  })

  test('is known to within half of a poll, and shown by the metrics', async () => {
    const metrics = new Metrics()
    const database = await bench.another({ metrics })
    await database.start()
    const { milliseconds = Number.NaN, toleranceMilliseconds = Number.NaN } = database.clockSkew ?? {}
    expect(Math.abs(milliseconds)).toBeLessThanOrEqual(toleranceMilliseconds + 1)
    expect(toleranceMilliseconds).toBeLessThanOrEqual(1000)
    database.requireClock(toleranceMilliseconds + 1)
    const gauge = metrics.snapshot().find(({ name }) => name === 'strongroom.database.clock_skew')
    expect(gauge).toMatchObject({ kind: 'gauge', labels: { worker: String(process.pid) } })
  })

  test('refuses beyond the limit on either side, names the difference, and follows a clock that is set right', async () => {
    const clock = new WrongClock()
    const metrics = new Metrics()
    const database = await bench.another({ clock, metrics })
    await database.start()
    const skew = () => database.clockSkew?.milliseconds ?? Number.NaN
    const shown = () =>
      metrics.snapshot().find(({ name }) => name === 'strongroom.database.clock_skew') as { value: number } | undefined
    clock.ahead = 42_000
    await until(() => skew() < -41_000)
    const text = /^this host's clock is 4\d\.\d s ahead of the database's; at most 30 s are allowed$/
    expect(refusal(() => database.requireClock())).toMatchObject({ status: 503, message: expect.stringMatching(text) })
    expect(shown()?.value).toBeLessThan(-41_000)
    database.requireClock(60_000)
    clock.ahead = -42_000
    await until(() => skew() > 41_000)
    expect(refusal(() => database.requireClock())).toMatchObject({
      status: 503,
      message: expect.stringContaining("s behind the database's"),
    })
    clock.ahead = 0
    await until(() => Math.abs(skew()) < 20_000)
    database.requireClock()
  })
})
