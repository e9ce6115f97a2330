import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'
import { expectServed, serving } from './nodes.ts'
import { connectionsOf, openPinned, type Pinned } from './pinned.ts'

/** Once a rotation is acknowledged nobody encrypts under the old version: not the next worker, not the next node. */

const keys = Array.from({ length: 10 }, (_, index) => `key-${index}`)
/** Of each key: 1,000 rotations in all. */
const [withinNode, acrossNodes] = [70, 30]

let first: TestServer
let nodes: TestServer[]

beforeAll(async () => {
  first = await startServer({ workers: 3 })
  nodes = [first]
  for (const key of keys) expectServed(await first.client().post(`transit/keys/${key}`))
}, 60_000)
afterAll(async () => {
  for (const node of nodes.toReversed()) await node[Symbol.asyncDispose]()
})

/**
 * Rotates through one connection, then encrypts at once through every connection. As long as nobody else rotates the key, the
 * version that each of them must use is known.
 * @returns answers that named another one
 */
async function rotateAndUse(key: string, version: number, by: Pinned, all: readonly Pinned[]): Promise<unknown[]> {
  const rotated = await by.ask('POST', `transit/keys/${key}/rotate`)
  expect(rotated.status, rotated.text).toBe(200)
  const answers = await Promise.all(all.map((one) => one.ask('POST', `transit/encrypt/${key}`, { plaintext: '' })))
  return answers.filter((answer) => answer.version !== version)
}

/** Every key is rotated as often as said, all keys at the same time, each rotation through the next connection. */
async function rotateAll(pinned: readonly Pinned[], from: number, times: number): Promise<unknown[]> {
  const stale = keys.map(async (key) => {
    const found: unknown[] = []
    for (let turn = 0; turn < times; turn++) {
      const by = pinned[turn % pinned.length]
      if (by) found.push(...(await rotateAndUse(key, from + turn, by, pinned)))
    }
    return found
  })
  return (await Promise.all(stale)).flat()
}

test('700 rotations through the workers of a node, each followed by a use through all of them', async () => {
  const pinned = Array.from({ length: 6 }, () => openPinned(first.url, first.rootToken))
  for (const one of pinned) expect((await one.ask('GET', 'sys/mounts')).status).toBe(200)
  expect(serving(first).map((pid) => connectionsOf(pid, first.url))).toEqual([2, 2, 2])
  expect(await rotateAll(pinned, 2, withinNode)).toEqual([])
  for (const one of pinned) one[Symbol.dispose]()
}, 60_000)

test('300 rotations through the nodes of a cluster, each followed by a use through all of them', async () => {
  for (let node = 0; node < 2; node++) nodes.push(await startServer({ joins: first }))
  const pinned = nodes.map(({ url, rootToken }) => openPinned(url, rootToken))
  expect(await rotateAll(pinned, 2 + withinNode, acrossNodes)).toEqual([])
  for (const one of pinned) one[Symbol.dispose]()
}, 60_000)
