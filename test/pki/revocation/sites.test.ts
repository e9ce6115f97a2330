import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import { RevocationLists } from '../../../src/engines/pki/revocation/listing.ts'
import type { Revoker } from '../../../src/engines/pki/revocation/revoker.ts'
import { listRevocationQueue } from '../../../src/engines/pki/routes/revocation/list.ts'
import { withColons } from '../../../src/x509/serial.ts'
import { runJob } from '../../auth/world.ts'
import type { CertificateNode } from '../certificates/world.ts'
import { leafPair } from './ca.ts'
import { createRevocationWorld, hexOf, type RevocationWorld, type TestMount } from './world.ts'

/**
 * Two sites on one database: each revokes its own certificates, and asks the other to revoke those it does not know.
 */

let world: RevocationWorld
let here: CertificateNode
let north: CertificateNode
beforeAll(async () => {
  world = await createRevocationWorld()
  here = world.node
  north = await world.join({ site: 'north' })
})
afterAll(() => world?.[Symbol.asyncDispose]())

const wish = { reason: null }
const both = { autoRebuild: true, crossClusterRevocation: true }
const keyed = () => ({ ...wish, privateKey: leafPair.privateKey.export({ format: 'der', type: 'pkcs8' }) })
/** The job that answers requests, and the job that removes answered ones. */
const jobsOf = ({ jobs }: CertificateNode) => {
  const [answering, removal] = jobs
  if (answering === undefined || removal === undefined) throw new Error('two jobs')
  return { answering, removal }
}
const answer = (node: CertificateNode) => runJob(node.database, jobsOf(node).answering)
const remove = (node: CertificateNode) => runJob(node.database, jobsOf(node).removal)
/** The answer of LIST certs/revocation-queue. */
const listQueue = async ({ uuid }: TestMount) => {
  const context = { revocationLists: new RevocationLists({ database: here.database, site: 'default' }) }
  return listRevocationQueue.run({ context, mount: { uuid }, body: {}, warn: () => undefined } as never)
}
const queueOf = (mount: TestMount, at = here) =>
  new RevocationLists({ database: at.database, site: 'default' }).requests(mount.uuid, { limit: 10 })
const rowOf = async (serial: Buffer) =>
  (await world.sql('SELECT site, seq, HEX(crl_issuer) AS crlIssuer FROM pki_revocations WHERE serial = ?', [serial]))[0]
const notFound = { status: 400, messages: [expect.stringMatching(/^certificate with serial [0-9a-f:]+ not found\.$/)] }

describe('a certificate of another site', () => {
  test('is not found while sites do not ask each other, and the refusal names the site', async () => {
    const mount = await world.mountOf()
    const certificate = await mount.store()
    const { serial } = certificate
    const refused = {
      status: 400,
      messages: [expect.stringContaining('not found.'), expect.stringContaining('site default has it')],
    }
    const ways: ((revoker: Revoker) => Promise<unknown>)[] = [
      (revoker) => revoker.bySerial(mount, serial, wish),
      (revoker) => revoker.byCertificate(mount, certificate, wish),
      (revoker) => revoker.bySerial(mount, serial, keyed()),
      (revoker) => revoker.byCertificate(mount, certificate, keyed()),
    ]
    for (const way of ways) await expect(way(north.revoker)).rejects.toMatchObject(refused)
    expect([await rowOf(serial), await queueOf(mount)]).toEqual([undefined, []])
  })

  test('is asked for, revoked by its own site, confirmed and forgotten', async () => {
    const mount = await world.mountOf(both)
    const certificate = await mount.store()
    const { serial } = certificate
    for (let n = 0; n < 2; n++) {
      expect(await north.revoker.bySerial(mount, serial, wish)).toEqual({ state: 'pending' })
      expect(await north.revoker.byCertificate(mount, certificate, wish)).toEqual({ state: 'pending' })
    }
    expect(await queueOf(mount)).toEqual([{ serial: hexOf(certificate), site: 'north', confirmedBy: null }])
    const listed = withColons(serial)
    const open = { requesting_cluster: 'north' }
    expect(await listQueue(mount)).toEqual({ keys: [listed], key_info: { [listed]: open } })
    await answer(north)
    expect(await rowOf(serial)).toBeUndefined()
    await answer(here)
    const crlIssuer = crlIssuerOf(mount.ca.certificate).toUpperCase()
    expect(await rowOf(serial)).toEqual({ site: 'default', seq: 1, crlIssuer })
    expect(here.published.at(-1)).toMatchObject({ serial: hexOf(certificate), site: 'default' })
    expect(await queueOf(mount)).toEqual([{ serial: hexOf(certificate), site: 'north', confirmedBy: 'default' }])
    const confirmed = { confirmed: true, confirmation_cluster: 'default' }
    expect(await listQueue(mount)).toEqual({ keys: [listed], key_info: { [listed]: confirmed } })
    await remove(north)
    expect(await queueOf(mount)).toEqual([])
  })

  test('is not asked for by its key', async () => {
    const mount = await world.mountOf(both)
    const { serial } = await mount.store()
    await expect(north.revoker.bySerial(mount, serial, keyed())).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/not found, and cross-cluster revocation not supported with key revocation\.$/),
    })
    expect(await queueOf(mount)).toEqual([])
  })

  test('that is revoked already is answered with its times where lists are unified, and is asked for otherwise', async () => {
    const mount = await world.mountOf({ ...both, unifiedCrl: true })
    const { serial } = await mount.store()
    const own = await here.revoker.bySerial(mount, serial, wish)
    const { row } = own as Extract<typeof own, { readonly row: unknown }>
    expect(await north.revoker.bySerial(mount, serial, wish)).toEqual({ state: 'elsewhere', row })
    await mount.configure({ unifiedCrl: false })
    expect(await north.revoker.bySerial(mount, serial, wish)).toEqual({ state: 'pending' })
    await answer(here)
    expect(await queueOf(mount)).toMatchObject([{ confirmedBy: 'default' }])
    expect(await rowOf(serial)).toMatchObject({ site: 'default', seq: 1 })
    await remove(here)
  })

  test('has its lease revoked for the list of its own site, wherever that is done', async () => {
    const mount = await world.mountOf()
    const certificate = mount.ca.sign()
    const payload = {
      serial: hexOf(certificate),
      site: 'default',
      issuer: mount.issuer,
      notAfter: certificate.notAfter,
    }
    await north.revoker.byLease(mount, payload)
    const crlIssuer = crlIssuerOf(mount.ca.certificate).toUpperCase()
    expect(await rowOf(certificate.serial)).toEqual({ site: 'default', seq: 1, crlIssuer })
    expect(north.published.at(-1)).toMatchObject({ serial: hexOf(certificate), site: 'default' })
  })
})

