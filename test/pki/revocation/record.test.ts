import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manifestsTable } from '../../../src/engines/pki/crl/tables.ts'
import { revocationTally } from '../../../src/engines/pki/revocation/tables.ts'
import { type CertificateWorld, createCertificateWorld, minute } from '../certificates/world.ts'

let world: CertificateWorld
beforeAll(async () => {
  world = await createCertificateWorld(2)
})
afterAll(() => world?.[Symbol.asyncDispose]())

const newIssuer = () => randomBytes(32).toString('hex')
const bytes = (hex: string) => Buffer.from(hex, 'hex')
const worker = (n: number) => world.nodes[n % 2] ?? world.node
const from1To = (n: number) => Array.from({ length: n }, (_, index) => index + 1)

/** The numbers given to revocations of a CRL issuer, in their order, and the last one in its ledger. */
async function numbersOf(crlIssuer: string, site = 'default') {
  const rows = await world.sql('SELECT seq FROM pki_revocations WHERE crl_issuer = ? AND site = ? ORDER BY seq', [
    bytes(crlIssuer),
    site,
  ])
  const ledger = await world.sql('SELECT last FROM pki_ledgers WHERE crl_issuer = ? AND site = ?', [
    bytes(crlIssuer),
    site,
  ])
  return { seqs: rows.map(({ seq }) => Number(seq)), ledger: ledger.map(({ last }) => Number(last)) }
}

describe('the number of a revocation', () => {
  test('has no gap, however many revoke at once on several workers', async () => {
    const crlIssuer = newIssuer()
    await Promise.all(from1To(200).map((n) => worker(n).revoke(worker(n).fresh(), { crlIssuer })))
    expect(await numbersOf(crlIssuer)).toEqual({ seqs: from1To(200), ledger: [200] })
  })

  test('is of its CRL issuer and site alone, many of which share commits', async () => {
    const issuers = from1To(8).map(newIssuer)
    const orders = issuers.flatMap((crlIssuer) =>
      ['default', 'north'].flatMap((site) => from1To(6).map(() => ({ crlIssuer, site }))),
    )
    await Promise.all(orders.map((order, n) => worker(n).revoke(worker(n).fresh(), order)))
    for (const crlIssuer of issuers) {
      for (const site of ['default', 'north']) {
        expect(await numbersOf(crlIssuer, site)).toEqual({ seqs: from1To(6), ledger: [6] })
      }
    }
  })

  test('is given once for a certificate, and not for a repetition', async () => {
    const crlIssuer = newIssuer()
    const certificate = world.node.fresh()
    const rows = await Promise.all(from1To(100).map((n) => worker(n).revoke(certificate, { crlIssuer })))
    expect(new Set(rows.map(({ id }) => id)).size).toBe(1)
    expect(await numbersOf(crlIssuer)).toEqual({ seqs: [1], ledger: [1] })
  })

  test('is that of no transaction that failed', async () => {
    const crlIssuer = newIssuer()
    const { node } = world
    await node.revoke(node.fresh(), { crlIssuer })
    await expect(node.revoke({ ...node.fresh(), issuer: 'x'.repeat(100) }, { crlIssuer })).rejects.toThrow()
    await node.revoke(node.fresh(), { crlIssuer })
    expect(await numbersOf(crlIssuer)).toEqual({ seqs: [1, 2], ledger: [2] })
  })

  test('is found with 500 at once on a pool of four connections, beside other work', async () => {
    const crlIssuer = newIssuer()
    const { node } = world
    const revoked = Promise.all(from1To(500).map(() => node.revoke(node.fresh(), { crlIssuer })))
    const stored = await Promise.all(from1To(20).map(() => node.certificates.store(node.fresh())))
    expect(stored).toHaveLength(20)
    await revoked
    expect(await numbersOf(crlIssuer)).toEqual({ seqs: from1To(500), ledger: [500] })
  })
})

