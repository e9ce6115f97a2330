import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { wholeSeconds } from '../../../src/clock/moment.ts'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import { CrlBuilder } from '../../../src/engines/pki/crl/builder.ts'
import type { ListedSerials } from '../../../src/engines/pki/ocsp/status.ts'
import { entrySerials, writeCrlEntry } from '../../../src/x509/crlentry.ts'
import { makeCa } from '../../x509/authority.ts'
import { ocspHashes } from '../../x509/ocspasking.ts'
import { revoke } from '../crl/world.ts'
import { failureOf } from './answer.ts'
import { clock, TestMount, useOcspWorld } from './world.ts'

const world = useOcspWorld()
const stranger = () => `7f${randomBytes(19).toString('hex')}`

describe('the status of a certificate', () => {
  test.each(ocspHashes)('asked for by %s is good, then revoked with time and reason', async (hash) => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    const before = await pki.answer(serial, { hash })
    expect(before).toMatchObject({ status: 'good', serial, nonce: undefined })
    const { certificate } = await pki.issuer()
    expect(before.isFrom(certificate)).toBe(true)
    const { revokedAt } = await pki.revoke(serial, { reason: 4 })
    const after = await pki.answer(serial, { hash })
    expect(after).toMatchObject({ status: 'revoked', revokedAt: wholeSeconds(revokedAt), reason: 4 })
    expect(after.isFrom(certificate)).toBe(true)
  })

  test('that was never stored is good, and revoked once that is recorded', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue({ no_store: true })
    expect(await pki.answer(serial)).toMatchObject({ status: 'good', serial })
    await pki.revoke(serial)
    expect(await pki.answer(serial)).toMatchObject({ status: 'revoked', reason: undefined })
    expect(await pki.answer(stranger())).toMatchObject({ status: 'good' })
  })

  test('of another issuer of the mount is unknown, revoked or not', async () => {
    const pki = await TestMount.make(world.worker)
    const other = await pki.root({ common_name: 'Other' })
    const serial = await pki.issue({}, other.row.id)
    const about = { issuer: other.certificate }
    expect(await pki.answer(serial, about)).toMatchObject({ status: 'good' })
    expect(await pki.answer(serial)).toMatchObject({ status: 'unknown' })
    await pki.revoke(serial, { issuer: other.row.id, crlIssuer: null })
    expect(await pki.answer(serial, about)).toMatchObject({ status: 'revoked' })
    expect(await pki.answer(serial)).toMatchObject({ status: 'unknown' })
  })

  test('whose revocation has no issuer is revoked if the stored certificate proves it, else unknown', async () => {
    const pki = await TestMount.make(world.worker)
    const [stored, fleeting] = [await pki.issue(), await pki.issue({ no_store: true })]
    for (const serial of [stored, fleeting]) await pki.revoke(serial, { issuer: '', crlIssuer: null })
    expect(await pki.answer(stored)).toMatchObject({ status: 'revoked' })
    expect(await pki.answer(fleeting)).toMatchObject({ status: 'unknown' })
  })

  test('is revoked while a list names it, with the time of the list, though its row was deleted in SQL', async () => {
    const pki = await TestMount.make(world.worker)
    const [stored, fleeting] = [await pki.issue(), await pki.issue({ no_store: true })]
    const entries: Buffer[] = []
    for (const serial of [stored, fleeting]) {
      const { id, revokedAt } = await pki.revoke(serial, { reason: 1 })
      entries.push(writeCrlEntry({ serial: Buffer.from(serial, 'hex'), revokedAt, reason: 1 }))
      await world.cluster.place.sql('DELETE FROM pki_revocations WHERE id = ?', [id])
    }
    const listed: ListedSerials = {
      state: () => undefined,
      find(_, wanted) {
        const found = [...entrySerials(Buffer.concat(entries))].find(({ serial }) => serial.toString('hex') === wanted)
        return found && { revokedAt: found.revokedAt, reason: found.reason, site: 'default' }
      },
    }
    const responder = world.worker.responder({ listed })
    for (const serial of [stored, fleeting]) {
      expect(await pki.answer(serial, { responder })).toMatchObject({ status: 'revoked', reason: 1 })
    }
    expect(await pki.answer(await pki.issue(), { responder })).toMatchObject({ status: 'good' })
  })

  test.each([
    ['the certificate of another', 'UPDATE pki_certificates a, pki_certificates b SET a.der = b.der'],
    ['another end', 'UPDATE pki_certificates a, pki_certificates b SET a.not_after = a.not_after + 1000'],
    ['bytes that are none', "UPDATE pki_certificates a, pki_certificates b SET a.der = 'x'"],
    ['the issuer of another', 'UPDATE pki_certificates a, pki_certificates b SET a.issuer = b.issuer'],
  ])('is not told by a stored row that was given %s', async (_, statement) => {
    const pki = await TestMount.make(world.worker)
    const other = await pki.root({ common_name: 'Other' })
    const [edited, intact] = [await pki.issue(), await pki.issue({}, other.row.id)]
    const where = [Buffer.from(edited, 'hex'), Buffer.from(intact, 'hex')]
    await world.cluster.place.sql(`${statement} WHERE a.serial = ? AND b.serial = ?`, where)
    const about = { issuer: other.certificate }
    const [asked, askedOfOther] = [await pki.ask(edited), await pki.ask(edited, about)]
    const seen = [asked, askedOfOther].map(({ body }) => failureOf(body))
    expect(seen).toContain('internalError')
    expect((await pki.answer(intact, about)).status).toBe('good')
  })
})

