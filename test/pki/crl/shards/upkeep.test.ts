import { describe, expect, test, vi } from 'vitest'
import { clustersTable } from '../../../../src/engines/pki/authority/tables.ts'
import type { CrlSettings, ShardPoint } from '../../../../src/engines/pki/crl/settings.ts'
import { shardNumber, shardsOf } from '../../../../src/engines/pki/crl/shards/shard.ts'
import type { Scope } from '../../../../src/engines/pki/crl/tables.ts'
import { groupsOf } from '../../../../src/engines/pki/publication/groups.ts'
import { ListHealth } from '../../../../src/engines/pki/publication/health.ts'
import { type Cluster, none, useCluster } from '../../../keys/support.ts'
import { createMount, type Worker, workerAt } from '../mounts.ts'
import { createSet, hour, revoke, serialsOf } from '../world.ts'

let cluster: Cluster
useCluster('crlshardupkeep', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
})

const pointAt = (url: string): ShardPoint => ({ shards: 2, issuer: '', site: '', url })
const settings = { shards: 2, points: [pointAt('http://crl.example/{{shard}}')] }

type Mount = Awaited<ReturnType<typeof createMount>>

const make = (workers: readonly Worker[], more: Partial<CrlSettings> = {}) =>
  createMount(cluster, workers, { settings: { ...settings, ...more } })
const shards = ({ list }: Mount, worker: Worker, scope: Scope = 'local') =>
  Promise.all(shardsOf(2).map((portion) => list(worker, 'complete', scope, portion)))
const numbers = async (mount: Mount, worker: Worker) => (await shards(mount, worker)).map((shard) => shard?.number)
const serials = async (mount: Mount, worker: Worker, scope?: Scope) =>
  (await shards(mount, worker, scope)).flatMap((shard) => shard?.serials ?? []).toSorted()

/** Changes the settings of lists without a rebuild. */
const change = (worker: Worker, { mount }: Mount, changes: Partial<CrlSettings>) =>
  worker.authorities.change({ uuid: mount }, async (_tx, before) => {
    const { crl } = before.settings
    if (crl === null) throw new Error('the mount has settings')
    return { settings: { crl: { ...crl, ...changes } }, result: undefined }
  })

describe('once a minute', () => {
  test('shards that are missing are made, and nothing more while there is nothing to do', async () => {
    const worker = workerAt(cluster)
    const mount = await createMount(cluster, [worker])
    await worker.upkeep.runLocal(none)
    expect(await numbers(mount, worker)).toEqual([undefined, undefined])
    await change(worker, mount, settings)
    for (let round = 0; round < 2; round++) await worker.upkeep.runLocal(none)
    expect(await numbers(mount, worker)).toEqual([2, 2])
  })

  test('they are made before they expire, though the complete list is young', async () => {
    const worker = workerAt(cluster)
    const mount = await make([worker])
    await worker.upkeep.runLocal(none)
    worker.clock.ahead = 30 * hour
    const [row] = await revoke(worker.database, mount.ca.crlIssuer, 1)
    const place = shardNumber(Buffer.from(row?.serial ?? '', 'hex'), 2)
    await worker.upkeep.runLocal(none)
    expect(await mount.list(worker)).toMatchObject({ number: 2 })
    expect(await numbers(mount, worker)).toEqual([1, 2].map((number) => (number === place ? 2 : 1)))
    worker.clock.ahead = 61 * hour
    await worker.upkeep.runLocal(none)
    expect(await numbers(mount, worker)).toEqual([3, 3])
    expect(await serials(mount, worker)).toEqual([row?.serial])
  })

  test('one that was removed in SQL is made anew, with an alarm', async () => {
    const worker = workerAt(cluster)
    const mount = await make([worker])
    const rows = await revoke(worker.database, mount.ca.crlIssuer, 8)
    await worker.upkeep.runLocal(none)
    await cluster.place.sql('DELETE FROM pki_crls WHERE mount = ? AND shards = 2 AND shard = 2', [mount.mount])
    await worker.upkeep.runLocal(none)
    expect(await serials(mount, worker)).toEqual(serialsOf(rows).toSorted())
    expect(await numbers(mount, worker)).toEqual([1, 2])
    expect(worker.alarms.map(({ text }) => text)).toEqual([expect.stringContaining('it is gone')])
  })

  test('they name distribution points that came while nobody could build', async () => {
    const worker = workerAt(cluster)
    const mount = await make([worker])
    await worker.upkeep.runLocal(none)
    await change(worker, mount, { points: [...settings.points, pointAt('http://new.example/{{shard}}')] })
    await worker.upkeep.runLocal(none)
    expect((await shards(mount, worker)).map((shard) => shard?.points)).toEqual([
      ['http://crl.example/1-of-2', 'http://new.example/1-of-2'],
      ['http://crl.example/2-of-2', 'http://new.example/2-of-2'],
    ])
  })

  test('with auto_rebuild they wait for the complete list', async () => {
    const worker = workerAt(cluster)
    const mount = await make([worker], { autoRebuild: true, enableDelta: true })
    await worker.upkeep.runLocal(none)
    const rows = await revoke(worker.database, mount.ca.crlIssuer, 4)
    worker.clock.ahead = hour
    await worker.upkeep.runLocal(none)
    expect((await mount.list(worker, 'delta'))?.serials).toEqual(serialsOf(rows))
    expect(await numbers(mount, worker)).toEqual([1, 1])
    worker.clock.ahead = 61 * hour
    await worker.upkeep.runLocal(none)
    expect(await serials(mount, worker)).toEqual(serialsOf(rows).toSorted())
  })
})