describe('the record', () => {
  test('is that of the first: its time, reason and CRL issuer stay', async () => {
    const { node } = world
    const certificate = node.fresh()
    const [first, second] = [newIssuer(), newIssuer()]
    const row = await node.revoke(certificate, { crlIssuer: first, reason: 1 })
    world.clock.ahead += minute
    expect(await worker(1).revoke(certificate, { crlIssuer: second, reason: 4 })).toEqual(row)
    world.clock.ahead -= minute
    expect(row).toMatchObject({ crlIssuer: first, reason: 1, seq: 1 })
    expect(await numbersOf(second)).toEqual({ seqs: [], ledger: [] })
  })

  test('without a CRL issuer has no number, and takes both when the issuer is known, but of no other site', async () => {
    const { node } = world
    const certificate = node.fresh()
    const crlIssuer = newIssuer()
    const row = await node.revoke(certificate, { crlIssuer: null })
    expect(row).toMatchObject({ crlIssuer: null, seq: null })
    expect(await node.revoke(certificate, { crlIssuer, site: 'north' })).toEqual(row)
    const both = await Promise.all(from1To(20).map((n) => worker(n).revoke(certificate, { crlIssuer })))
    for (const one of both) expect(one).toMatchObject({ crlIssuer, seq: 1, revokedAt: row.revokedAt, id: row.id })
    expect(await numbersOf(crlIssuer)).toEqual({ seqs: [1], ledger: [1] })
  })

  test('of several orders in one commit takes the CRL issuer that one of them knows', async () => {
    const { node } = world
    const certificate = node.fresh()
    const crlIssuer = newIssuer()
    const rows = await Promise.all(
      [null, crlIssuer, null].map((known) => node.revoke(certificate, { crlIssuer: known })),
    )
    for (const row of rows) expect(row.id).toBe(rows[0]?.id)
    expect(await numbersOf(crlIssuer)).toEqual({ seqs: [1], ledger: [1] })
  })

  test('is counted once, by mount and site', async () => {
    const { node, mount } = world
    const tally = revocationTally(mount.uuid, 'counted')
    const certificate = node.fresh()
    for (let n = 0; n < 2; n++) await node.revoke(certificate, { site: 'counted' })
    expect(await node.database.tally(tally)).toBe(1)
  })
})

describe('a ledger', () => {
  const damaged = { status: 503, messages: [expect.stringContaining('the ledger of revocations is damaged')] }

  test('that was put back refuses numbers that are taken', async () => {
    const { node } = world
    const crlIssuer = newIssuer()
    await node.revoke(node.fresh(), { crlIssuer })
    const [old] = await world.sql('SELECT * FROM pki_ledgers WHERE crl_issuer = ?', [bytes(crlIssuer)])
    await node.revoke(node.fresh(), { crlIssuer })
    await world.sql('DELETE FROM pki_ledgers WHERE crl_issuer = ?', [bytes(crlIssuer)])
    await world.sql('INSERT INTO pki_ledgers SET ?', [old])
    await expect(node.revoke(node.fresh(), { crlIssuer })).rejects.toMatchObject(damaged)
    expect(await numbersOf(crlIssuer)).toEqual({ seqs: [1, 2], ledger: [1] })
  })

  test.each(['removed', 'edited'])('that was %s refuses, and harms no other', async (how) => {
    const { node } = world
    const [crlIssuer, sound] = [newIssuer(), newIssuer()]
    await node.revoke(node.fresh(), { crlIssuer })
    const where = 'WHERE crl_issuer = ?'
    const attack = { removed: `DELETE FROM pki_ledgers ${where}`, edited: `UPDATE pki_ledgers SET last = 5 ${where}` }
    await world.sql(attack[how as keyof typeof attack], [bytes(crlIssuer)])
    const both = await Promise.allSettled([
      node.revoke(node.fresh(), { crlIssuer }),
      node.revoke(node.fresh(), { crlIssuer: sound }),
    ])
    expect(both).toMatchObject([{ status: 'rejected', reason: damaged }, { status: 'fulfilled' }])
    expect((await numbersOf(crlIssuer)).seqs).toEqual([1])
  })

  test('below the number that lists have taken in refuses, even when the revocations are gone', async () => {
    const { node } = world
    const crlIssuer = newIssuer()
    const { database } = node
    for (let n = 0; n < 3; n++) await node.revoke(node.fresh(), { crlIssuer })
    const manifest = { crlIssuer, absorbed: { default: 3 }, segments: {}, published: {} }
    await database.transaction((tx) => database.table(manifestsTable).insert(tx, manifest))
    await node.revoke(node.fresh(), { crlIssuer })
    await world.sql('DELETE FROM pki_ledgers WHERE crl_issuer = ?', [bytes(crlIssuer)])
    await world.sql('DELETE FROM pki_revocations WHERE crl_issuer = ?', [bytes(crlIssuer)])
    await expect(node.revoke(node.fresh(), { crlIssuer })).rejects.toMatchObject(damaged)
    expect(await numbersOf(crlIssuer)).toEqual({ seqs: [], ledger: [] })
  })
})
