import { expect, test } from 'vitest'
import { startServer } from '../../support/server.ts'
import { serving } from '../nodes.ts'
import { connectionsOf, openPinned } from '../pinned.ts'
import { rotateAll } from './rotating.ts'

/**
 * Once a rotation is acknowledged no worker of the node encrypts under the old version; cluster.test.ts: of no node.
 */

test('700 rotations through the workers of a node, each followed at once by a use through all of them', async () => {
  await using server = await startServer({ workers: 3 })
  const pinned = Array.from({ length: 6 }, () => openPinned(server.url, server.rootToken))
  for (const one of pinned) expect((await one.ask('GET', 'sys/mounts')).status).toBe(200)
  expect(serving(server).map((pid) => connectionsOf(pid, server.url))).toEqual([2, 2, 2])
  expect(await rotateAll(server.client(), pinned, 35)).toEqual([])
  for (const one of pinned) one[Symbol.dispose]()
}, 120_000)
