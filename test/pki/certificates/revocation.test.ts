import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nextTurn } from '../../../src/after.ts'
import { DamagedRow } from '../../../src/store/faults.ts'
import { runJob } from '../../auth/world.ts'
import { Line } from '../../store/line.ts'
import { type CertificateWorld, createCertificateWorld, minute } from './world.ts'

let world: CertificateWorld
beforeAll(async () => {
  world = await createCertificateWorld(2)
})
afterAll(() => world?.[Symbol.asyncDispose]())

const rows = (serial: string) =>
  world.sql('SELECT revoked_at AS revokedAt FROM pki_revocations WHERE serial = ?', [Buffer.from(serial, 'hex')])

describe('revoking a lease', () => {
  test('revokes its certificate on every worker that has it cached, with the time', async () => {
    const { issue, token, leases } = world.node
    const { certificate, lease } = await issue(await token())
    for (const node of world.nodes) expect((await node.certificates.find(certificate))?.revocation).toBeUndefined()
    const before = world.clock.wall()
    await leases.revoke(lease.id)
    for (const node of world.nodes) {
      const { revocation } = (await node.certificates.find(certificate)) ?? {}
      const { serial, mount, site, issuer, notAfter } = certificate
      expect(revocation).toMatchObject({ serial, mount, site, issuer, notAfter })
      expect(revocation?.revokedAt).toBeGreaterThanOrEqual(before)
    }
    expect(await leases.find(lease.id)).toBeUndefined()
  })

  test('revokes the certificates of its token together with the token', async () => {
    const { issue, token, tokens, certificates } = world.node
    const holder = await token()
    const issued = await Promise.all(Array.from({ length: 5 }, () => issue(holder)))
    await tokens.revoke(holder.id)
    for (const { certificate } of issued) expect((await certificates.find(certificate))?.revocation).toBeDefined()
  })

  test('records nothing when the certificate ends by itself', async () => {
    const { issue, token, leases, certificates } = world.node
    const { certificate, lease } = await issue(await token(), { notAfter: world.clock.wall() + minute })
    world.clock.ahead += minute
    await runJob(world.node.database, leases.expiry)
    world.clock.ahead -= minute
    expect(await leases.find(lease.id)).toBeUndefined()
    expect(await rows(certificate.serial)).toEqual([])
    expect((await certificates.find(certificate))?.revocation).toBeUndefined()
  })

  test('goes by the lease: an edited or deleted row of the certificate changes nothing', async () => {
    const { issue, token, leases, revoke } = world.node
    const { certificate, lease } = await issue(await token())
    await world.sql('UPDATE pki_certificates SET not_after = 1, issuer = ? WHERE id = ?', ['other', certificate.id])
    await leases.revoke(lease.id)
    const { issuer, notAfter } = await revoke(certificate)
    expect({ issuer, notAfter }).toEqual({ issuer: certificate.issuer, notAfter: certificate.notAfter })
    const second = await issue(await token())
    await world.sql('DELETE FROM pki_certificates WHERE id = ?', [second.certificate.id])
    await leases.revoke(second.lease.id)
    expect(await rows(second.certificate.serial)).toHaveLength(1)
  })
})

describe('a revocation', () => {
  test('is recorded once, with the time of the first, however many revoke at once', async () => {
    const { fresh, certificates } = world.node
    const certificate = await certificates.store(fresh())
    const records = await Promise.all(
      Array.from({ length: 300 }, (_, n) => (world.nodes[n % 2] ?? world.node).revoke(certificate)),
    )
    expect(await rows(certificate.serial)).toHaveLength(1)
    expect(new Set(records.map(({ id }) => id)).size).toBe(1)
    world.clock.ahead += minute
    expect((await world.node.revoke(certificate)).revokedAt).toBe(records[0]?.revokedAt)
    world.clock.ahead -= minute
  })

  test('of many at once shares commits', async () => {
    const { fresh, certificates, revoke } = world.node
    const stored = await Promise.all(Array.from({ length: 200 }, () => certificates.store(fresh())))
    const commits = async () => Number((await world.sql('SELECT COUNT(*) AS n FROM outcomes'))[0]?.n)
    const before = await commits()
    await Promise.all(stored.map((one) => revoke(one)))
    expect((await commits()) - before).toBeLessThan(20)
    for (const one of stored) expect((await certificates.find(one))?.revocation?.serial).toBe(one.serial)
  })

  test('that was already recorded is answered when no cache holds the certificate as valid, not sooner', async () => {
    await using line = await Line.open(world.url)
    const far = await world.join({ url: line.url })
    await far.database.start()
    const { fresh, certificates, revoke } = world.node
    const certificate = await certificates.store(fresh())
    expect((await far.certificates.find(certificate))?.revocation).toBeUndefined()
    line.silent = true
    const first = revoke(certificate)
    // A cached value needs no answer from the database, which is silent.
    const cached = () => {
      const found = far.certificates.find(certificate)
      found.catch(() => undefined)
      return Promise.race([found, nextTurn().then(() => undefined)])
    }
    while ((await rows(certificate.serial)).length === 0);
    expect(await cached()).toBeDefined()
    await (world.nodes[1] ?? world.node).revoke(certificate)
    expect(await cached()).toBeUndefined()
    await first
    line.silent = false
  })

  test('that was edited is refused', async () => {
    const { fresh, certificates, revoke } = world.node
    const certificate = await certificates.store(fresh())
    const { id } = await revoke(certificate)
    await world.sql('UPDATE pki_revocations SET revoked_at = revoked_at + 1 WHERE id = ?', [id])
    await expect(certificates.find(certificate)).rejects.toBeInstanceOf(DamagedRow)
  })
})
