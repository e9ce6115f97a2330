import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { readAnchor, rememberedChange, writeAnchor } from '../../../src/keys/cluster/anchor.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { openHsm } from '../support.ts'

/** The token's memory of a database, over epochs and changes. */

let hsm: Hsm
beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('epochs'))
}, 60_000)
afterAll(() => hsm?.[Symbol.asyncDispose]())

const remember = (cluster: string, epoch: number, heads: Record<string, number>) =>
  writeAnchor(hsm, { cluster, epoch, rowKey: 'aa', heads, tombstones: [] })

test('a worker that is still in an earlier epoch takes nothing back of what a later one has written', async () => {
  const cluster = randomUUID()
  await remember(cluster, 2, { keks: 3 })
  for (let late = 0; late < 3; late++) await remember(cluster, 1, { keks: 9, other: 1 })
  expect(await readAnchor(hsm, cluster)).toMatchObject({ epoch: 2, heads: { keks: 3 }, serial: 4 })
  expect(await rememberedChange(hsm, cluster, 'other', 1)).toBe(0)
})

test('a later epoch begins with its own changes, however high those before were', async () => {
  const cluster = randomUUID()
  await remember(cluster, 1, { keks: 9, other: 1 })
  await remember(cluster, 2, { keks: 3 })
  const anchor = await readAnchor(hsm, cluster)
  expect(anchor).toMatchObject({ epoch: 2, serial: 2 })
  expect(anchor?.heads).toEqual({ keks: 3 })
})

test('within an epoch no change is taken back, and no set forgotten', async () => {
  const cluster = randomUUID()
  await remember(cluster, 1, { keks: 9, other: 1 })
  await remember(cluster, 1, { keks: 3 })
  expect((await readAnchor(hsm, cluster))?.heads).toEqual({ keks: 9, other: 1 })
})
