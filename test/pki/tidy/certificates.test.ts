import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addIssuer, createTidyWorld, fresh, hours, makeDer, type TidyWorld, tidy } from './world.ts'

let world: TidyWorld
beforeAll(async () => {
  world = await createTidyWorld(2)
})
afterAll(() => world?.[Symbol.asyncDispose]())

async function authority() {
  const mount = await world.mount()
  return { mount, issuer: await addIssuer(world.node, mount, world.clock.wall() + 9000 * hours) }
}

const stored = async (mount: string): Promise<string[]> => {
  const rows = await world.sql('SELECT LOWER(HEX(serial)) AS serial FROM pki_certificates WHERE mount = ?', [mount])
  return rows.map(({ serial }) => String(serial)).toSorted()
}

describe('tidy_cert_store', () => {
  test('removes only certificates that ended longer ago than the safety buffer, from every worker', async () => {
    const { mount, issuer } = await authority()
    const now = world.clock.wall()
    const { certificates } = world.node
    const old = await Promise.all(
      Array.from({ length: 450 }, (_, n) => certificates.store(fresh(mount, issuer, now - (n + 80) * hours))),
    )
    const recent = await certificates.store(fresh(mount, issuer, now - 71 * hours))
    const living = await certificates.store(fresh(mount, issuer, now + hours))
    const other = await certificates.store(fresh(await world.mount(), issuer, now - 80 * hours))
    const [first] = old
    if (first === undefined) throw new Error('nothing was stored')
    for (const node of world.nodes) expect(await node.certificates.find(first)).toBeDefined()
    const run = await tidy(world.node, mount, { certStore: true, safetyBuffer: 72 * 3600 })
    expect(run).toMatchObject({ state: 'Finished', error: null, message: null, checked: 450, total: 452 })
    expect(run.counts).toMatchObject({ certStoreDeleted: 450, certStoreMismatched: 0 })
    expect(await stored(mount)).toEqual([recent.serial, living.serial].toSorted())
    expect(await stored(other.mount)).toEqual([other.serial])
    for (const node of world.nodes) expect(await node.certificates.find(first)).toBeUndefined()
    expect(await certificates.count(mount)).toBe(2)
  })

  test.each(['not_after = 1000', 'not_after = not_after - 1000000000000'])(
    'never removes a living certificate whose column says %s',
    async (forgery) => {
      const { mount, issuer } = await authority()
      const living = await world.node.certificates.store(fresh(mount, issuer, world.clock.wall() + hours))
      await world.sql(`UPDATE pki_certificates SET ${forgery} WHERE id = ?`, [living.id])
      const { counts, state } = await tidy(world.node, mount, { certStore: true })
      expect([state, counts.certStoreDeleted, counts.certStoreMismatched]).toEqual(['Finished', 0, 1])
      expect(await stored(mount)).toEqual([living.serial])
    },
  )

  test('leaves rows whose bytes are not a certificate, have another serial number or are not signed by their issuer, and continues', async () => {
    const { mount, issuer } = await authority()
    const now = world.clock.wall()
    const { certificates } = world.node
    const end = now - 100 * hours
    const kept = [
      await certificates.store({ ...fresh(mount, issuer, end), der: Buffer.from('no certificate') }),
      await certificates.store({ ...fresh(mount, issuer, end), der: makeDer({ notAfter: end - (end % 1000) }) }),
      await certificates.store(fresh(mount, issuer, end, { forged: true })),
    ]
    // Without its issuer a signature cannot be verified.
    await certificates.store(fresh(mount, 'gone', end, { forged: true }))
    await certificates.store(fresh(mount, issuer, now - 90 * hours))
    const { counts } = await tidy(world.node, mount, { certStore: true })
    expect([counts.certStoreDeleted, counts.certStoreMismatched]).toEqual([2, 3])
    expect(await stored(mount)).toEqual(kept.map(({ serial }) => serial).toSorted())
  })

  test('takes certificates of its own site alone', async () => {
    const { mount, issuer } = await authority()
    const north = await world.join('north')
    const theirs = await north.certificates.store(fresh(mount, issuer, world.clock.wall() - 80 * hours))
    expect((await tidy(world.node, mount, { certStore: true })).counts.certStoreDeleted).toBe(0)
    expect(await stored(mount)).toEqual([theirs.serial])
    expect((await tidy(north, mount, { certStore: true })).counts.certStoreDeleted).toBe(1)
  })

  test('continues while certificates are issued, and counts both', async () => {
    const { mount, issuer } = await authority()
    const now = world.clock.wall()
    const { node } = world
    const other = world.nodes[1] ?? node
    const ended = Array.from({ length: 300 }, (_, n) => fresh(mount, issuer, now - (n + 80) * hours))
    await Promise.all(ended.map((one) => node.certificates.store(one)))
    const running = tidy(node, mount, { certStore: true, pageSize: 10 })
    const issued = await Promise.all(
      Array.from({ length: 200 }, () => other.certificates.store(fresh(mount, issuer, now + hours))),
    )
    expect((await running).counts.certStoreDeleted).toBe(300)
    expect(await stored(mount)).toEqual(issued.map(({ serial }) => serial).toSorted())
    expect(await node.certificates.count(mount)).toBe(200)
  })
})

test('tidy_expired_issuers removes issuers that ended longer ago than their buffer, never the default one', async () => {
  const mount = await world.mount()
  const now = world.clock.wall()
  const fallback = await addIssuer(world.node, mount, now - 9000 * hours)
  const recent = await addIssuer(world.node, mount, now - 8000 * hours, false)
  await addIssuer(world.node, mount, now - 8800 * hours, false)
  const run = await tidy(world.node, mount, { expiredIssuers: true })
  expect(run.state).toBe('Finished')
  const { issuers } = await world.node.authorities.of({ uuid: mount })
  expect([...issuers.keys()].toSorted()).toEqual([fallback, recent].toSorted())
  expect(world.node.lists.deleted).toEqual([mount])
})

test('tidy_move_legacy_ca_bundle answers that there is none', async () => {
  const run = await tidy(world.node, await world.mount(), { moveLegacyCaBundle: true })
  expect(run).toMatchObject({ state: 'Finished', message: 'There is no legacy CA bundle: nothing was moved.' })
})
