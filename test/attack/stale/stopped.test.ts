import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../../support/server.ts'
import { type Hold, openHold } from '../hold.ts'
import { alive, expectServed, serving } from '../nodes.ts'
import { openPinned, type Pinned } from '../pinned.ts'

/**
 * Workers that are held up between reading a key and using it, or stopped altogether, while somebody else rotates it.
 */

let first: TestServer
let second: TestServer
let line: Hold
/** A connection to the only worker of each node. */
let one: Pinned
let two: Pinned

beforeAll(async () => {
  first = await startServer()
  line = await openHold(first.database.url)
  second = await startServer({ joins: first, config: { database: { url: line.url } } })
  one = openPinned(first.url, first.rootToken)
  two = openPinned(second.url, second.rootToken)
  expectServed(await first.client().post('transit/keys/key'))
}, 60_000)
afterAll(async () => {
  one?.[Symbol.dispose]()
  two?.[Symbol.dispose]()
  await second?.[Symbol.asyncDispose]()
  await line?.[Symbol.asyncDispose]()
  await first?.[Symbol.asyncDispose]()
})

/** Reads the key once for one answer: encrypting reads it twice, since it first asks whether the key exists. */
const use = (pinned: Pinned) => pinned.ask('POST', 'transit/hmac/key', { input: '' })

/** Rotates through the first node. @returns the version that every answer asked for later must name */
async function rotate(): Promise<number> {
  const rotated = await one.ask('POST', 'transit/keys/key/rotate')
  expect(rotated.status, rotated.text).toBe(200)
  const latest = await use(one)
  expect(latest.status, latest.text).toBe(200)
  return latest.version
}

test('a worker that has read the old key and not used it yet when a rotation is acknowledged uses the new one', async () => {
  for (let round = 0; round < 20; round++) {
    await rotate()
    const held = line.hold('FROM `transit_keys`')
    // Begins to read; its answers do not arrive. Polling goes on, so that nobody takes the worker for dead.
    const early = use(two)
    await held
    const version = await rotate()
    const late = openPinned(second.url, second.rootToken)
    const answer = use(late)
    line.release()
    expect((await answer).version).toBe(version)
    expect((await early).status).toBe(200)
    late[Symbol.dispose]()
  }
}, 60_000)

test('a stopped worker does not keep a rotation waiting, and does not answer from the old key when it wakes', async () => {
  for (let round = 0; round < 3; round++) {
    const before = await rotate()
    expect((await use(two)).version).toBe(before)
    const [worker = 0] = serving(second)
    process.kill(worker, 'SIGSTOP')
    try {
      // Answered while it is stopped: nothing here waits for its waking.
      const version = await rotate()
      expect(alive(worker)).toBe(true)
      const asleep = use(two)
      process.kill(worker, 'SIGCONT')
      expect((await asleep).version).toBe(version)
    } finally {
      process.kill(worker, 'SIGCONT')
    }
  }
}, 60_000)

test('a worker that is cut off from the database answers 503 and nothing old, and serves when the line is back', async () => {
  const before = await rotate()
  expect((await use(two)).version).toBe(before)
  const cut = line.hold('')
  await cut
  const version = await rotate()
  const answer = await use(two)
  expect([answer.status, answer.version]).toEqual([503, 0])
  line.release()
  let back = await use(two)
  while (back.status === 503) back = await use(two)
  expect(back.version).toBe(version)
}, 60_000)
