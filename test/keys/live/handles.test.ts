import { beforeAll, describe, expect, test } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { Handles } from '../../../src/keys/live/handles.ts'
import { Material } from '../../../src/keys/material.ts'
import { type Cluster, makeKey, useCluster } from '../support.ts'

let hsm: Hsm
let cluster: Cluster
let materials: Material[]
useCluster('handles', (begun) => {
  cluster = begun
  hsm = begun.hsm
})
beforeAll(async () => {
  const { custody, place } = cluster
  materials = await Promise.all([1, 2, 3].map(() => makeKey(custody, place.database, 'hmac')))
})

/** Live objects of the token, and the materials that were loaded so far. */
function cacheOf(limit: number): { handles: Handles; loaded: string[] } {
  const loaded: string[] = []
  const load = (material: Material) => {
    loaded.push(material.id)
    return cluster.custody.managed.blobs.load(material)
  }
  return { handles: new Handles({ hsm, limit, load }), loaded }
}
const objects = async (): Promise<number> => (await hsm.find({ class: 'secret', token: false })).length

describe('live objects', () => {
  test('are loaded once, and destroyed when they are dropped', async () => {
    const { handles, loaded } = cacheOf(3)
    const before = await objects()
    const [one, other] = materials as [Material, Material]
    for (const material of [one, other, one, other]) await handles.use(material, async () => {})
    expect(loaded).toEqual([one.id, other.id])
    expect([handles.size, await objects()]).toEqual([2, before + 2])
    handles.drop(one.id)
    await expect.poll(objects).toBe(before + 1)
    await handles.use(one, async () => {})
    expect(loaded).toEqual([one.id, other.id, one.id])
    handles.close()
    await expect.poll(objects).toBe(before)
    expect(handles.size).toBe(0)
  })

  test('are so many and no more: the least recently used one goes', async () => {
    const { handles, loaded } = cacheOf(2)
    const before = await objects()
    const [one, two, three] = materials as [Material, Material, Material]
    for (const material of [one, two, one, three]) await handles.use(material, async () => {})
    expect(handles.size).toBe(2)
    await expect.poll(objects).toBe(before + 2)
    for (const material of [one, three, two]) await handles.use(material, async () => {})
    expect(loaded).toEqual([one, two, three, two].map(({ id }) => id))
    handles.close()
  })

  test('of a secret that was padded since are loaded again', async () => {
    const { handles, loaded } = cacheOf(3)
    const [one] = materials as [Material]
    await handles.use(one, async () => {})
    const longer = Buffer.concat([one.row.blob ?? Buffer.alloc(0), Buffer.alloc(8)])
    // Its blob is none: only that it is tried counts.
    const use = async () => handles.use(new Material({ ...one.row, blob: longer }), async () => {})
    await expect(use()).rejects.toThrow()
    expect(loaded).toEqual([one.id, one.id])
    handles.close()
  })
})
