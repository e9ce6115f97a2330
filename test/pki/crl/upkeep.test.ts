import { describe, expect, test, vi } from 'vitest'
import { manifestsTable } from '../../../src/engines/pki/crl/tables.ts'
import { type Cluster, none, useCluster } from '../../keys/support.ts'
import * as mounts from './mounts.ts'
import { type Ca, createSet, hour, revoke, serialsOf } from './world.ts'

let cluster: Cluster
useCluster('crlupkeep', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
})

const workerAt = (site?: string) => mounts.workerAt(cluster, site)
const createMount = (workers: readonly mounts.Worker[], wanted?: Parameters<typeof mounts.createMount>[2]) =>
  mounts.createMount(cluster, workers, wanted)

describe('once a minute', () => {
  test('a list that is missing is made, and nothing more while there is nothing to do', async () => {
    const worker = workerAt()
    const { list } = await createMount([worker])
    expect(await list(worker)).toBeUndefined()
    for (let round = 0; round < 2; round++) await worker.upkeep.runLocal(none)
    expect(await list(worker)).toMatchObject({ number: 1, serials: [] })
  })

  test('a list is made before it expires, with auto_rebuild and without', async () => {
    const worker = workerAt()
    const mounts = [await createMount([worker]), await createMount([worker], { settings: { autoRebuild: true } })]
    await worker.upkeep.runLocal(none)
    worker.clock.ahead = 59 * hour
    await worker.upkeep.runLocal(none)
    for (const { list } of mounts) expect(await list(worker)).toMatchObject({ number: 1 })
    worker.clock.ahead = 61 * hour
    await worker.upkeep.runLocal(none)
    for (const { list } of mounts) expect(await list(worker)).toMatchObject({ number: 2 })
  })

  test('without auto_rebuild a list gets what another mount has revoked of the same CA', async () => {
    const worker = workerAt()
    const { ca, list } = await createMount([worker])
    const twin = await createMount([worker], { ca })
    await worker.upkeep.runLocal(none)
    const rows = await revoke(worker.database, ca.crlIssuer, 2)
    await worker.upkeep.runLocal(none)
    expect((await list(worker))?.serials).toEqual(serialsOf(rows))
    expect((await twin.list(worker))?.serials).toEqual(serialsOf(rows))
  })

  test('a delta is made after its interval, if something was revoked; the complete list waits', async () => {
    const worker = workerAt()
    const { ca, list } = await createMount([worker], { settings: { autoRebuild: true, enableDelta: true } })
    await worker.upkeep.runLocal(none)
    const rows = await revoke(worker.database, ca.crlIssuer, 2)
    await worker.upkeep.runLocal(none)
    expect(await list(worker, 'delta')).toMatchObject({ number: 1, serials: [] })
    worker.clock.ahead = hour / 3
    await worker.upkeep.runLocal(none)
    expect(await list(worker, 'delta')).toMatchObject({ number: 2, base: 1, serials: serialsOf(rows) })
    expect(await list(worker)).toMatchObject({ number: 1, serials: [] })
    worker.clock.ahead = hour
    await worker.upkeep.runLocal(none)
    expect(await list(worker, 'delta')).toMatchObject({ number: 2 })
  })

  test('revocations are taken into segments while their list waits', async () => {
    const worker = workerAt()
    const { ca } = await createMount([worker], { settings: { autoRebuild: true } })
    await worker.upkeep.runLocal(none)
    await revoke(worker.database, ca.crlIssuer, 2)
    await worker.upkeep.runLocal(none)
    const { crlIssuer } = ca
    const manifest = await worker.database.read((q) => worker.database.table(manifestsTable).find(q, { crlIssuer }))
    expect(manifest?.absorbed).toEqual({ default: 2 })
  })

  test('a CA that cannot sign holds up no other, and one that may not sign is left alone', async () => {
    const worker = workerAt()
    const broken = await createMount([worker])
    worker.cas.delete(broken.key.id)
    const frozen = await createMount([worker], { usages: ['read-only'] })
    const others = [await createMount([worker]), await createMount([worker])]
    await worker.upkeep.runLocal(none)
    for (const { list } of [broken, frozen]) expect(await list(worker)).toBeUndefined()
    for (const { list } of others) expect(await list(worker)).toMatchObject({ number: 1 })
  })

  test('a list that was removed in SQL is made anew, with an alarm', async () => {
    const worker = workerAt()
    const { mount, list } = await createMount([worker])
    await worker.upkeep.runLocal(none)
    await cluster.place.sql('DELETE FROM pki_crls WHERE mount = ?', [mount])
    const other = workerAt()
    other.cas.set([...worker.cas.keys()][0] ?? '', [...worker.cas.values()][0] as Ca)
    await other.upkeep.runLocal(none)
    expect(other.alarms.filter(({ text }) => text.includes('it is gone')).length).toBeGreaterThan(0)
    expect(await list(other)).toMatchObject({ number: 2 })
  })

  test('the unified list has what every site has revoked, whoever builds it', async () => {
    const [north, south] = [workerAt('north'), workerAt('south')]
    const settings = { autoRebuild: true, unifiedCrl: true }
    const { ca, list } = await createMount([north, south], { settings })
    const first = await revoke(north.database, ca.crlIssuer, 2, { site: 'north' })
    const second = await revoke(north.database, ca.crlIssuer, 1, { site: 'south' })
    await north.upkeep.runLocal(none)
    await south.upkeep.runUnified(none)
    for (const worker of [north, south]) {
      const unified = await list(worker, 'complete', 'unified')
      expect(unified?.serials.toSorted()).toEqual(serialsOf([...first, ...second]).toSorted())
    }
    expect((await list(north))?.serials).toEqual(serialsOf(first))
    expect(await list(south)).toBeUndefined()
    await south.upkeep.runLocal(none)
    expect((await list(south))?.serials).toEqual(serialsOf(second))
  })
})

test('a list whose segment was edited is made anew when it is asked for', async () => {
  const worker = workerAt()
  const { ca, list } = await createMount([worker])
  const rows = await revoke(worker.database, ca.crlIssuer, 3)
  await worker.upkeep.runLocal(none)
  await cluster.place.sql('UPDATE pki_segments SET marks = ? WHERE crl_issuer = ?', [
    Buffer.alloc(33),
    Buffer.from(ca.crlIssuer, 'hex'),
  ])
  await expect(list(worker)).rejects.toMatchObject({ status: 503 })
  await vi.waitFor(async () => expect((await list(worker))?.serials).toEqual(serialsOf(rows)), 10_000)
  expect(worker.alarms.map(({ text }) => text)).toEqual([
    expect.stringMatching(
      /^a published revocation list was changed in the database: pki_segments .*the seal is broken$/,
    ),
    expect.stringMatching(/^entries of revocation lists were changed in the database: pki_segments /),
  ])
})

test('a ledger that was edited in SQL keeps no list from being made', async () => {
  const worker = workerAt()
  const [edited, other] = [await createMount([worker]), await createMount([worker])]
  await worker.upkeep.runLocal(none)
  const rows = await revoke(worker.database, edited.ca.crlIssuer, 2)
  const more = await revoke(worker.database, other.ca.crlIssuer, 1)
  const name = Buffer.from(edited.ca.crlIssuer, 'hex')
  await cluster.place.sql('UPDATE pki_ledgers SET last = 0 WHERE crl_issuer = ?', [name])
  await worker.upkeep.runLocal(none)
  expect((await edited.list(worker))?.serials).toEqual(serialsOf(rows))
  expect((await other.list(worker))?.serials).toEqual(serialsOf(more))
})
