import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { encode, pieces, ringRecords, writeAll } from '../../../src/store/coherence/ring.ts'
import { type News, SharedLog } from '../../../src/store/coherence/sharedlog.ts'
import type { Version } from '../../../src/workload.ts'
import { TestLog } from './testlog.ts'

let log: TestLog
beforeEach(() => {
  log = new TestLog()
})
afterEach(() => log[Symbol.dispose]())

const join2 = (): SharedLog => new SharedLog(log.place())
const leaves = (count: number, from = 0): Version[] => Array.from({ length: count }, (_, n) => [n % 65_536, from + n])

test('a reader gets what others append from then on, once, and nothing of its own', () => {
  const [one, other] = [join2(), join2()]
  one.append({ leaves: [[1, 1]], groups: [] })
  const late = join2()
  one.append({ leaves: [[7, 2 ** 40 + 3]], groups: [[383, 9]] })
  other.append({ leaves: [[8, 1]], groups: [[0, 2]] })
  expect(one.news()).toEqual({ leaves: [[8, 1]], groups: [[0, 2]], polled: [], lost: false })
  expect(late.news()).toEqual({
    leaves: [
      [7, 2 ** 40 + 3],
      [8, 1],
    ],
    groups: [
      [383, 9],
      [0, 2],
    ],
    polled: [],
    lost: false,
  })
  for (const reader of [one, late]) expect(reader.news()).toBeUndefined()
})

test('two instances in one process have places of their own, and share the ring', () => {
  const place = log.place()
  const [one, other] = [new SharedLog(place), new SharedLog(place)]
  one.append({ leaves: [[1, 1]], groups: [] })
  other.append({ leaves: [[2, 1]], groups: [] })
  expect(one.news()?.leaves).toContainEqual([2, 1])
  expect(other.news()?.leaves).toEqual([
    [1, 1],
    [2, 1],
  ])
})

test('every record that fits arrives in order, wherever the ring begins anew', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 16_384 }), { minLength: 1, maxLength: 12 }), (sizes) => {
      const [writer, reader] = [join2(), join2()]
      let from = 0
      for (const size of sizes) {
        const records = leaves(size, from)
        from += size
        writer.append({ leaves: records, groups: [] })
        expect(reader.news()).toEqual({ leaves: records, groups: [], polled: [], lost: false })
      }
    }),
    { numRuns: 20 },
  )
})

test.each([
  ['more than the ring holds in one commit', [16_385]],
  ['more than the ring holds since it read last', [10_000, 6385]],
  ['several rings', [16_384, 16_384, 5]],
])('a reader that comes too late knows that it missed records: %s', (_, sizes) => {
  const [writer, reader] = [join2(), join2()]
  for (const size of sizes) writer.append({ leaves: leaves(size), groups: [] })
  expect(reader.news()?.lost).toBe(true)
  writer.append({ leaves: [[3, 4]], groups: [] })
  expect(reader.news()).toEqual({ leaves: [[3, 4]], groups: [], polled: [], lost: false })
})

test('an append that fails leaves nothing for readers', () => {
  const [writer, reader] = [join2(), join2()]
  const full = new SharedLog({ id: log.slots.id, descriptor: log.slots.descriptor, slot: 0 })
  writer.append({ leaves: [[1, 1]], groups: [] })
  reader.news()
  expect(() => full.append({ leaves: [[2, -1]], groups: [] })).toThrow()
  expect(reader.news()).toBeUndefined()
})

test.each([
  ['a record', 16 * 1024 + 8],
  ['a count', 64 + 4],
  ['the id', 3],
])('%s that is damaged is no news but a loss', (_, at) => {
  const [writer, reader] = [join2(), join2()]
  writer.append({ leaves: [[1, 1]], groups: [] })
  const byte = Buffer.alloc(1)
  readSync(log.slots.descriptor, byte, 0, 1, at)
  writeSync(log.slots.descriptor, Buffer.of((byte[0] ?? 0) ^ 1), 0, 1, at)
  expect(reader.news()).toEqual({ leaves: [], groups: [], polled: [], lost: true })
})

test('the news of a poll has its groups with their bases', () => {
  const [writer, reader] = [join2(), join2()]
  const polled = [
    { group: 7, v: 9, base: 4 },
    { group: 383, v: 2 ** 33, base: 1 },
  ]
  writer.append({ leaves: [[3, 8]], groups: [] }, polled)
  expect(reader.news()).toEqual({ leaves: [[3, 8]], groups: [], polled, lost: false })
})

test('a record that the ring has overwritten meanwhile is a loss, though it is whole', () => {
  const [writer, reader] = [join2(), join2()]
  writer.append({ leaves: [[1, 1]], groups: [] })
  const [{ at } = { at: 0 }] = pieces(0, ringRecords, 1)
  writeAll(log.slots.descriptor, encode(ringRecords, [[9, 9]]), at)
  expect(reader.news()).toEqual({ leaves: [], groups: [], polled: [], lost: true })
})

test('the file has no name, so that only processes that inherit it can open it', () => {
  expect(readlinkSync(`/proc/self/fd/${log.slots.descriptor}`)).toMatch(/ \(deleted\)$/)
  expect(readdirSync('/dev/shm').filter((name) => name.includes(log.slots.id))).toEqual([])
})

test('between processes every record arrives, whole and before its writer goes on', async () => {
  const writers = [0, 1].map(() => {
    const place = JSON.stringify({ ...log.place(), descriptor: 4 })
    const script = join(import.meta.dirname, 'appender.ts')
    return fork(script, [place], { stdio: ['ignore', 'inherit', 'inherit', 'ipc', log.slots.descriptor] })
  })
  const reader = join2()
  await Promise.all(writers.map((writer) => once(writer, 'message')))
  const known = new Map<number, number>()
  const learn = (news: News | undefined): void => {
    expect(news?.lost ?? false).toBe(false)
    for (const [leaf, v] of news?.leaves ?? []) {
      expect(v).toBe((known.get(leaf) ?? 0) + 1)
      known.set(leaf, v)
    }
  }
  /** The number that each writer says it has appended. */
  const said = writers.map(() => 0)
  for (const [index, writer] of writers.entries()) {
    writer.on('message', (n: number) => {
      said[index] = n
      learn(reader.news())
      expect(known.get(index) ?? 0).toBeGreaterThanOrEqual(n)
    })
    writer.send(index)
  }
  const ended = Promise.all(writers.map((writer) => once(writer, 'close')))
  const looking = setInterval(() => learn(reader.news()), 0)
  await ended
  clearInterval(looking)
  learn(reader.news())
  expect(said).toEqual([8000, 8000])
  expect(known).toEqual(
    new Map([
      [0, 8000],
      [1, 8000],
    ]),
  )
}, 60_000)
