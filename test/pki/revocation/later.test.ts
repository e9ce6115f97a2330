import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCa } from './ca.ts'
import { createRevocationWorld, hexOf, type RevocationWorld, type TestMount } from './world.ts'

/**
 * Two certificates of one serial number in a mount, as sign-self-issued makes them: the mount records one revocation
 * for both.
 */

const hour = 3_600_000
const wish = { reason: null }
const soon = Math.floor(Date.now() / 1000) * 1000 + hour
const refusal = { status: 400, message: expect.stringMatching(/ends later, .* tidy_revoked_certs/) }

let world: RevocationWorld
let mount: TestMount
beforeAll(async () => {
  world = await createRevocationWorld()
  mount = await world.mountOf()
})
afterAll(() => world?.[Symbol.asyncDispose]())

const forget = (serial: Buffer) => world.sql('DELETE FROM pki_certificates WHERE serial = ?', [serial])
const stored = async (serial: Buffer) =>
  Number((await world.sql('SELECT COUNT(*) AS n FROM pki_certificates WHERE serial = ?', [serial]))[0]?.n)

/** Revokes a certificate and removes it from the store, as tidy_cert_store does. */
async function revokedOne(at = world.node) {
  const first = mount.ca.sign({ notAfter: soon })
  expect(await at.revoker.byCertificate(mount, first, wish)).toMatchObject({ state: 'revoked' })
  await forget(first.serial)
  return first
}

describe('a second certificate of a revoked serial number', () => {
  test('that ends later is refused, and not stored', async () => {
    const first = await revokedOne()
    const second = mount.ca.sign({ serial: hexOf(first), notAfter: soon + hour })
    await expect(world.node.revoker.byCertificate(mount, second, wish)).rejects.toMatchObject(refusal)
    expect(await stored(second.serial)).toBe(0)
  })

  test('that ends later is refused by its serial number too', async () => {
    const first = await revokedOne()
    await mount.store({ serial: hexOf(first), notAfter: soon + hour })
    await expect(world.node.revoker.bySerial(mount, first.serial, wish)).rejects.toMatchObject(refusal)
  })

  test('that ends later is refused where another site has the revocation', async () => {
    const unified = { unifiedCrl: true, crossClusterRevocation: true, autoRebuild: true }
    await mount.configure(unified)
    const first = await revokedOne(await world.join({ site: 'north' }))
    const second = mount.ca.sign({ serial: hexOf(first), notAfter: soon + hour })
    await expect(world.node.revoker.byCertificate(mount, second, wish)).rejects.toMatchObject(refusal)
    await mount.configure({ unifiedCrl: false, crossClusterRevocation: false, autoRebuild: false })
  })

  test('that another issuer of the mount has signed is refused, and not stored', async () => {
    const first = await revokedOne()
    const other = createCa('Another')
    await mount.add(other.certificate)
    const second = other.sign({ serial: hexOf(first), notAfter: soon })
    await expect(world.node.revoker.byCertificate(mount, second, wish)).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/has another issuer, .* tidy_revoked_certs/),
    })
    expect(await stored(second.serial)).toBe(0)
  })

  test('that ends with the first one is answered as revoked', async () => {
    const first = await revokedOne()
    const second = mount.ca.sign({ serial: hexOf(first), notAfter: soon })
    expect(await world.node.revoker.byCertificate(mount, second, wish)).toMatchObject({ state: 'revoked' })
  })
})
