import { randomInt, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { RevocationRow } from '../../../../src/engines/pki/certificates/tables.ts'
import type { Scope } from '../../../../src/engines/pki/crl/tables.ts'
import { MovableClock } from '../../../auth/world.ts'
import { type Cluster, Place, useCluster } from '../../../keys/support.ts'
import { type BuilderNode, createCa, createSet, hour, nodeAt, read, revoke, targetOf } from '../world.ts'

const clock = new MovableClock()
let cluster: Cluster
let nodes: readonly [BuilderNode, BuilderNode]
useCluster('crlrepeatedraces', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
  const { database } = await Place.at(begun.place.url)
  database.useMac(begun.custody.macs.rowMac)
  await database.start()
  nodes = [nodeAt(begun.place.database, { clock }), nodeAt(database, { site: 'abroad', clock })]
})

test('two sites revoke the same serial numbers, build and tidy at once: each list has those that have not ended, once', async () => {
  const ca = await createCa(cluster)
  const mount = randomUUID()
  const serials = Array.from({ length: 6 }, (_, index) => `5${index}`.padEnd(40, 'b'))
  const rows: RevocationRow[] = []
  const listOf = async ({ builder, whole }: BuilderNode, scope: Scope) =>
    read(await whole((await builder.build(targetOf(ca, mount, { scope }))).complete), ca).serials.toSorted()
  for (let round = 0; round < 4; round++) {
    const works = nodes.flatMap((node) =>
      Array.from({ length: 3 }, async () => {
        const { database, builder, site } = node
        const notAfter = clock.wall() + randomInt(1, 8) * hour
        const mine = serials.filter(() => randomInt(2) === 0)
        rows.push(
          ...(await revoke(database, ca.crlIssuer, mine.length, {
            site,
            notAfter,
            mount: randomUUID(),
            serials: mine,
          })),
        )
        await listOf(node, randomInt(3) === 0 ? 'unified' : 'local')
        await builder.removeEntries(ca.crlIssuer, site, () => true)
      }),
    )
    await Promise.all(works)
    const lists = [await listOf(nodes[0], 'local'), await listOf(nodes[1], 'local'), await listOf(nodes[1], 'unified')]
    for (const [index, which] of [['default'], ['abroad'], ['default', 'abroad']].entries()) {
      const list = lists[index] ?? []
      const valid = rows.filter(({ site, notAfter }) => which.includes(site) && notAfter > clock.wall())
      expect(new Set(list).size).toBe(list.length)
      expect(valid.map(({ serial }) => serial).filter((serial) => !list.includes(serial))).toEqual([])
    }
    clock.ahead += randomInt(1, 4) * hour
  }
  clock.ahead += 10 * hour
  for (const node of nodes) await listOf(node, 'local')
  await listOf(nodes[0], 'unified')
  for (const { builder, site } of nodes) await builder.removeEntries(ca.crlIssuer, site, () => true)
  for (const node of nodes) expect(await listOf(node, 'local')).toEqual([])
  expect(await listOf(nodes[0], 'unified')).toEqual([])
  expect(nodes.flatMap(({ alarms }) => alarms)).toEqual([])
}, 120_000)
