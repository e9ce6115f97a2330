import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { revocationTable } from '../../../src/engines/pki/certificates/tables.ts'
import { defaultCrlSettings } from '../../../src/engines/pki/crl/settings.ts'
import { queueTable } from '../../../src/engines/pki/revocation/tables.ts'
import { EndedRevocations } from '../../../src/engines/pki/tidy/revoked.ts'
import { defaultOrder } from '../../../src/engines/pki/tidy/settings.ts'
import { runJob } from '../../auth/world.ts'
import { addIssuer, createTidyWorld, crlIssuerOf, ended, fresh, hours, revoke, type TidyWorld, tidy } from './world.ts'

let world: TidyWorld
beforeAll(async () => {
  world = await createTidyWorld(2)
})
afterAll(() => world?.[Symbol.asyncDispose]())

/** Entries of lists are kept by number, so that each test has its own numbers. */
let last = 0
const numbers = (count: number): { first: number } => {
  last += count
  return { first: last - count + 1 }
}

async function authority() {
  const mount = await world.mount()
  return { mount, issuer: await addIssuer(world.node, mount, world.clock.wall() + 9000 * hours) }
}

const recorded = async (mount: string): Promise<string[]> => {
  const rows = await world.sql('SELECT LOWER(HEX(serial)) AS serial FROM pki_revocations WHERE mount = ?', [mount])
  return rows.map(({ serial }) => String(serial)).toSorted()
}

describe('tidy_revoked_certs', () => {
  test('removes revocations of ended certificates with their entries and certificates, and no others', async () => {
    const { mount, issuer } = await authority()
    const { node, clock } = world
    const old = Array.from({ length: 250 }, (_, n) => fresh(mount, issuer, clock.wall() - (n + 80) * hours))
    const living = fresh(mount, issuer, clock.wall() + hours)
    const all = [...old, living]
    await Promise.all(all.map((one) => node.certificates.store(one)))
    await revoke(node, all, numbers(all.length))
    const [first] = old
    if (first === undefined) throw new Error('nothing was revoked')
    for (const one of world.nodes) expect((await one.certificates.find(first))?.revocation).toBeDefined()
    const run = await tidy(node, mount, { revokedCerts: true })
    expect(run).toMatchObject({ state: 'Finished', error: null, carried: false })
    expect(run.counts).toMatchObject({ revokedCertDeleted: 250, certStoreDeleted: 0 })
    expect(await recorded(mount)).toEqual([living.serial])
    expect(await node.lists.left(mount)).toEqual([last])
    // The segments were read once for all pages.
    expect(node.lists.removals.filter((name) => name.startsWith(crlIssuerOf(mount)))).toHaveLength(1)
    expect([await node.certificates.count(mount), await node.certificates.countRevoked(mount)]).toEqual([1, 1])
    for (const one of world.nodes) expect(await one.certificates.find(first)).toBeUndefined()
    // Once, after the revocations were removed: no list had to carry them once more.
    expect(node.lists.rebuilt.filter((uuid) => uuid === mount)).toHaveLength(1)
  })

  test('has lists built that carry an entry once more before it leaves, unless they are built by themselves', async () => {
    for (const [autoRebuild, left] of [
      [false, 0],
      [true, 1],
    ] as const) {
      const { mount, issuer } = await authority()
      const { node, clock } = world
      const crl = { ...defaultCrlSettings, autoRebuild }
      await node.authorities.change({ uuid: mount }, async () => ({ settings: { crl }, result: undefined }))
      const one = fresh(mount, issuer, clock.wall() - 80 * hours)
      await revoke(node, [one], { ...numbers(1), carried: false })
      const run = await tidy(node, mount, { revokedCerts: true })
      expect([run.counts.revokedCertDeleted, (await recorded(mount)).length]).toEqual([1 - left, left])
      expect(await node.lists.left(mount)).toHaveLength(left)
      expect(node.lists.rebuilt.includes(mount)).toBe(!autoRebuild)
    }
  })

  test('does not begin with tidy_cert_store, after which a revoked certificate is revoked still', async () => {
    const { mount, issuer } = await authority()
    const { node, clock } = world
    const one = fresh(mount, issuer, clock.wall() - 80 * hours)
    await node.certificates.store(one)
    await revoke(node, [one], numbers(1))
    expect((await tidy(node, mount, { certStore: true })).counts.certStoreDeleted).toBe(1)
    expect(await recorded(mount)).toEqual([one.serial])
    expect(await node.lists.left(mount)).toHaveLength(1)
    const both = await tidy(node, mount, { certStore: true, revokedCerts: true })
    expect(both.counts).toMatchObject({ certStoreDeleted: 0, revokedCertDeleted: 1 })
  })

  test('leaves a certificate that ends later than the revocation of its serial number', async () => {
    const { mount, issuer } = await authority()
    const { node, clock } = world
    const first = fresh(mount, issuer, clock.wall() - 80 * hours)
    await revoke(node, [first], numbers(1))
    const serial = Buffer.from(first.serial, 'hex')
    await node.certificates.store(fresh(mount, issuer, clock.wall() + hours, { serial }))
    expect((await tidy(node, mount, { revokedCerts: true })).counts.revokedCertDeleted).toBe(1)
    expect(await recorded(mount)).toEqual([])
    expect(await node.certificates.count(mount)).toBe(1)
    expect(await node.certificates.find({ mount, serial: first.serial })).toMatchObject({ revocation: undefined })
  })

  test('removes revocations that never had a number, but not one that gets a number meanwhile', async () => {
    const { mount, issuer } = await authority()
    const { node, clock, bench } = world
    const [early, late] = [80, 79].map((n) => fresh(mount, issuer, clock.wall() - n * hours))
    if (early === undefined || late === undefined) throw new Error('nothing was revoked')
    await revoke(node, [early, late], { listed: false })
    const { database } = bench
    const table = database.table(revocationTable)
    // Between the page that tidy reads and the transaction that removes it.
    const associate = () =>
      database.transaction(async (tx) => {
        const row = await table.find(tx, { mount, serial: late.serial })
        if (row?.seq === null) await table.update(tx, row, { crlIssuer: crlIssuerOf(mount), seq: numbers(1).first })
      })
    const revocations = new EndedRevocations({ ...node, start: async () => true })
    const run = await node.tidying.runs.begin(mount, { ...defaultOrder, safetyBuffer: 1 }, false)
    if (run === undefined) throw new Error('no run')
    const place = {
      ...{ mount, run, cursor: null, checked: 0, total: 0, left: new Map(), signal: new AbortController().signal },
      claim: { job: '', fence: 0n },
    }
    const page = await revocations.next(place, { site: 'default', notAfter: 0, serial: '' })
    expect(page.leaving).toHaveLength(2)
    await associate()
    expect(await database.transaction((tx) => revocations.discard(tx, page.leaving))).toBe(1)
    expect(await recorded(mount)).toEqual([late.serial])
    expect(await node.certificates.countRevoked(mount)).toBe(1)
  })

  test('goes by the sealed end of a revocation: an edited one stays, and those behind it go', async () => {
    const { mount, issuer } = await authority()
    const { node, clock } = world
    const living = fresh(mount, issuer, clock.wall() + hours)
    const old = fresh(mount, issuer, clock.wall() - 80 * hours)
    await revoke(node, [living, old], numbers(2))
    await world.sql('UPDATE pki_revocations SET not_after = 1000 WHERE serial = ?', [Buffer.from(living.serial, 'hex')])
    const run = await tidy(node, mount, { revokedCerts: true })
    expect([run.state, run.counts.revokedCertDeleted]).toEqual(['Finished', 1])
    expect(await recorded(mount)).toEqual([living.serial])
  })

  test('removes nothing that has not ended, whatever the stored order contains', async () => {
    const { mount, issuer } = await authority()
    const { node, clock } = world
    const living = fresh(mount, issuer, clock.wall() + hours)
    await node.certificates.store(living)
    await revoke(node, [living], numbers(1))
    const run = await tidy(node, mount, { certStore: true, revokedCerts: true, safetyBuffer: -100_000 })
    expect(run.counts).toMatchObject({ certStoreDeleted: 0, revokedCertDeleted: 0 })
    expect(await recorded(mount)).toEqual([living.serial])
  })
})

