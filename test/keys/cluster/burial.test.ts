import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { readAnchor } from '../../../src/keys/cluster/anchor.ts'
import { type Cluster, Place, reopen, useCluster } from '../support.ts'

/** Tombstones: the token remembers the keys to destroy, whatever the owner of the database does meanwhile. */

let cluster: Cluster
useCluster('burial', (begun) => {
  cluster = begun
})

const remembered = () => readAnchor(cluster.hsm, cluster.custody.cluster.id)

test('a death is remembered, and forgotten after the burial, though the database is gone', async () => {
  const elsewhere = await Place.at(cluster.place.url)
  using other = await reopen(cluster.hsm, elsewhere)
  await elsewhere[Symbol.asyncDispose]()
  await expect(other.cluster.anchor()).rejects.toThrow()
  const [dead, buried] = [randomUUID(), randomUUID()]
  const before = await remembered()
  await other.cluster.bury({ dead: [dead, buried] })
  expect(await other.cluster.dead()).toEqual(expect.arrayContaining([dead, buried]))
  await other.cluster.bury({ buried: [buried] })
  const after = await remembered()
  expect(after?.tombstones).toContain(dead)
  expect(after?.tombstones).not.toContain(buried)
  expect(after?.heads).toEqual(before?.heads)
})

test('a death is remembered though the database is behind what the token remembers, which stays', async () => {
  const { custody, place } = cluster
  await custody.cluster.anchor()
  const before = await remembered()
  const [head] = await place.sql("SELECT * FROM heads WHERE `set` = 'keks'")
  await place.sql("DELETE FROM heads WHERE `set` = 'keks'")
  try {
    await expect(custody.cluster.anchor()).rejects.toThrow('the head of the set of KEKs is missing')
    const dead = randomUUID()
    await custody.cluster.bury({ dead: [dead] })
    const after = await remembered()
    expect(after?.tombstones).toContain(dead)
    expect(after).toMatchObject({ epoch: before?.epoch, heads: before?.heads, rowKey: before?.rowKey })
  } finally {
    const columns = Object.keys(head ?? {})
    const places = columns.map(() => '?').join()
    const names = columns.map((name) => `\`${name}\``).join()
    await place.sql(`INSERT INTO heads (${names}) VALUES (${places})`, Object.values(head ?? {}))
  }
})