describe('a request of another site', () => {
  test('for an unknown serial number stays', async () => {
    const mount = await world.mountOf(both)
    const { serial } = mount.ca.sign()
    expect(await here.revoker.bySerial(mount, serial, wish)).toEqual({ state: 'pending' })
    for (const node of [here, north]) {
      await answer(node)
      await remove(node)
    }
    expect(await queueOf(mount)).toMatchObject([{ site: 'default', confirmedBy: null }])
  })

  test('for a certificate that may not be revoked stays, and harms no other', async () => {
    const mount = await world.mountOf(both)
    const expired = await mount.store({ notAfter: Date.now() - 60_000 })
    const issuer = await mount.store({ serial: hexOf(mount.ca.certificate) })
    const damaged = await mount.store()
    await world.sql("UPDATE pki_certificates SET der = 'x' WHERE serial = ?", [damaged.serial])
    const good = await mount.store()
    const others = [expired, issuer, damaged]
    for (const one of [...others, good]) {
      await north.requests.ask({ mount: mount.uuid, serial: hexOf(one) })
    }
    await answer(here)
    const open = (await queueOf(mount)).flatMap(({ serial, confirmedBy }) => (confirmedBy === null ? [serial] : []))
    expect(open).toEqual(others.map(hexOf).toSorted())
    expect(await rowOf(good.serial)).toMatchObject({ site: 'default' })
  })

  test('that was edited is left alone, and hides no other', async () => {
    const mount = await world.mountOf(both)
    const [victim, good] = [await mount.store(), await mount.store()]
    for (const { serial } of [good, mount.ca.sign()]) await north.revoker.bySerial(mount, serial, wish)
    await world.sql('UPDATE pki_revocation_queue SET serial = ? WHERE mount = ? AND serial <> ?', [
      victim.serial,
      mount.uuid,
      good.serial,
    ])
    await answer(here)
    await remove(here)
    expect(await rowOf(victim.serial)).toBeUndefined()
    expect(await rowOf(good.serial)).toMatchObject({ site: 'default' })
  })

  test('is answered with a hundred others in one run', async () => {
    const mount = await world.mountOf(both)
    const certificates = await Promise.all(Array.from({ length: 100 }, () => mount.store()))
    await Promise.all(certificates.map(({ serial }) => north.revoker.bySerial(mount, serial, wish)))
    expect(await queueOf(mount)).toHaveLength(10)
    await answer(here)
    const seqs = await world.sql('SELECT seq FROM pki_revocations WHERE mount = ? ORDER BY seq', [mount.uuid])
    expect(seqs.map(({ seq }) => seq)).toEqual(certificates.map((_, index) => index + 1))
    await remove(here)
    expect(await queueOf(mount)).toEqual([])
  })
})

test('a certificate that no site has stored is stored and revoked by the site that it is brought to', async () => {
  const mount = await world.mountOf()
  const certificate = mount.ca.sign()
  await expect(north.revoker.bySerial(mount, certificate.serial, wish)).rejects.toMatchObject(notFound)
  expect(await north.revoker.byCertificate(mount, certificate, wish)).toMatchObject({ state: 'revoked' })
  expect(await rowOf(certificate.serial)).toMatchObject({ site: 'north', seq: 1 })
  const stored = await world.sql('SELECT site FROM pki_certificates WHERE serial = ?', [certificate.serial])
  expect(stored).toMatchObject([{ site: 'north' }])
  await expect(here.revoker.byCertificate(mount, certificate, wish)).rejects.toMatchObject({ status: 400 })
})