test('tidy_revoked_cert_issuer_associations counts revocations whose issuer is not known', async () => {
  const { mount, issuer } = await authority()
  await revoke(world.node, [fresh(mount, issuer, world.clock.wall() + hours)], { listed: false })
  const run = await tidy(world.node, mount, { revokedCertIssuerAssociations: true })
  expect(run.counts.missingIssuerCert).toBe(1)
  expect(world.node.lists.rebuilt).toContain(mount)
})

describe('data of all sites', () => {
  test('tidy_revocation_queue removes old unconfirmed requests', async () => {
    const { mount } = await authority()
    const { database, tidying } = world.node
    const now = world.clock.wall()
    const request = (hoursAgo: number, confirmedBy: string | null = null) => ({
      ...{ mount, serial: randomUUID().replaceAll('-', ''), site: 'north', requestedAt: now - hoursAgo * hours },
      ...{ confirmedBy, confirmedAt: confirmedBy === null ? null : now },
    })
    const rows = [request(50), request(47), request(60, 'south'), request(49)]
    await database.transaction((tx) => database.table(queueTable).insertMany(tx, rows))
    const run = await tidy(world.node, mount, { revocationQueue: true })
    expect(run.counts.revocationQueueDeleted).toBe(2)
    const left = await world.sql('SELECT LOWER(HEX(serial)) AS serial FROM pki_revocation_queue WHERE mount = ?', [
      mount,
    ])
    expect(left.map(({ serial }) => serial).toSorted()).toEqual([rows[1]?.serial, rows[2]?.serial].toSorted())
    expect((await tidying.runs.find(mount))?.state).toBe('Finished')
  })

  test('tidy_cross_cluster_revoked_certs removes ended revocations of every other site, by one site at a time', async () => {
    const { mount, issuer } = await authority()
    const { node, clock } = world
    const [north, south] = [await world.join('north'), await world.join('south')]
    const old = () => fresh(mount, issuer, clock.wall() - 80 * hours)
    for (const one of [node, north, south]) {
      await revoke(one, [old(), old(), fresh(mount, issuer, clock.wall() + hours)], numbers(3))
    }
    // The lease may also be one that a dead process left.
    const held = await north.database.jobLease(`tidy of all sites of mount ${mount}`, 60)
    await node.tidying.begin(mount, { ...defaultOrder, safetyBuffer: 1, crossClusterRevokedCerts: true })
    const upkeep = () => runJob(node.database, node.tidying.upkeep)
    await upkeep()
    const waiting = await node.tidying.runs.find(mount)
    expect([waiting?.state, waiting?.counts.crossRevokedCertDeleted]).toEqual(['Running', 0])
    await held?.release()
    await upkeep()
    const run = await ended(node, mount)
    expect(run.counts).toMatchObject({ crossRevokedCertDeleted: 4, revokedCertDeleted: 0 })
    const free = await south.database.jobLease(`tidy of all sites of mount ${mount}`, 60)
    expect(free).toBeDefined()
    const left = async (one: typeof node) => one.certificates.countRevoked(mount)
    expect([await left(node), await left(north), await left(south)]).toEqual([3, 1, 1])
  })
})
