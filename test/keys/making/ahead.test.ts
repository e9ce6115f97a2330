import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { MadeAhead } from '../../../src/keys/making/ahead.ts'
import { type Made, plaintextHistory } from '../../../src/keys/making/making.ts'

const numberOf = ({ blob }: Made): number | undefined => blob?.[0]

/** A stock with a clock that stands still, of which nothing was made yet. */
function fresh() {
  const counter = { made: 0 }
  const make = async (): Promise<Made> => {
    return { blob: Buffer.from([counter.made++]), spki: undefined, history: plaintextHistory }
  }
  const time = { now: 0 }
  const ahead = new MadeAhead({ wall: () => time.now, monotonic: () => time.now, sleep: async () => undefined })
  const turns = async (count = 40): Promise<void> => {
    for (let number = 0; number < count; number++) await turn()
  }
  const take = async (sort = 'a', how = make) => numberOf(await ahead.take(sort, how))
  return { ahead, counter, make, time, turns, take }
}

test('one is made ahead for each that is taken, and none is given twice', async () => {
  const { ahead, take, turns } = fresh()
  expect(await take()).toBe(0)
  expect(ahead.count('a')).toBe(0)
  const seen = [0]
  for (let times = 0; times < 5; times++) {
    await turns()
    expect(ahead.count('a')).toBe(1)
    seen.push((await take()) ?? -1)
    expect(ahead.count('a')).toBe(0)
  }
  expect(seen).toEqual([0, 1, 2, 3, 4, 5])
})

test('those who come at once get different ones, and sixteen at most are made for the next', async () => {
  const { ahead, counter, take, turns } = fresh()
  const first = await Promise.all(Array.from({ length: 50 }, () => take()))
  await turns(100)
  expect(ahead.count('a')).toBe(16)
  const all = [...first, ...(await Promise.all(Array.from({ length: 50 }, () => take())))]
  expect(new Set(all).size).toBe(100)
  await turns(100)
  expect([ahead.count('a'), counter.made]).toEqual([16, 50 + 34 + 16 + 16])
})

test('each sort has its own, made as the last request of the sort asked', async () => {
  const { ahead, make, take, turns } = fresh()
  await Promise.all([take('a'), take('b')])
  const later = async (): Promise<Made> => ({ ...(await make()), blob: Buffer.from([200]) })
  await turns()
  await take('a', later)
  await turns()
  expect([await take('a'), await take('b')]).toEqual([200, 3])
  expect(ahead.count('c')).toBe(0)
})

test('after a minute they are not used', async () => {
  const { ahead, time, take, turns } = fresh()
  await Promise.all([take(), take(), take()])
  await turns()
  expect(ahead.count('a')).toBe(3)
  time.now = 59_999
  expect(await take()).toBe(5)
  await turns()
  time.now = 60_000
  // The one made a moment ago, and then a new one: the two of the beginning are forgotten.
  expect(await take()).toBe(6)
  expect(await take()).toBe(7)
  expect(ahead.count('a')).toBe(0)
})

test('a failure to make one ahead is nobody’s, and the next request tries again', async () => {
  const { ahead, take, turns } = fresh()
  const failing = async (): Promise<Made> => {
    throw new Error('no token')
  }
  await expect(take('a', failing)).rejects.toThrow('no token')
  await turns()
  expect(ahead.count('a')).toBe(0)
  expect(await take()).toBe(0)
  await turns()
  expect(await take()).toBe(1)
})

test('when it is closed nothing is left, and nothing is kept', async () => {
  const { ahead, take, turns } = fresh()
  await Promise.all([take(), take()])
  await turns()
  await Promise.all([take(), take(), take()])
  ahead[Symbol.dispose]()
  await turns()
  expect(ahead.count('a')).toBe(0)
})

test('of many sorts the twenty latest are held', async () => {
  const { ahead, take, turns } = fresh()
  for (let sort = 0; sort < 30; sort++) {
    await take(String(sort))
    await turns(5)
  }
  const counts = Array.from({ length: 30 }, (_, sort) => ahead.count(String(sort)))
  expect(counts.filter((count) => count > 0)).toHaveLength(20)
  expect(counts.slice(0, 10)).toEqual(Array(10).fill(0))
})