test('each site has shards of its own; those of all sites name the distribution points of all', async () => {
  const [north, south] = [workerAt(cluster, 'north'), workerAt(cluster, 'south')]
  const mount = await make([north, south], {
    ...{ autoRebuild: true, unifiedCrl: true },
    points: [pointAt('{{cluster_path}}/crl/shard/{{shard}}')],
  })
  for (const { authorities, site, database } of [north, south]) {
    await authorities.change({ uuid: mount.mount }, async (tx) => {
      const path = `http://${site}.example/pki`
      await database.table(clustersTable).insert(tx, { mount: mount.mount, site, path, aiaPath: '' })
      return { result: undefined }
    })
  }
  const { crlIssuer } = mount.ca
  const [first, second] = [
    await revoke(north.database, crlIssuer, 5, { site: 'north' }),
    await revoke(south.database, crlIssuer, 5, { site: 'south' }),
  ]
  for (const { upkeep } of [north, south]) await upkeep.runLocal(none)
  await south.upkeep.runUnified(none)
  expect(await serials(mount, north)).toEqual(serialsOf(first).toSorted())
  expect(await serials(mount, south)).toEqual(serialsOf(second).toSorted())
  const points = async (worker: Worker, scope: Scope) => (await shards(mount, worker, scope)).map((one) => one?.points)
  const at = (site: string, number: number) => `http://${site}.example/pki/crl/shard/${number}-of-2`
  expect(await points(north, 'local')).toEqual([[at('north', 1)], [at('north', 2)]])
  expect(await points(south, 'local')).toEqual([[at('south', 1)], [at('south', 2)]])
  for (const worker of [north, south]) {
    expect(await serials(mount, worker, 'unified')).toEqual(serialsOf([...first, ...second]).toSorted())
    expect(await points(worker, 'unified')).toEqual([1, 2].map((number) => [at('north', number), at('south', number)]))
  }
})

