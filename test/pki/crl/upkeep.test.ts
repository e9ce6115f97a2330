import { hash, randomUUID } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { Authorities, createAuthority } from '../../../src/engines/pki/authority/authorities.ts'
import { type IssuerUsage, issuersTable, issuerUsages, keysTable } from '../../../src/engines/pki/authority/tables.ts'
import { type CrlSettings, defaultCrlSettings } from '../../../src/engines/pki/crl/settings.ts'
import { manifestsTable } from '../../../src/engines/pki/crl/tables.ts'
import { Crls } from '../../../src/engines/pki/publication/crls.ts'
import { Upkeep } from '../../../src/engines/pki/publication/upkeep.ts'
import { mountsTable } from '../../../src/request/mounts/mount.ts'
import { MovableClock } from '../../auth/world.ts'
import { type Cluster, log, none, useCluster } from '../../keys/support.ts'
import { type Ca, createCa, createSet, hour, nodeAt, read, revoke, serialsOf } from './world.ts'

let cluster: Cluster
useCluster('crlupkeep', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
})

/** One worker of a site with its own clock, which signs for the CAs that it was given. */
function workerAt(site = 'default') {
  const { database } = cluster.place
  const node = nodeAt(database, { site, clock: new MovableClock() })
  const { builder, clock } = node
  const authorities = new Authorities({ database, clock, site })
  const cas = new Map<string, Ca>()
  const of = ({ id }: { readonly id: string }) => {
    const ca = cas.get(id)
    if (ca === undefined) throw new Error('the key of this CA is away')
    return ca.signer
  }
  const options = { database, clock, log, authorities, builder, site, signers: { of } }
  const crls = new Crls(options)
  return { ...node, authorities, cas, crls, upkeep: new Upkeep({ ...options, crls }) }
}
type Worker = ReturnType<typeof workerAt>

interface Wanted {
  readonly settings?: Partial<CrlSettings>
  readonly usages?: readonly IssuerUsage[]
  readonly ca?: Ca
}

/** A mount with one CA, whose key these workers have. */
async function createMount(
  workers: readonly Worker[],
  { settings = {}, usages = issuerUsages, ca: given }: Wanted = {},
) {
  const [worker] = workers
  if (worker === undefined) throw new Error('a mount has a worker')
  const { database, authorities, clock } = worker
  const ca = given ?? (await createCa(cluster))
  const mount = randomUUID()
  const { certificate } = ca
  await database.transaction(async (tx) => {
    await database.table(mountsTable).insert(tx, {
      ...{ id: mount, path: `${mount}/`, type: 'pki', description: '', accessor: mount, config: {} },
      ...{ local: false, sealWrap: false, touched: true, createdAt: clock.wall() },
    })
    await createAuthority({ database, clock }, tx, mount)
  })
  const { result: key } = await authorities.change({ uuid: mount }, async (tx) => {
    const fingerprint = hash('sha256', certificate.spki, 'buffer')
    const key = await database.table(keysTable).insert(tx, {
      ...{ mount, type: 'ec', bits: 256, createdAt: clock.wall(), material: 'm', fingerprint },
    })
    const issuer = await database.table(issuersTable).insert(tx, {
      ...{ mount, keyId: key.id, certificate: certificate.der, leafNotAfterBehavior: 'err', usages },
      ...{ fingerprint: hash('sha256', certificate.der, 'buffer'), revocationSignatureAlgorithm: '' },
      ...{ changedAt: clock.wall(), createdAt: clock.wall() },
    })
    const crl = { ...defaultCrlSettings, ...settings }
    return { settings: { defaultIssuer: issuer.id, crl }, result: key }
  })
  for (const { cas } of workers) cas.set(key.id, ca)

  /** A list as this worker serves it; undefined while there is none. */
  async function list(at: Worker, kind: 'complete' | 'delta' = 'complete', scope: 'local' | 'unified' = 'local') {
    const authority = await at.authorities.of({ uuid: mount })
    const issuer = authority.defaultIssuer
    if (issuer === undefined) throw new Error('the mount has an issuer')
    const found = await at.crls.find({ uuid: mount }, authority, issuer, { kind, scope })
    return found && read((await found.der()) as Buffer, ca)
  }
  return { mount, ca, key, list }
}

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
  await expect(list(worker)).rejects.toThrow('the seal is broken')
  await vi.waitFor(async () => expect((await list(worker))?.serials).toEqual(serialsOf(rows)), 10_000)
  expect(worker.alarms).toHaveLength(1)
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
