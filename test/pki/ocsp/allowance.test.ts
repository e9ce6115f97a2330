import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { Allowance, Exhausted } from '../../../src/engines/pki/ocsp/allowance.ts'
import { group } from '../../hsm/support/fault.ts'
import { failureOf, readAnswer } from './answer.ts'
import { clock, TestMount, useOcspWorld } from './world.ts'

/** Time that passes only when the test says so, or something sleeps. */
class Stopwatch {
  now = 0
  wall = () => this.now
  monotonic = () => this.now
  sleep = async (milliseconds: number) => {
    this.now += milliseconds
  }
}

describe('an allowance', () => {
  test('is spent by the time that work takes, and comes back by its share of the time that passes', () => {
    const time = new Stopwatch()
    const allowance = new Allowance({ clock: time, share: 1 / 4, burstMilliseconds: 100 })
    const work = () => {
      time.now += 60
    }
    // During each 60 ms, 15 come back.
    for (const left of [55, 10, -35]) {
      allowance.spend(work)
      expect(allowance.open).toBe(left > 0)
    }
    time.now += 139
    expect(allowance.open).toBe(false)
    time.now += 2
    expect(allowance.open).toBe(true)
    time.now += 1e9
    expect(allowance.open).toBe(true)
    for (const left of [55, 10, -35]) {
      allowance.spend(work)
      expect(allowance.open).toBe(left > 0)
    }
  })

  test('lets only so many be inside a token at once, however fast the calls are', async () => {
    const allowance = new Allowance({ clock: new Stopwatch(), atOnce: 2 })
    const { promise, resolve } = Promise.withResolvers<void>()
    const [one, two] = [allowance.spend(() => promise), allowance.spend(() => promise)]
    expect(allowance.open).toBe(false)
    resolve()
    await Promise.all([one, two])
    expect(allowance.open).toBe(true)
  })

  test('is given in the order of asking, work by work, and refused when too many wait', async () => {
    const time = new Stopwatch()
    const allowance = new Allowance({ clock: time, burstMilliseconds: 10, mostWaiting: 5 })
    const done: number[] = []
    const work = (index: number) => () => {
      time.now += 20
      done.push(index)
      if (index === 3) throw new Error('it failed')
    }
    allowance.spend(work(0))
    const waiting = [1, 2, 3, 4, 5].map((index) => Promise.allSettled([allowance.wait(work(index))]))
    expect(() => allowance.wait(work(6))).toThrow(Exhausted)
    const outcomes = (await Promise.all(waiting)).flat().map(({ status }) => status)
    expect(outcomes).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(done).toEqual([0, 1, 2, 3, 4, 5])
  })
})

const stranger = () => `7f${randomBytes(19).toString('hex')}`
const many = <T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)))

describe.each(['inline', 'threads'] as const)('hundreds of strangers at a token that works %s', (executor) => {
  const world = useOcspWorld(executor)
  afterEach(() => world.shim.clear())

  test('are answered without their nonce, or told to try later, while certificates are issued', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    await pki.answer(serial)
    const allowance = new Allowance({ clock, burstMilliseconds: 20 })
    const responder = world.worker.responder({ allowance })
    const nonce = randomBytes(16)
    expect((await pki.answer(serial, { responder, nonce })).nonce).toEqual(nonce)
    world.shim.set({ groups: group.sign, delayMicroseconds: 5000 })
    const nonces = many(300, () => pki.ask(serial, { responder, nonce: randomBytes(16) }))
    const strangers = many(300, () => pki.ask(stranger(), { responder }))
    const issued = await many(10, () => pki.issue())
    expect(new Set(issued).size).toBe(10)
    const answers = (await nonces).map(({ body }) => readAnswer(body))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(['good']))
    const without = answers.filter(({ nonce }) => nonce === undefined).length
    expect(without).toBeGreaterThan(0)
    const refusals = (await strangers).map(({ status, body }) => [status, failureOf(body)])
    expect(refusals.filter(([, failure]) => failure === 'tryLater').length).toBeGreaterThan(0)
    for (const [status, failure] of refusals) expect([200, failure]).toEqual([status, failure && 'tryLater'])
  }, 60_000)

  test('wait for the first answer about a certificate in bounded numbers', async () => {
    const pki = await TestMount.make(world.worker)
    const serials = await many(30, () => pki.issue())
    const allowance = new Allowance({ clock: systemClock, burstMilliseconds: 1, mostWaiting: 3 })
    const responder = world.worker.responder({ allowance })
    world.shim.set({ groups: group.sign, delayMicroseconds: 20_000 })
    const replies = await Promise.all(serials.map((serial) => pki.ask(serial, { responder })))
    const failures = replies.map(({ body }) => failureOf(body))
    expect(new Set(failures)).toEqual(new Set([undefined, 'tryLater']))
  }, 60_000)

  test('are told to try later when they exceed their lane to the database', async () => {
    const pki = await TestMount.make(world.worker)
    const responder = world.worker.responder({ allowance: new Allowance({ clock, share: 1, burstMilliseconds: 1e9 }) })
    const strangers = many(1000, () => pki.ask(stranger(), { responder }))
    const issued = await many(10, () => pki.issue())
    expect(new Set(issued).size).toBe(10)
    const replies = await strangers
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(replies.map(({ body }) => failureOf(body)))).toEqual(new Set([undefined, 'tryLater']))
  }, 60_000)
})
