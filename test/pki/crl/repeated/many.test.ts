import { describe, expect, test } from 'vitest'
import { revocationTable } from '../../../../src/engines/pki/certificates/tables.ts'
import { manifestsTable } from '../../../../src/engines/pki/crl/tables.ts'
import { ledgersTable } from '../../../../src/engines/pki/revocation/tables.ts'
import { useWorker } from '../worker.ts'
import { hour, serialsOf } from '../world.ts'

/**
 * The cost of many revocations of the same serial numbers: COMMITs, and bytes of the manifest that every list verifies.
 */

const worker = useWorker('crlmany')

const segments = async (site = 'default') => (await worker.manifest()).sites[site]?.segments ?? []
const absorb = (site = 'default') => worker.node.builder.absorb(worker.ca.crlIssuer, site)
const sql = (text: string) => worker.cluster.place.sql(text, [worker.ca.crlIssuer])

/** The number of changes of the manifest; each is a COMMIT. */
async function commitsOf(work: () => Promise<unknown>): Promise<number> {
  const before = (await worker.manifest()).rev
  await work()
  return (await worker.manifest()).rev - before
}

async function manifestBytes(): Promise<number> {
  const [row] = await sql(`SELECT LENGTH(segments) AS bytes FROM ${manifestsTable.name} WHERE crl_issuer = UNHEX(?)`)
  return Number(row?.bytes)
}

const rowsAtOnce = 1000

/** `count` mounts revoke the certificate of one serial number. */
async function repeat(serial: string, count: number): Promise<void> {
  const { database } = worker.node
  const name = { crlIssuer: worker.ca.crlIssuer, site: 'default' }
  const common = { ...name, serial, issuer: 'i', notAfter: Date.now() + hour, revokedAt: Date.now(), reason: null }
  const ledgers = database.table(ledgersTable)
  for (let done = 0; done < count; done += rowsAtOnce) {
    const some = Math.min(rowsAtOnce, count - done)
    await database.transaction(async (tx) => {
      const ledger = await ledgers.lock(tx, name)
      if (ledger === undefined) throw new Error('nothing was revoked before')
      const rows = Array.from({ length: some }, (_, index) => ledger.last + 1 + index)
      await ledgers.update(tx, ledger, { last: ledger.last + some })
      await database.table(revocationTable).insertMany(
        tx,
        rows.map((seq) => ({ ...common, mount: `m${seq}`, seq })),
      )
    })
  }
}

const repeats = 10_000

describe('many revocations of one serial number', () => {
  test('take a COMMIT for 2,000 of them, though the last segment is nearly full, and few bytes to remember', async () => {
    const rows = await worker.revoke(1999)
    await absorb()
    const before = await manifestBytes()
    await repeat(rows[7]?.serial ?? '', repeats)
    rows.push(...(await worker.revoke(1)))
    expect(await commitsOf(() => absorb())).toBe(Math.ceil((repeats + 1) / 2000))
    expect((await manifestBytes()) - before).toBeLessThan(40)
    expect((await segments()).map(({ count }) => count)).toEqual([2000])
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
    await sql('DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?)')
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
  }, 120_000)

  test('behind a full segment take no more', async () => {
    const rows = await worker.revoke(2000)
    await absorb()
    const before = await manifestBytes()
    await repeat(rows[7]?.serial ?? '', 5000)
    expect(await commitsOf(() => absorb())).toBe(3)
    expect((await manifestBytes()) - before).toBeLessThan(40)
    expect((await segments()).map(({ count }) => count)).toEqual([2000])
  }, 60_000)

  test('and new ones in turn, of which some are tidied: never more ranges than entries, and one', async () => {
    const { node, ca } = worker
    const [often] = await worker.revoke(1)
    for (let n = 0; n < 40; n++) {
      await repeat(often?.serial ?? '', 3)
      await worker.revoke(1, n % 10 === 0 ? {} : { notAfter: node.clock.wall() + hour })
    }
    await worker.build()
    expect((await segments())[0]?.repeated).toHaveLength(40)
    node.clock.ahead += 2 * hour
    await worker.build()
    expect((await node.builder.removeEntries(ca.crlIssuer, 'default', () => true)).removed).toBe(36)
    const [left] = await segments()
    expect(left).toMatchObject({ count: 5 })
    expect(left?.repeated?.length).toBeLessThanOrEqual(6)
  })
})

test('revocations that the last segment has no room for come into the next one, behind those of listed serial numbers', async () => {
  const rows = await worker.revoke(1500)
  await absorb()
  await repeat(rows[0]?.serial ?? '', 300)
  rows.push(...(await worker.revoke(1500)))
  expect(await commitsOf(() => absorb())).toBe(2)
  expect((await segments()).map(({ count }) => count)).toEqual([2000, 1000])
  expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
  expect(worker.alarms()).toEqual([])
}, 30_000)

describe('revocations that two sites share', () => {
  test('are remembered as ranges, by manifests and by lists', async () => {
    const rows = await worker.revoke(3000)
    await worker.revoke(3000, { site: 'abroad', mount: 'n', serials: serialsOf(rows) })
    const { complete, row } = await worker.build({ scope: 'unified' })
    expect(complete.serials.toSorted()).toEqual(serialsOf(rows).toSorted())
    expect((await segments('abroad')).concat(await segments()).flatMap(({ elsewhere = [] }) => elsewhere)).toEqual([
      [1, 2000],
      [2001, 3000],
    ])
    expect(row.parts.flatMap(({ without = [] }) => without)).toHaveLength(2)
  }, 30_000)
})

test('numbers that a manifest had one by one are read, and become ranges', async () => {
  const rows = await worker.revoke(4)
  await worker.revoke(3, { mount: 'n', serials: serialsOf(rows.slice(0, 3)) })
  await absorb()
  const there = await worker.revoke(3, { site: 'abroad', mount: 'o', serials: serialsOf(rows.slice(0, 3)) })
  const both = await worker.build({ scope: 'unified' })
  expect(both.complete.serials.toSorted()).toEqual(serialsOf(rows).toSorted())
  const own = { segments: await segments(), away: await segments('abroad') }
  await worker.node.builder.manifests.change(worker.ca.crlIssuer, async (_, { sites }) => {
    const older = {
      default: { absorbed: 7, segments: own.segments.map((name) => ({ ...name, repeated: [5, 6, 7] })) },
      abroad: { absorbed: 3, segments: own.away.map((name) => ({ ...name, elsewhere: [1, 2, 3] })) },
    }
    expect(Object.keys(sites).toSorted()).toEqual(Object.keys(older).toSorted())
    return { after: { sites: older }, result: undefined }
  })
  await worker.revoke(1, { mount: 'p', serials: serialsOf(rows.slice(3)) })
  const more = await worker.revoke(1)
  await sql('DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?)')
  const { complete } = await worker.build({ scope: 'unified' })
  expect(complete.serials.toSorted()).toEqual(serialsOf([...rows, ...more]).toSorted())
  expect((await segments())[0]?.repeated).toEqual([[5, 8]])
  expect((await segments('abroad'))[0]?.elsewhere).toEqual([[1, there.length]])
})
