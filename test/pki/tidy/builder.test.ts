import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Authorities, createAuthority } from '../../../src/engines/pki/authority/authorities.ts'
import { IssuerRows } from '../../../src/engines/pki/authority/issuerrows.ts'
import { Certificates } from '../../../src/engines/pki/certificates/certificates.ts'
import { revocationTable } from '../../../src/engines/pki/certificates/tables.ts'
import { ledgersTable } from '../../../src/engines/pki/revocation/tables.ts'
import { defaultOrder } from '../../../src/engines/pki/tidy/settings.ts'
import { isActive } from '../../../src/engines/pki/tidy/tables.ts'
import { Tidying } from '../../../src/engines/pki/tidy/tidying.ts'
import { Runner } from '../../../src/jobs/runner.ts'
import { Metrics } from '../../../src/metrics.ts'
import { type Cluster, useCluster } from '../../keys/support.ts'
import { quiet } from '../../store/support.ts'
import { createCa, createSet, hour, nodeAt, read, targetOf } from '../crl/world.ts'

let cluster: Cluster
useCluster('crltidy', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
})

test('tidy takes revocations out of real lists: exactly the revoked and not yet tidied are listed, without an alarm', async () => {
  const { database } = cluster.place
  const node = nodeAt(database)
  const { clock, builder, site } = node
  const ca = await createCa(cluster)
  const mount = randomUUID()
  await database.transaction((tx) => createAuthority({ database, clock }, tx, mount))
  const common = { database, clock, site, log: quiet, metrics: new Metrics() }
  const build = () => builder.build(targetOf(ca, mount))
  const listed = async () => read(await node.whole((await build()).complete), ca).serials
  const authorities = new Authorities(common)
  await using runner = new Runner(common)
  let removals = 0
  const tidying = new Tidying({
    ...common,
    authorities,
    issuerRows: new IssuerRows(common),
    certificates: new Certificates({ ...common, leases: { insert: async () => undefined } }),
    start: (job) => runner.start(job),
    lists: {
      absorb: ({ crlIssuer, site: of }) => builder.absorb(crlIssuer, of),
      async removeEntries({ crlIssuer, site: of }, end) {
        removals++
        await builder.absorb(crlIssuer, of)
        return builder.removeEntries(crlIssuer, of, ({ notAfter }) => notAfter * 1000 <= end)
      },
      rebuild: async () => {
        await build()
        return []
      },
      afterDeletion: async () => [],
      withdraw: async () => undefined,
      associate: async () => ({ missing: 0 }),
    },
  })
  const tidy = async () => {
    await tidying.begin(mount, { ...defaultOrder, revokedCerts: true, safetyBuffer: 1 })
    for (;;) {
      const run = await tidying.runs.find(mount)
      if (run !== undefined && !isActive(run)) return run
      await delay(20)
    }
  }
  const serials = Array.from({ length: 700 }, () => `41${randomBytes(19).toString('hex')}`)
  await database.transaction(async (tx) => {
    await database.table(ledgersTable).insert(tx, { crlIssuer: ca.crlIssuer, site, last: serials.length })
    await database.table(revocationTable).insertMany(
      tx,
      serials.map((serial, index) => ({
        ...{ mount, site, serial, issuer: 'i', revokedAt: clock.wall(), crlIssuer: ca.crlIssuer, reason: null },
        ...{ seq: index + 1, notAfter: clock.wall() + (index % 2 === 0 ? hour : 1000 * hour) },
      })),
    )
  })
  const lasting = serials.filter((_, index) => index % 2 === 1)
  expect(await listed()).toEqual(serials)
  clock.ahead = 2 * hour
  // No list made past the end has carried them: lists are built first.
  const run = await tidy()
  expect(run).toMatchObject({ state: 'Finished', carried: true, counts: { revokedCertDeleted: 350 } })
  expect(removals).toBe(2)
  expect(await listed()).toEqual(lasting)
  expect(node.alarms).toEqual([])
  expect((await tidy()).counts.revokedCertDeleted).toBe(0)
  const left = await database.read((q) => database.table(revocationTable).count(q, { mount }))
  expect(left).toBe(350)
  expect(node.alarms).toEqual([])
})
