import { expect, test } from 'vitest'
import { startServer } from '../../support/server.ts'
import { openPinned } from '../pinned.ts'
import { rotateAll } from './rotating.ts'

/** Nodes send each other nothing: they share only the database, which each of them polls. */

test('300 rotations through the nodes of a cluster, each followed at once by a use through all of them', async () => {
  await using first = await startServer()
  await using second = await startServer({ joins: first })
  await using third = await startServer({ joins: first })
  const pinned = [first, second, third].map(({ url, rootToken }) => openPinned(url, rootToken))
  expect(await rotateAll(first.client(), pinned, 15)).toEqual([])
  for (const one of pinned) one[Symbol.dispose]()
}, 120_000)