test('a serial number that the list of this site names is revoked, though lists named that of another site first', async () => {
  const pki = await TestMount.make(world.worker)
  const { database } = world.worker
  const { certificate } = await pki.issuer()
  const crlIssuer = crlIssuerOf(certificate)
  const serial = await pki.issue()
  const onAlarm = () => undefined
  const builder = new CrlBuilder({ database, clock, site: 'default', epoch: 1, onAlarm })
  for (const site of ['elsewhere', 'default']) {
    await revoke(database, crlIssuer, 1, { site, mount: `of ${site}`, serials: [serial] })
    await builder.absorb(crlIssuer, site)
    expect((await pki.answer(serial)).status).toBe(site === 'default' ? 'revoked' : 'good')
  }
})

describe('who answers', () => {
  test('is the issuer that was asked about, or a twin of the same name and key that may', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    const issuer = await pki.issuer()
    await pki.run('POST', 'root/generate/:type', { type: 'existing' }, { common_name: 'OCSP Root', key_ref: 'default' })
    const usage = ['issuing-certificates', 'crl-signing']
    expect(await pki.answer(serial)).toMatchObject({ status: 'good' })
    await pki.run('POST', 'issuer/:issuer_ref', { issuer_ref: issuer.row.id }, { usage })
    expect(await pki.answer(serial)).toMatchObject({ status: 'good' })
    const { issuers } = await world.worker.context.authorities.of(pki.mount)
    for (const id of issuers.keys()) await pki.run('POST', 'issuer/:issuer_ref', { issuer_ref: id }, { usage })
    expect(await pki.ask(serial)).toMatchObject({ status: 401, body: Buffer.from('30030a0106', 'hex') })
  })

  test('is the default issuer if the issuer in question is not here, and answers unknown', async () => {
    const pki = await TestMount.make(world.worker)
    const issuer = await pki.issuer()
    const { certificate } = makeCa('Elsewhere')
    const serial = await pki.issue()
    const answer = await pki.answer(serial, { issuer: certificate })
    expect(answer).toMatchObject({ status: 'unknown', serial })
    expect(answer.isFrom(issuer.certificate)).toBe(true)
    await pki.run('POST', 'issuer/:issuer_ref', { issuer_ref: 'default' }, { usage: ['crl-signing'] })
    expect((await pki.ask(serial, { issuer: certificate })).status).toBe(401)
  })

  test('does not exist where OCSP is disabled', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    expect((await pki.answer(serial)).status).toBe('good')
    await pki.configure({ ocspDisable: true, unifiedCrl: true })
    for (const scope of ['local', 'unified'] as const) expect((await pki.ask(serial, { scope })).status).toBe(401)
    await pki.configure({})
    expect((await pki.answer(serial)).status).toBe('good')
  })

  test.each([
    ['SHA256WithRSA', { key_type: 'rsa', key_bits: 2048 }],
    ['SHA512WithRSA', { key_type: 'rsa', key_bits: 2048, signature_bits: 512, use_pss: true }],
    ['ECDSAWithSHA384', { key_type: 'ec', key_bits: 384 }],
    ['Ed25519', { key_type: 'ed25519' }],
  ])('signs by %s', async (algorithm, root) => {
    const pki = await TestMount.make(world.worker, root)
    const answer = await pki.answer(await pki.issue())
    expect(answer.algorithm).toBe(algorithm)
    expect(answer.isFrom((await pki.issuer()).certificate)).toBe(true)
  })
})

describe('the revocations of other sites', () => {
  test('count for unified answers alone, and for all where existing paths are unified', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    await pki.revoke(serial, { site: 'elsewhere' })
    expect((await pki.ask(serial, { scope: 'unified' })).status).toBe(401)
    await pki.configure({ autoRebuild: true, unifiedCrl: true })
    expect(await pki.answer(serial)).toMatchObject({ status: 'good' })
    expect(await pki.answer(serial, { scope: 'unified' })).toMatchObject({ status: 'revoked' })
    await pki.configure({ autoRebuild: true, unifiedCrl: true, unifiedCrlOnExistingPaths: true })
    expect(await pki.answer(serial)).toMatchObject({ status: 'revoked' })
    const far = (await world.join('elsewhere')).context.ocsp
    await pki.configure({})
    expect(await pki.answer(serial, { responder: far })).toMatchObject({ status: 'revoked' })
  })
})
