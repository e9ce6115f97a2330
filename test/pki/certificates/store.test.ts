import { randomBytes } from 'node:crypto'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { longestCertificate } from '../../../src/engines/pki/certificates/certificates.ts'
import { DuplicateRow } from '../../../src/store/faults.ts'
import { Line } from '../../store/line.ts'
import { type CertificateWorld, createCertificateWorld, minute, newMount } from './world.ts'

let world: CertificateWorld
beforeAll(async () => {
  world = await createCertificateWorld(2)
})
afterAll(() => world?.[Symbol.asyncDispose]())

const number = async (sql: string, values: unknown[] = []): Promise<number> =>
  Number((await world.sql(sql, values))[0]?.n)
const stored = (mount: string) => number('SELECT COUNT(*) AS n FROM pki_certificates WHERE mount = ?', [mount])
const commits = () => number('SELECT COUNT(*) AS n FROM outcomes')

describe('storing a certificate', () => {
  test('answers its row, which every worker finds under its serial', async () => {
    const { certificates, fresh } = world.node
    const certificate = fresh()
    const row = await certificates.store(certificate)
    expect(row).toMatchObject({ ...certificate, site: 'default', id: expect.stringMatching(/^.{14}7/) })
    for (const node of world.nodes)
      expect(await node.certificates.find(certificate)).toEqual({ certificate: row, revocation: undefined })
  })

  test('shares commits with others stored at once, more than any pool holds, and each waits for its own', async () => {
    const { uuid: mount } = newMount()
    const before = await commits()
    await using other = await createConnection(world.url)
    const storing = Array.from({ length: 600 }, async (_, n) => {
      const { certificates, fresh } = world.nodes[n % 2] ?? world.node
      const { serial } = await certificates.store(fresh({ mount }))
      const sql = 'SELECT id FROM pki_certificates WHERE serial = ?'
      return (await other.query<RowDataPacket[]>(sql, [Buffer.from(serial, 'hex')]))[0].length
    })
    expect(new Set(await Promise.all(storing))).toEqual(new Set([1]))
    expect((await commits()) - before).toBeLessThan(60)
    expect(await stored(mount)).toBe(600)
    expect(await world.node.certificates.count(mount)).toBe(600)
  })

  test('refuses a serial that the mount has, without harm to others stored beside it', async () => {
    const { certificates, fresh } = world.node
    const { uuid: mount } = newMount()
    const first = await certificates.store(fresh({ mount }))
    const again = fresh({ mount, serial: first.serial })
    const others = Array.from({ length: 10 }, () => fresh({ mount }))
    const group = [...others.slice(0, 5), again, ...others.slice(5)]
    const outcomes = await Promise.allSettled(group.map((one) => certificates.store(one)))
    const failed = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    expect(failed).toEqual([expect.any(DuplicateRow)])
    expect(failed[0]).toMatchObject({ table: 'pki_certificates' })
    expect([await stored(mount), await certificates.count(mount)]).toEqual([11, 11])
    expect((await certificates.find({ mount, serial: first.serial }))?.certificate).toEqual(first)
    await certificates.store(fresh({ mount: newMount().uuid, serial: first.serial }))
  })

  test('takes 64 of the longest at once, and refuses a longer one by its length', async () => {
    const { certificates, fresh } = world.node
    const { uuid: mount } = newMount()
    const longest = Array.from({ length: 64 }, () => fresh({ mount, der: randomBytes(longestCertificate) }))
    const rows = await Promise.all(longest.map((one) => certificates.store(one)))
    expect(rows.map(({ der }) => der)).toEqual(longest.map(({ der }) => der))
    const longer = fresh({ mount, der: randomBytes(longestCertificate + 1) })
    await expect(certificates.store(longer)).rejects.toMatchObject({
      status: 400,
      message: 'the certificate would have 65536 bytes; at most 65535 can be stored',
    })
    expect(await stored(mount)).toBe(64)
  })

  test('stores each once when the line is cut around the COMMIT of its group', async () => {
    await using line = await Line.open(world.url)
    const { certificates, fresh } = await world.join({ url: line.url })
    const { uuid: mount } = newMount()
    for (const cut of ['before', 'after'] as const) {
      line.cut = cut
      await Promise.all(Array.from({ length: 50 }, () => certificates.store(fresh({ mount }))))
      expect(line.cut).toBe('none')
    }
    expect([await stored(mount), await certificates.count(mount)]).toEqual([100, 100])
  })
})

describe('a certificate with a lease', () => {
  test('is committed together with it, under the path of its request, until it expires', async () => {
    const { issue, token, leases, fresh } = world.node
    const holder = await token()
    const before = await commits()
    const issued = await Promise.all(Array.from({ length: 20 }, () => issue(holder)))
    expect((await commits()) - before).toBeLessThan(5)
    for (const { certificate, lease } of issued) {
      expect(lease.id).toMatch(/^pki\/issue\/web\/[0-9A-Za-z]{24}$/)
      expect(lease.renewable).toBe(false)
      const row = await leases.find(lease.id)
      expect(row?.payload).toMatchObject({ serial: certificate.serial, notAfter: certificate.notAfter })
      expect(Math.abs(Number(row?.expiresAt) - certificate.notAfter)).toBeLessThan(1500)
    }
    expect(world.node.certificates.leaseRequest(fresh({ notAfter: world.clock.wall() - minute })).ttlSeconds).toBe(0)
  })

  test('leaves no lease behind when its serial is taken', async () => {
    const { issue, token, leases } = world.node
    const holder = await token()
    const { certificate } = await issue(holder)
    const before = await leases.count()
    await expect(issue(holder, { serial: certificate.serial })).rejects.toBeInstanceOf(DuplicateRow)
    expect(await leases.count()).toBe(before)
    expect(await number('SELECT COUNT(*) AS n FROM leases WHERE token = ?', [holder.id])).toBe(1)
  })

  test('is never renewed', async () => {
    const { issue, token, leases } = world.node
    const { lease } = await issue(await token())
    await expect(leases.renew(lease.id, 60)).rejects.toMatchObject({ status: 400, message: 'lease is not renewable' })
  })
})
