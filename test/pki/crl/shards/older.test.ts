import { expect, test } from 'vitest'
import { groupsOf } from '../../../../src/engines/pki/publication/groups.ts'
import { none } from '../../../keys/support.ts'
import { createMount, workerAt } from '../mounts.ts'
import { useWorker } from '../worker.ts'
import { revoke, serialsOf } from '../world.ts'
import { oldBuild, placesOf, setOf, shardsOut } from './world.ts'

/** During an upgrade, workers that do not know shards build complete lists too, and leave the shards as they are. */

const worker = useWorker('crlshardsolder')

test('a revocation that they have listed comes to its shard with the next list', async () => {
  await worker.build({ shards: [setOf(4)] })
  const [first] = await worker.revoke(1)
  await oldBuild(worker, 4)
  const [second] = await worker.revoke(1)
  await worker.build({ shards: [setOf(4)], lacking: true, covering: { site: 'default', seq: 2 } })
  expect((await shardsOut(worker, 4)).flatMap(({ serials }) => serials).toSorted()).toEqual(
    [first?.serial, second?.serial].toSorted(),
  )
})

test('a revocation that waits for its shard is not answered by their list', async () => {
  await worker.build({ shards: [setOf(4)] })
  const [row] = await worker.revoke(1)
  await oldBuild(worker, 4)
  await worker.build({ shards: [setOf(4)], lacking: true, covering: { site: 'default', seq: 1 } })
  const found = await shardsOut(worker, 4)
  expect(found.map(({ serials }) => serials.length)).toEqual(placesOf([row], 4))
})

test('a list of our own to whose shards nothing came is not taken for theirs', async () => {
  await worker.build({ shards: [setOf(4)] })
  await worker.build({ shards: [setOf(4)], lacking: true })
  await worker.build({ shards: [setOf(4)], lacking: true })
  expect((await shardsOut(worker, 4)).map(({ number }) => number)).toEqual([3, 1, 1, 1])
  const [row] = await worker.revoke(1)
  await worker.build({ shards: [setOf(4)], lacking: true })
  const place = placesOf([row], 4).indexOf(1)
  const expected = [3, 1, 1, 1].map((number, index) => (index === place ? 4 : number))
  expect((await shardsOut(worker, 4)).map(({ number }) => number)).toEqual(expected)
})

test('once a minute the shards follow a list of theirs', async () => {
  const { cluster } = worker
  const site = workerAt(cluster)
  const point = { shards: 4, issuer: '', site: '', url: 'http://crl.example/4/{{shard}}' }
  const mount = await createMount(cluster, [site], { settings: { shards: 4, points: [point] } })
  Object.assign(worker, { ca: mount.ca, mount: mount.mount })
  await site.upkeep.runLocal(none)
  const rows = await revoke(site.database, mount.ca.crlIssuer, 6)
  await oldBuild(worker, 4)
  const authority = await site.authorities.of({ uuid: mount.mount })
  const [group] = groupsOf(authority).values()
  if (group === undefined) throw new Error('the mount has an issuer')
  expect((await site.crls.shards(authority, group, 'local')).filter((list) => list !== undefined)).toHaveLength(0)
  await site.upkeep.runLocal(none)
  expect((await shardsOut(worker, 4)).flatMap(({ serials }) => serials).toSorted()).toEqual(serialsOf(rows).toSorted())
})
