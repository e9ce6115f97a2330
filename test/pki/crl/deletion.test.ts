import { expect, test, vi } from 'vitest'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import type { KeyRow } from '../../../src/engines/pki/authority/tables.ts'
import { CrlBuilder } from '../../../src/engines/pki/crl/builder.ts'
import { Crls } from '../../../src/engines/pki/publication/crls.ts'
import { groupsOf } from '../../../src/engines/pki/publication/groups.ts'
import type { CertificationSigner } from '../../../src/keys/use/certification.ts'
import type { Certificate } from '../../../src/x509/certificate.ts'
import { log } from '../../keys/support.ts'
import { clock, TestMount, useOcspWorld } from '../ocsp/world.ts'

const world = useOcspWorld()
const site = 'default'

/** Lists of another worker, which waits before it signs one. */
async function pausing() {
  const { database, context } = await world.join()
  const { authorities, signers } = context
  const signing = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  const of = async (key: KeyRow): Promise<CertificationSigner> => {
    const signer = await signers.of(key)
    return {
      ...signer,
      async signDigest(name, digest) {
        signing.resolve()
        await resumed.promise
        return signer.signDigest(name, digest)
      },
    }
  }
  const onAlarm = () => undefined
  const builder = new CrlBuilder({ database, clock, site, epoch: 1, onAlarm })
  const crls = new Crls({ ...{ database, clock, log, authorities, builder, site, onAlarm }, signers: { of } })
  return { crls, signing: signing.promise, resume: resumed.resolve }
}

/** Takes the turn to build an issuer's lists, as another worker. */
const taken = async ({ mount }: TestMount, certificate: Certificate) =>
  (await world.join()).database.jobLease(`crl ${mount.uuid} ${crlIssuerOf(certificate).slice(0, 32)} ${site}`, 60)

test('a list that was being signed when its issuer was deleted does not come out', async () => {
  const pki = await TestMount.make(world.worker)
  const { row, certificate } = await pki.root({ common_name: 'Gone' })
  const crlIssuer = crlIssuerOf(certificate)
  const { crls, signing, resume } = await pausing()
  const building = crls.rebuild(pki.mount, { of: new Set([crlIssuer]) })
  await signing
  await pki.run('DELETE', 'issuer/:issuer_ref', { issuer_ref: row.id })
  resume()
  expect(await building).toEqual([])
  const key = Buffer.from(crlIssuer, 'hex')
  expect(await world.cluster.place.sql('SELECT id FROM pki_crls WHERE crl_issuer = ?', [key])).toEqual([])
  const [manifest] = await world.cluster.place.sql('SELECT published FROM pki_manifests WHERE crl_issuer = ?', [key])
  expect(manifest?.published).toBe('{}')
})

test('a revocation is told that no list names it when its issuer is deleted while the list is being signed', async () => {
  const pki = await TestMount.make(world.worker)
  const { row } = await pki.issuer()
  const revoked = await pki.revoke(await pki.issue())
  const { crls, signing, resume } = await pausing()
  const published = crls.revoked(pki.mount, revoked)
  await signing
  await pki.run('DELETE', 'issuer/:issuer_ref', { issuer_ref: row.id })
  resume()
  expect(await published).toBe('its issuer is not in this mount')
})

test.each([
  [
    'may not sign lists any more',
    'POST',
    'issuer/:issuer_ref',
    'no issuer of this name and key has the usage crl-signing',
  ],
  ['is deleted', 'DELETE', 'issuer/:issuer_ref', 'its issuer is not in this mount'],
])('a revocation is told that no list names it when its issuer %s before the list has its turn', async (...given) => {
  const [, method, path, why] = given
  const pki = await TestMount.make(world.worker)
  const { row, certificate } = await pki.issuer()
  const { authorities, crls, revoker } = world.worker.context
  const serial = Buffer.from(await pki.issue(), 'hex')
  const turn = await taken(pki, certificate)
  const revoking = revoker.bySerial(pki.mount, serial, { reason: null })
  const rows = () => world.cluster.place.sql('SELECT id FROM pki_revocations WHERE mount = ?', [pki.mount.uuid])
  await vi.waitFor(async () => expect(await rows()).toHaveLength(1), { timeout: 30_000 })
  const before = await authorities.of(pki.mount)
  await pki.run(method, path, { issuer_ref: row.id }, { usage: ['issuing-certificates'] })
  await turn?.release()
  expect(await revoking).toMatchObject({ state: 'revoked', unlisted: why })
  const [group] = groupsOf(before).values()
  if (group === undefined) throw new Error('no issuer')
  expect(await crls.build(before, group, { kinds: 'complete', scope: 'local' })).toBe(why)
})

