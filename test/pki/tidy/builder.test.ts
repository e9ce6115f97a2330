import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import { type RevocationRow, revocationTable } from '../../../src/engines/pki/certificates/tables.ts'
import { ledgersTable } from '../../../src/engines/pki/revocation/tables.ts'
import { defaultOrder, type TidyOrder } from '../../../src/engines/pki/tidy/settings.ts'
import { isActive } from '../../../src/engines/pki/tidy/tables.ts'
import { clock, TestMount, useOcspWorld } from '../ocsp/world.ts'

/** Tidy and lists as the engine joins them. */

const world = useOcspWorld()
const hour = 3_600_000
let pki: TestMount
beforeEach(async () => {
  clock.ahead = 0
  pki = await TestMount.make(world.worker)
})

/** The serial numbers on the mount's list after a rebuild. */
async function listed(): Promise<string[]> {
  expect(await world.worker.context.crls.rebuild(pki.mount)).toEqual([])
  return pki.listed()
}

async function tidy(order: Partial<TidyOrder>) {
  const { tidying } = world.worker.context
  await tidying.begin(pki.mount.uuid, { ...defaultOrder, ...order })
  for (;;) {
    const run = await tidying.runs.find(pki.mount.uuid)
    if (run !== undefined && !isActive(run)) return run
    await delay(20)
  }
}

/** Records a revocation for each end, in this order. @returns their serial numbers */
async function revoke(ends: readonly number[]): Promise<string[]> {
  const { database } = world.worker
  const { row, certificate } = await pki.issuer()
  const crlIssuer = crlIssuerOf(certificate)
  const rows = ends.map((notAfter, index) => ({
    ...{ mount: pki.mount.uuid, site: 'default', serial: `41${randomBytes(19).toString('hex')}`, issuer: row.id },
    ...{ revokedAt: clock.wall(), crlIssuer, reason: null, seq: index + 1, notAfter },
  }))
  await database.transaction(async (tx) => {
    await database.table(ledgersTable).insert(tx, { crlIssuer, site: 'default', last: rows.length })
    await database.table(revocationTable).insertMany(tx, rows)
  })
  return rows.map(({ serial }) => serial)
}

const recorded = () =>
  world.worker.database.read((q) => world.worker.database.table(revocationTable).count(q, { mount: pki.mount.uuid }))

describe('tidy_revoked_certs', () => {
  test('takes ended revocations out of lists, and no others, without an alarm', async () => {
    const serials = await revoke(
      Array.from({ length: 700 }, (_, index) => clock.wall() + (index % 2 === 0 ? hour : 1000 * hour)),
    )
    const lasting = serials.filter((_, index) => index % 2 === 1)
    expect(await listed()).toEqual(serials)
    clock.ahead = 2 * hour
    // No list made past the end has carried them: lists are built first.
    const run = await tidy({ revokedCerts: true, safetyBuffer: 1 })
    expect(run).toMatchObject({ state: 'Finished', carried: true, counts: { revokedCertDeleted: 350 } })
    expect(await listed()).toEqual(lasting)
    expect((await tidy({ revokedCerts: true, safetyBuffer: 1 })).counts.revokedCertDeleted).toBe(0)
    expect(await recorded()).toBe(350)
    expect(world.worker.reports).toEqual([])
  })

  test('leaves entries on lists that ended within the safety buffer', async () => {
    const ends = [1, 1.8, 1000, 1, 1.8, 1000].map((hours) => clock.wall() + hours * hour)
    const serials = await revoke(ends)
    clock.ahead = 2 * hour
    expect(await listed()).toEqual(serials)
    const none = await tidy({ revokedCerts: true, safetyBuffer: 72 * 3600 })
    expect([none.state, none.counts.revokedCertDeleted]).toEqual(['Finished', 0])
    expect(await listed()).toEqual(serials)
    const some = await tidy({ revokedCerts: true, safetyBuffer: 1800 })
    expect([some.state, some.counts.revokedCertDeleted]).toEqual(['Finished', 2])
    expect(await listed()).toEqual(serials.filter((_, index) => index % 3 !== 0))
    expect(await recorded()).toBe(4)
  })
})

test('tidy_revoked_cert_issuer_associations tells how many revocations had no issuer, and how many it gave one', async () => {
  const found: RevocationRow[] = []
  for (let n = 0; n < 2; n++) found.push(await pki.revoke(await pki.issue(), { issuer: '', crlIssuer: null }))
  await pki.revoke(randomBytes(10).toString('hex'), { issuer: '', crlIssuer: null })
  const run = await tidy({ revokedCertIssuerAssociations: true })
  expect(run.counts).toMatchObject({ missingIssuerCert: 3, fixedIssuers: 2 })
  expect((await listed()).toSorted()).toEqual(found.map(({ serial }) => serial).toSorted())
  const gauges = () =>
    world.worker.metrics
      .snapshot()
      .filter(({ name }) => name.startsWith('vault.secrets.pki.tidy.revoked_cert_entries_'))
      .map((series) => [series.name.split('entries_')[1], 'value' in series && series.value])
  expect(gauges()).toEqual([
    ['incorrect_issuers', 3],
    ['fixed_issuers', 2],
  ])
  await tidy({ certStore: true })
  expect(gauges()).toEqual([
    ['incorrect_issuers', 3],
    ['fixed_issuers', 2],
  ])
  await tidy({ revokedCertIssuerAssociations: true })
  expect(gauges()).toEqual([
    ['incorrect_issuers', 1],
    ['fixed_issuers', 0],
  ])
})