test('health counts shards that are missing or late, and tells the list that expires first', async () => {
  const worker = workerAt(cluster)
  const mount = await make([worker])
  const { clock, upkeep } = worker
  const health = async () => {
    const found = await new ListHealth({ ...worker }).summary()
    return [found.lists_missing, found.lists_expiring]
  }
  const [missing = 0, expiring = 0] = (await health()) as number[]
  await upkeep.runLocal(none)
  expect(await health()).toEqual([missing - 3, expiring])
  await cluster.place.sql('DELETE FROM pki_crls WHERE mount = ? AND shards = 2 AND shard = 2', [mount.mount])
  expect(await health()).toEqual([missing - 2, expiring])
  await upkeep.runLocal(none)
  clock.ahead = 40 * hour
  // The complete list and the shard of one serial number are young, the other shard is not.
  await revoke(worker.database, mount.ca.crlIssuer, 1)
  await upkeep.runLocal(none)
  const path = `${mount.mount}/`
  const told = (await new ListHealth({ ...worker }).nextUpdates()).filter(({ labels }) => labels.mount === path)
  expect(told).toHaveLength(1)
  expect((told[0]?.value ?? 0) / 3600).toBeCloseTo(32, 0)
  clock.ahead = 71 * hour
  expect(((await health()) as number[])[1]).toBeGreaterThan(expiring)
})

describe('health and metric', () => {
  const toldOf = async (worker: Worker, mount: string) =>
    (await new ListHealth({ ...worker }).nextUpdates()).filter(({ labels }) => labels.mount === `${mount}/`)

  test('tell of no unified list that is not served any more', async () => {
    const worker = workerAt(cluster)
    const mount = await make([worker], { autoRebuild: true, unifiedCrl: true })
    await worker.upkeep.runLocal(none)
    await worker.upkeep.runUnified(none)
    await change(worker, mount, { unifiedCrl: false })
    worker.clock.ahead = 80 * hour
    expect((await toldOf(worker, mount.mount))[0]?.value).toBeLessThan(0)
    await worker.upkeep.runLocal(none)
    expect((await toldOf(worker, mount.mount))[0]?.value).toBeGreaterThan(0)
  })

  test('an authority whose row was edited hides no other, and counts as a missing list', async () => {
    const worker = workerAt(cluster)
    const [edited, sound] = [await make([worker]), await make([worker])]
    await worker.upkeep.runLocal(none)
    const before = await new ListHealth({ ...worker }).summary()
    await cluster.place.sql('UPDATE pki_authorities SET tidy = ? WHERE mount = ?', ['{}', edited.mount])
    const late = workerAt(cluster)
    expect((await toldOf(late, sound.mount))[0]?.value).toBeGreaterThan(0)
    expect(await toldOf(late, edited.mount)).toEqual([])
    expect((await new ListHealth({ ...late }).summary()).lists_missing).toBe(before.lists_missing + 1)
  })

  test('issuers that may not answer OCSP are counted', async () => {
    const worker = workerAt(cluster)
    const before = (await new ListHealth({ ...worker }).summary()).issuers_without_ocsp_signer
    await createMount(cluster, [worker], { usages: ['crl-signing', 'issuing-certificates'] })
    expect((await new ListHealth({ ...worker }).summary()).issuers_without_ocsp_signer).toBe(before + 1)
  })
})

test('a shard whose segment was edited is made anew when it is asked for, with an alarm', async () => {
  const worker = workerAt(cluster)
  const mount = await make([worker])
  const rows = await revoke(worker.database, mount.ca.crlIssuer, 8)
  await worker.upkeep.runLocal(none)
  const authority = await worker.authorities.of({ uuid: mount.mount })
  const [group] = groupsOf(authority).values()
  if (group === undefined) throw new Error('the mount has an issuer')
  const [first] = await worker.crls.shards(authority, group, 'local')
  await cluster.place.sql('UPDATE pki_segments SET entries = SUBSTRING(entries, 40) WHERE id = ?', [
    first?.parts[0]?.segment ?? '',
  ])
  await expect(shards(mount, worker)).rejects.toMatchObject({ status: 503 })
  await vi.waitFor(async () => expect(await serials(mount, worker)).toEqual(serialsOf(rows).toSorted()), 10_000)
  expect(worker.alarms.map(({ text }) => text)).toEqual([
    expect.stringMatching(
      /^a published revocation list was changed in the database: pki_segments .*the seal is broken$/,
    ),
  ])
})