test('a rotation says which list was not made because its issuer may not sign lists by then', async () => {
  const pki = await TestMount.make(world.worker)
  const { row, certificate } = await pki.issuer()
  const turn = await taken(pki, certificate)
  const rotating = world.worker.context.crls.rotate(pki.mount, 'complete')
  await pki.run('POST', 'issuer/:issuer_ref', { issuer_ref: row.id }, { usage: ['issuing-certificates'] })
  await turn?.release()
  expect(await rotating).toEqual([
    `the list of ${row.id} stays as it is: no issuer of this name and key has the usage crl-signing`,
  ])
})

test('a list that was being signed when one of two issuers of its name and key was deleted comes out', async () => {
  const pki = await TestMount.make(world.worker)
  const { certificate } = await pki.issuer()
  const again = { common_name: 'OCSP Root', key_ref: 'default' }
  const twin = await pki.run('POST', 'root/generate/:type', { type: 'existing' }, again)
  const id = String(twin.issuer_id)
  const { crls, signing, resume } = await pausing()
  const building = crls.rebuild(pki.mount, { of: new Set([crlIssuerOf(certificate)]) })
  await signing
  const deleted = pki.run('DELETE', 'issuer/:issuer_ref', { issuer_ref: id })
  const left = () => world.cluster.place.sql('SELECT id FROM pki_issuers WHERE id = ?', [id])
  await vi.waitFor(async () => expect(await left()).toEqual([]), 20_000)
  resume()
  expect(await building).toEqual([])
  await deleted
  expect(await pki.listed()).toEqual([])
})

test('a list that was being signed when another issuer of its name and key took the place of its issuer comes out', async () => {
  const pki = await TestMount.make(world.worker)
  const { row, certificate } = await pki.issuer()
  const { place } = world.cluster
  const number = async () => {
    const key = Buffer.from(crlIssuerOf(certificate), 'hex')
    const sql = "SELECT number FROM pki_crls WHERE crl_issuer = ? AND kind = 'complete'"
    return Number((await place.sql(sql, [key]))[0]?.number)
  }
  const issuers = () => place.sql('SELECT id FROM pki_issuers WHERE mount = ?', [pki.mount.uuid])
  const before = await number()
  const { crls, signing, resume } = await pausing()
  const building = crls.rebuild(pki.mount)
  await signing
  const again = { common_name: 'OCSP Root', key_ref: 'default' }
  const renewed = pki.run('POST', 'root/generate/:type', { type: 'existing' }, again)
  await vi.waitFor(async () => expect(await issuers()).toHaveLength(2), 20_000)
  const deleted = pki.run('DELETE', 'issuer/:issuer_ref', { issuer_ref: row.id })
  await vi.waitFor(async () => expect(await issuers()).toHaveLength(1), 20_000)
  resume()
  expect(await building).toEqual([])
  expect(await number()).toBeGreaterThan(before)
  await Promise.all([renewed, deleted])
})

test('builds that are made as one come out when one of them was asked for by an issuer whose place another one took', async () => {
  const pki = await TestMount.make(world.worker)
  const { row, certificate } = await pki.issuer()
  const { authorities, crls } = world.worker.context
  const before = await authorities.of(pki.mount)
  const again = { common_name: 'OCSP Root', key_ref: 'default' }
  await pki.run('POST', 'root/generate/:type', { type: 'existing' }, again)
  await pki.run('DELETE', 'issuer/:issuer_ref', { issuer_ref: row.id })
  const after = await authorities.of(pki.mount)
  const turn = await taken(pki, certificate)
  // The first build has a turn of its own; the others share the next one.
  const building = [after, after, before].map((authority) => {
    const [group] = groupsOf(authority).values()
    if (group === undefined) throw new Error('no issuer')
    return crls.build(authority, group, { kinds: 'complete', scope: 'local' })
  })
  await turn?.release()
  expect(await Promise.all(building)).toEqual([undefined, undefined, undefined])
})
