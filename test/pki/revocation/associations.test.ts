import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import { revocationTable } from '../../../src/engines/pki/certificates/tables.ts'
import { runJob } from '../../auth/world.ts'
import { createCa } from './ca.ts'
import { createRevocationWorld, hexOf, type RevocationWorld, type TestMount } from './world.ts'

/** Revocations whose issuer was not known when they were recorded. */

let world: RevocationWorld
beforeAll(async () => {
  world = await createRevocationWorld()
})
afterAll(() => world?.[Symbol.asyncDispose]())

const wish = { reason: null }
const run = () => runJob(world.node.database, world.node.associations.job)
const rowsOf = ({ uuid }: TestMount) =>
  world.sql(
    'SELECT LOWER(HEX(serial)) AS serial, LOWER(HEX(crl_issuer)) AS crlIssuer, seq, issuer, revoked_at AS revokedAt FROM pki_revocations WHERE mount = ? ORDER BY seq',
    [uuid],
  )

test('are on its list when it is imported again, with the time of their revocation', async () => {
  const mount = await world.mountOf()
  const { revoker, published } = world.node
  const certificates = await Promise.all(Array.from({ length: 5 }, () => mount.store()))
  await mount.remove(mount.issuer)
  for (const { serial } of certificates) await revoker.bySerial(mount, serial, wish)
  await run()
  const before = await rowsOf(mount)
  for (const row of before) expect(row).toMatchObject({ crlIssuer: null, seq: null, issuer: mount.issuer })
  const issuer = await mount.add(mount.ca.certificate)
  published.length = 0
  await run()
  const crlIssuer = crlIssuerOf(mount.ca.certificate)
  const after = await rowsOf(mount)
  expect(after.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5])
  for (const row of after) {
    expect(row).toMatchObject({ crlIssuer, issuer })
    expect(row.revokedAt).toBe(before.find(({ serial }) => serial === row.serial)?.revokedAt)
  }
  expect(published).toMatchObject([{ mount: mount.uuid, crlIssuer }])
})

test('of an issuer whose row is there are associated without their certificates', async () => {
  const mount = await world.mountOf()
  const certificate = mount.ca.sign()
  const order = { ...{ mount: mount.uuid, site: 'default', serial: hexOf(certificate) }, issuer: mount.issuer }
  await world.node.revocations.record({ ...order, crlIssuer: null, notAfter: certificate.notAfter, reason: null })
  await run()
  expect(await rowsOf(mount)).toMatchObject([{ crlIssuer: crlIssuerOf(mount.ca.certificate), seq: 1 }])
})

test('are left alone when unsigned by any issuer, when self-signed, and when their rows were edited', async () => {
  const mount = await world.mountOf()
  const { revocations, associations, certificates } = world.node
  const own = await mount.store({ serial: hexOf(mount.ca.certificate) })
  const { der, notAfter } = mount.ca.certificate
  await world.sql('UPDATE pki_certificates SET der = ?, not_after = ? WHERE serial = ?', [der, notAfter, own.serial])
  const strange = createCa('Stranger').sign()
  await certificates.store({
    ...{ mount: mount.uuid, serial: hexOf(strange), issuer: mount.issuer },
    ...{ der: strange.der, notAfter: strange.notAfter },
  })
  const gone = randomBytes(10).toString('hex')
  for (const serial of [hexOf(own), hexOf(strange), gone]) {
    const order = { mount: mount.uuid, site: 'default', serial, issuer: '', crlIssuer: null }
    await revocations.record({ ...order, notAfter, reason: null })
  }
  expect(await associations.some('', mount.uuid)).toMatchObject({ associated: [], missing: 3 })
  for (const row of await rowsOf(mount)) expect(row).toMatchObject({ crlIssuer: null, seq: null })
})

test('are walked one portion per run, and the next run continues where the last one ended', async () => {
  const mount = await world.mountOf()
  const { database } = world.node
  const site = 'north'
  const far = await world.join({ site })
  await far.database.start()
  const rows = Array.from({ length: 1100 }, () => ({
    ...{ mount: mount.uuid, site, serial: randomBytes(12).toString('hex'), issuer: '' },
    ...{ notAfter: Date.now(), revokedAt: Date.now() },
  }))
  await database.transaction((tx) => database.table(revocationTable).insertMany(tx, rows))
  const { job } = far.associations
  const places: string[] = []
  for (let n = 0; n < 3; n++) {
    await runJob(far.database, job)
    places.push(await far.database.jobPlace(job.name))
  }
  expect(places).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), '', places[0]])
})

test('are found by an index in its order, among any number of other revocations', async () => {
  const [plan] = await world.sql(
    `EXPLAIN SELECT id FROM pki_revocations FORCE INDEX (by_issuer) WHERE crl_issuer IS NULL AND site = 'north'
      AND id > '0' ORDER BY id LIMIT 64`,
  )
  expect(plan).toMatchObject({ key: 'by_issuer', Extra: expect.not.stringMatching(/filesort|temporary/) })
})
