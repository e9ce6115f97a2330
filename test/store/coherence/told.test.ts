import { afterEach, beforeEach, expect, test } from 'vitest'
import { leafOf } from '../../../src/store/coherence/leaves.ts'
import type { Transaction } from '../../../src/store/reader.ts'
import type { VersionMessage } from '../../../src/workload.ts'
import { clustered } from '../../support/engine.ts'
import { type Bench, createBench } from '../support.ts'

/** Whom a worker tells of its commits. */

let bench: Bench
beforeEach(async () => {
  bench = await createBench()
})
afterEach(() => bench[Symbol.asyncDispose]())

const touch = async (tx: Transaction) => tx.touch('policies', 'a')
const turn = () => new Promise((resolve) => setImmediate(resolve))

// In a cluster nothing is sent along with a COMMIT: whether there are others shows later.
test.skipIf(clustered)('nobody while no other worker is registered, and everybody once one is', async () => {
  const sent: VersionMessage[] = []
  const writer = await bench.another({ send: (message) => void sent.push(message) })
  await writer.start()
  await writer.transaction(touch)
  await turn()
  expect(sent).toEqual([])
  const other = await bench.another()
  await other.start()
  await writer.transaction(touch)
  await turn()
  expect(sent).toMatchObject([{ kind: 'written', leaves: [[leafOf('policies', 'a'), 2]] }])
})
