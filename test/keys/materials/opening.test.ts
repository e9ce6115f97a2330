import { expect, test, vi } from 'vitest'
import { Keks } from '../../../src/keys/kek/keks.ts'
import type { Material } from '../../../src/keys/material.ts'
import { Opening } from '../../../src/keys/materials/opening.ts'
import { type Cluster, makeKey, nobody, useCluster } from '../support.ts'

/** HMAC secrets that become such as may be opened. */

let cluster: Cluster
let opening: Opening
const secretOf = (sizeBytes: number): Promise<Material> =>
  makeKey(cluster.custody, cluster.place.database, 'hmac', { sizeBytes })

useCluster('opening', async (begun) => {
  cluster = begun
  const { hsm, place, custody } = cluster
  const { database } = place
  opening = new Opening({ hsm, database, keks: new Keks(hsm, database, false), blobs: custody.managed.blobs })
  // The KEKs are proven at their first use, with keys of zeros.
  await opening.open(await secretOf(40), nobody)
})

/** Opens a new secret of that length. @returns it, and the lengths of the values that the token was given for that */
async function opened(sizeBytes: number): Promise<{ material: Material; brought: number[] }> {
  const secret = await secretOf(sizeBytes)
  const creating = vi.spyOn(cluster.hsm, 'create')
  try {
    const material = await opening.open(secret, nobody)
    return { material, brought: creating.mock.calls.map(([{ value }]) => value?.length ?? 0) }
  } finally {
    creating.mockRestore()
  }
}
const open = { residence: 'enveloped', everPlaintext: true }

test.each([64, 72, 128])('one of %i bytes goes from KEK to KEK in the token, without being read', async (sizeBytes) => {
  const { material, brought } = await opened(sizeBytes)
  expect(brought).toEqual([])
  expect(material.row).toMatchObject({ ...open, sizeBytes })
})

test.each([32, 40, 56])('one of %i bytes is filled up to 64, at which every hash takes it', async (sizeBytes) => {
  const { material, brought } = await opened(sizeBytes)
  expect(brought).toEqual([64])
  expect(material.row).toMatchObject({ ...open, sizeBytes })
  expect(material.row.blob).toHaveLength(64 + 8)
})
