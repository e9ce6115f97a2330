import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { crlSet } from '../../../src/engines/pki/crl/bootstrap.ts'
import { readAnchor } from '../../../src/keys/cluster/anchor.ts'
import { type Cluster, useCluster } from '../../keys/support.ts'
import { createCa, createSet, nodeAt, revoke, targetOf } from './world.ts'

let cluster: Cluster
useCluster('crlanchor', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
})

test('the token remembers that lists came out, once for each change, and refuses an older database', async () => {
  const { hsm, place, custody } = cluster
  const { database } = place
  const node = nodeAt(database)
  const ca = await createCa(cluster)
  const remembered = async () => {
    await custody.cluster.anchorChanges(crlSet)
    const anchor = await readAnchor(hsm, custody.cluster.id)
    return { serial: anchor?.serial ?? 0, lists: anchor?.heads[crlSet] ?? 0 }
  }
  const first = await remembered()
  expect(await remembered()).toEqual(first)
  const tables = ['heads', 'pki_manifests', 'pki_crls']
  for (const table of tables) await place.sql(`CREATE TABLE old_${table} AS SELECT * FROM ${table}`)
  await revoke(database, ca.crlIssuer, 1)
  await node.builder.build(targetOf(ca, randomUUID()))
  const second = await remembered()
  expect(second.lists).toBeGreaterThan(first.lists)
  for (const table of tables) {
    await place.sql(`DELETE FROM ${table}`)
    await place.sql(`INSERT INTO ${table} SELECT * FROM old_${table}`)
  }
  await expect(custody.cluster.anchor()).rejects.toThrow(`the set ${crlSet} is at change`)
})
