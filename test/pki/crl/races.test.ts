import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Cluster, Place, useCluster } from '../../keys/support.ts'
import { type BuilderNode, createCa, createSet, hour, nodeAt, read, revoke, serialsOf, targetOf } from './world.ts'

let cluster: Cluster
let nodes: readonly BuilderNode[]
useCluster('crlraces', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
  const { database } = await Place.at(begun.place.url)
  database.useMac(begun.custody.macs.rowMac)
  await database.start()
  nodes = [nodeAt(begun.place.database), nodeAt(database)]
})

test('two workers revoke and build at once: each acknowledged revocation is on the list that it waited for', async () => {
  const ca = await createCa(cluster)
  const mount = randomUUID()
  const numbers = new Set<number>()
  const rows = await Promise.all(
    Array.from({ length: 30 }, async (_, index) => {
      const node = nodes[index % 2] as BuilderNode
      const [row] = await revoke(node.database, ca.crlIssuer, 1)
      const covering = { site: 'default', seq: row?.seq ?? 0 }
      const { complete } = await node.builder.build(targetOf(ca, mount, index % 3 === 0 ? {} : { covering }))
      numbers.add(complete.number)
      const list = read(await node.whole(complete), ca)
      expect(list.serials).toContain(row?.serial)
      return row === undefined ? [] : [row]
    }),
  )
  expect(numbers.size).toBeLessThan(30)
  const [node] = nodes
  if (node === undefined) throw new Error('no node')
  const { complete } = await node.builder.build(targetOf(ca, mount))
  expect(read(await node.whole(complete), ca).serials.toSorted()).toEqual(serialsOf(rows.flat()).toSorted())
  expect(nodes.flatMap(({ alarms }) => alarms)).toEqual([])
})

test('a list that covers a revocation is as good as a new one', async () => {
  const [node, other] = nodes as [BuilderNode, BuilderNode]
  const ca = await createCa(cluster)
  const mount = randomUUID()
  const [row] = await revoke(node.database, ca.crlIssuer, 1)
  const covering = { site: 'default', seq: row?.seq ?? 0 }
  const first = await node.builder.build(targetOf(ca, mount, { covering }))
  const second = await other.builder.build(targetOf(ca, mount, { covering }))
  expect(second.complete.number).toBe(first.complete.number)
  const forced = await other.builder.build(targetOf(ca, mount))
  expect(forced.complete.number).toBe(first.complete.number + 1)
})

test('tidy, revocations and builds of two workers at once: nothing is lost, nothing comes back', async () => {
  const [node, other] = nodes as [BuilderNode, BuilderNode]
  const ca = await createCa(cluster)
  const mount = randomUUID()
  await revoke(node.database, ca.crlIssuer, 200, { notAfter: Date.now() - hour })
  await node.builder.build(targetOf(ca, mount))
  const kept = [...(await revoke(node.database, ca.crlIssuer, 50))]
  const revoking = Array.from({ length: 20 }, async (_, index) => {
    const { database, builder } = nodes[index % 2] as BuilderNode
    kept.push(...(await revoke(database, ca.crlIssuer, 3)))
    await builder.build(targetOf(ca, mount))
  })
  const tidying = [node, other, node].map(({ builder }) => builder.removeEntries(ca.crlIssuer, 'default', () => true))
  await Promise.all([...revoking, ...tidying])
  await node.builder.removeEntries(ca.crlIssuer, 'default', () => true)
  const { complete } = await other.builder.build(targetOf(ca, mount))
  expect(read(await other.whole(complete), ca).serials.toSorted()).toEqual(serialsOf(kept).toSorted())
  expect(nodes.flatMap(({ alarms }) => alarms)).toEqual([])
  for (const row of [kept[0], kept.at(-1)])
    expect(await other.listed.find(ca.crlIssuer, row?.serial ?? '')).toBeDefined()
})

test('lists of many mounts come out together and each is right', async () => {
  const [node] = nodes as [BuilderNode]
  const cas = await Promise.all(Array.from({ length: 6 }, () => createCa(cluster)))
  const mount = randomUUID()
  const rows = await Promise.all(cas.map((ca) => revoke(node.database, ca.crlIssuer, 5)))
  const built = await Promise.all(cas.map((ca) => node.builder.build(targetOf(ca, mount))))
  for (const [index, ca] of cas.entries()) {
    const complete = built[index]?.complete
    if (complete === undefined) throw new Error('not built')
    expect(read(await node.whole(complete), ca).serials).toEqual(serialsOf(rows[index] ?? []))
  }
})
