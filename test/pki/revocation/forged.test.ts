import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import { DamagedRow } from '../../../src/store/faults.ts'
import { createCa } from './ca.ts'
import { createRevocationWorld, hexOf, type RevocationWorld, type TestMount } from './world.ts'

/** Rows of certificates are not sealed: only the CA's signature is proof. */

let world: RevocationWorld
let mount: TestMount
beforeAll(async () => {
  world = await createRevocationWorld()
  mount = await world.mountOf()
})
afterAll(() => world?.[Symbol.asyncDispose]())

const wish = { reason: null }
const edit = (set: string, serial: Buffer, value: unknown) =>
  world.sql(`UPDATE pki_certificates SET ${set} = ? WHERE serial = ?`, [value, serial])
const recorded = (serial: Buffer) =>
  world.sql(
    'SELECT HEX(crl_issuer) AS crlIssuer, not_after AS notAfter, issuer FROM pki_revocations WHERE serial = ?',
    [serial],
  )
const listOf = ({ certificate }: TestMount['ca']) => crlIssuerOf(certificate).toUpperCase()

describe('a stored certificate', () => {
  test('whose issuer was edited is revoked by the issuer that signed it', async () => {
    for (const other of [randomUUID(), await mount.add(createCa('Other').certificate)]) {
      const { serial } = await mount.store()
      await edit('issuer', serial, other)
      expect(await world.node.revoker.bySerial(mount, serial, wish)).toMatchObject({ state: 'revoked' })
      expect(await recorded(serial)).toMatchObject([{ crlIssuer: listOf(mount.ca), issuer: mount.issuer }])
    }
  })

  test('whose expiry was edited is revoked, with the expiry that was signed', async () => {
    const { serial, notAfter } = await mount.store()
    await edit('not_after', serial, 1)
    expect(await world.node.revoker.bySerial(mount, serial, wish)).toMatchObject({ state: 'revoked' })
    expect(await recorded(serial)).toMatchObject([{ notAfter }])
    const past = await mount.store({ notAfter: Date.now() - 60_000 })
    await edit('not_after', past.serial, 9_999_999_999_999)
    expect(await world.node.revoker.bySerial(mount, past.serial, wish)).toEqual({ state: 'expired' })
  })

  test.each([
    ['another certificate of the issuer', () => mount.ca.sign().der],
    ['one of its serial number, signed by a stranger', (serial: string) => createCa('Stranger').sign({ serial }).der],
    ['one that a namesake of the issuer signed', (serial: string) => namesake().sign({ serial }).der],
    ['rubbish', () => Buffer.from('rubbish')],
    ['nothing', () => Buffer.alloc(0)],
  ])('whose bytes are %s is not revoked by its serial number, and is by itself', async (_, forge) => {
    const certificate = await mount.store()
    const { serial } = certificate
    await edit('der', serial, forge(hexOf(certificate)))
    await expect(world.node.revoker.bySerial(mount, serial, wish)).rejects.toMatchObject({
      status: 500,
      message: expect.stringContaining('send the certificate itself in `certificate`'),
      cause: expect.any(DamagedRow),
    })
    expect(await recorded(serial)).toEqual([])
    expect(await world.node.revoker.byCertificate(mount, certificate, wish)).toMatchObject({ state: 'revoked' })
    expect(await recorded(serial)).toMatchObject([{ crlIssuer: listOf(mount.ca) }])
  })

  test('stored under another serial number does not revoke that one', async () => {
    const { serial } = await mount.store()
    const victim = mount.ca.sign()
    await edit('serial', serial, victim.serial)
    await expect(world.node.revoker.bySerial(mount, victim.serial, wish)).rejects.toMatchObject({ status: 500 })
    expect(await recorded(victim.serial)).toEqual([])
  })

  test('of the same serial number, signed by another issuer of the mount, is refused', async () => {
    const other = createCa('Another')
    await mount.add(other.certificate)
    const stored = await mount.store()
    const twin = other.sign({ serial: hexOf(stored) })
    await expect(world.node.revoker.byCertificate(mount, twin, wish)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('certificate with same serial but unequal value already present'),
    })
    expect(await recorded(stored.serial)).toEqual([])
  })
})

test('a certificate whose row is gone is revoked by itself, and then again by its serial number', async () => {
  const certificate = await mount.store()
  await world.sql('DELETE FROM pki_certificates WHERE serial = ?', [certificate.serial])
  const { serial } = certificate
  await expect(world.node.revoker.bySerial(mount, serial, wish)).rejects.toMatchObject({ status: 400 })
  const first = await world.node.revoker.byCertificate(mount, certificate, wish)
  await world.sql('DELETE FROM pki_certificates WHERE serial = ?', [certificate.serial])
  expect(await world.node.revoker.bySerial(mount, serial, wish)).toEqual(first)
})

test('an edited revocation is not answered', async () => {
  const { serial } = await mount.store()
  await world.node.revoker.bySerial(mount, serial, wish)
  await world.sql('UPDATE pki_revocations SET revoked_at = 1 WHERE serial = ?', [serial])
  await expect(world.node.revoker.bySerial(mount, serial, wish)).rejects.toBeInstanceOf(DamagedRow)
})

test('serial numbers of twenty bytes and of one are revoked, and a leading zero changes nothing', async () => {
  for (const serial of ['01', '7f'.padEnd(40, '0'), '80', '00']) {
    const certificate = await mount.store({ serial })
    const name = Buffer.from(hexOf(certificate), 'hex')
    expect(await world.node.revoker.bySerial(mount, name, wish)).toMatchObject({ state: 'revoked' })
  }
})

/** A CA of the issuer's name with a key of its own. */
const namesake = () => createCa(`Root of ${mount.uuid}`)
