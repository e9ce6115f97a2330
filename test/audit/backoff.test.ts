import { expect, test } from 'vitest'
import { Backoff, within } from '../../src/audit/backoff.ts'
import { systemClock } from '../../src/clock.ts'

/** With a clock that moves only when told. */
function stopped() {
  const hands = { now: 5000 }
  const backoff = new Backoff({ ...systemClock, monotonic: () => hands.now })
  const isOpen = (): boolean => {
    try {
      backoff.check()
      return true
    } catch {
      return false
    }
  }
  /** Fails, and returns the milliseconds until it may be tried again. */
  const pause = (): number => {
    backoff.failed(new Error('gone'))
    const began = hands.now
    while (!isOpen()) hands.now++
    return hands.now - began
  }
  return { hands, backoff, isOpen, pause }
}

test('a channel that never failed may be tried; one that failed may not, and says why', () => {
  const { backoff, isOpen } = stopped()
  expect(isOpen()).toBe(true)
  backoff.failed(new Error('gone'))
  expect(() => backoff.check()).toThrow('gone')
})

test('each pause is twice as long as the last, from 100 ms to 5 s', () => {
  const { pause } = stopped()
  expect(Array.from({ length: 8 }, pause)).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000])
})

test('a channel that was reset may be tried at once, and pauses from the beginning', () => {
  const { backoff, isOpen, pause } = stopped()
  for (let n = 0; n < 3; n++) backoff.failed(new Error('gone'))
  expect(isOpen()).toBe(false)
  backoff.reset()
  expect(isOpen()).toBe(true)
  expect(pause()).toBe(100)
})

test('pauses begin anew after a second of work, and go on after less', () => {
  for (const [worked, next] of [
    [1000, 100],
    [999, 200],
  ] as const) {
    const { hands, backoff, pause } = stopped()
    pause()
    backoff.began()
    hands.now += worked
    expect(pause(), `${worked}`).toBe(next)
    // What worked once has not worked since.
    hands.now += 1000
    expect(pause(), `${worked}`).toBe(2 * next)
  }
})

test('work that is done in time is answered; other work is given up, and told so once', async () => {
  let late = 0
  expect(await within(60_000, Promise.resolve('done'), () => late++)).toBe('done')
  await expect(within(60_000, Promise.reject(new Error('failed')), () => late++)).rejects.toThrow('failed')
  expect(late).toBe(0)
  const never = Promise.withResolvers<string>()
  await expect(within(1, never.promise, () => late++)).rejects.toThrow('it took longer than 1 ms')
  expect(late).toBe(1)
  // Nobody waits for it any more: its failure must not end the process.
  never.reject(new Error('much later'))
  await new Promise((resolve) => setImmediate(resolve))
})
