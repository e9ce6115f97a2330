import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CertificateRow } from '../../../src/engines/pki/certificates/tables.ts'
import { type CertificateNode, type CertificateWorld, createCertificateWorld, minute, newMount } from './world.ts'

let world: CertificateWorld
let north: CertificateNode
beforeAll(async () => {
  world = await createCertificateWorld()
  north = await world.join({ site: 'north' })
  await north.database.start()
})
afterAll(() => world?.[Symbol.asyncDispose]())

/** Stores `count` certificates that expire a minute apart, of two issuers in turn. */
async function fill({ certificates, fresh }: CertificateNode, mount: string, count: number): Promise<CertificateRow[]> {
  const begin = world.clock.wall() + 60 * minute
  const storing = Array.from({ length: count }, (_, n) =>
    certificates.store(fresh({ mount, issuer: `issuer ${n % 2}`, notAfter: begin + Math.floor(n / 2) * minute })),
  )
  return Promise.all(storing)
}

const inOrder = (texts: readonly string[]): string[] => texts.toSorted((a, b) => (a < b ? -1 : 1))

describe('a list of certificates', () => {
  test('gives the serials of the site in their order, page by page', async () => {
    const { uuid: mount } = newMount()
    const { lists, certificates, fresh } = world.node
    const short = ['00', '0a', '0a00', '0a0b', 'ff']
    for (const serial of short) await certificates.store(fresh({ mount, serial }))
    const serials = inOrder([...short, ...(await fill(world.node, mount, 60)).map(({ serial }) => serial)])
    await fill(north, mount, 10)
    const found: string[] = []
    for (let page = await lists.list(mount, { limit: 7 }); page.length > 0; ) {
      found.push(...page)
      page = await lists.list(mount, { limit: 7, after: page.at(-1) ?? '' })
    }
    expect(found).toEqual(serials)
    const hyphened = found.map((serial) => serial.replaceAll(/..(?=.)/g, '$&-'))
    expect(inOrder(hyphened)).toEqual(hyphened)
    expect(await lists.list(newMount().uuid, { limit: 7 })).toEqual([])
  })

  test('with details is in the order of serials', async () => {
    const { uuid: mount } = newMount()
    const rows = await fill(world.node, mount, 20)
    const [first, ...rest] = inOrder(rows.map(({ serial }) => serial))
    const page = await world.node.lists.detailed(mount, { limit: 10, after: first ?? '' })
    expect(page.map(({ serial }) => serial)).toEqual(rest.slice(0, 10))
    expect(rows).toContainEqual(page[0])
  })

  test('filtered by expiry, issuer or both is in the order of expiry', async () => {
    const { uuid: mount } = newMount()
    const rows = await fill(world.node, mount, 40)
    await fill(north, mount, 4)
    const expected = (holds: (row: CertificateRow) => boolean) =>
      rows.filter(holds).toSorted((a, b) => a.notAfter - b.notAfter || (a.serial < b.serial ? -1 : 1))
    const expiresBefore = rows[20]?.notAfter ?? 0
    const issuer = 'issuer 1'
    const filters = [
      { filter: { expiresBefore }, holds: (row: CertificateRow) => row.notAfter < expiresBefore, count: 20 },
      { filter: { issuer }, holds: (row: CertificateRow) => row.issuer === issuer, count: 20 },
      {
        filter: { issuer, expiresBefore },
        holds: (row: CertificateRow) => row.issuer === issuer && row.notAfter < expiresBefore,
        count: 10,
      },
    ]
    for (const { filter, holds, count } of filters) {
      const found: CertificateRow[] = []
      for (let page = await world.node.lists.detailed(mount, { limit: 3 }, filter); page.length > 0; ) {
        found.push(...page)
        page = await world.node.lists.detailed(mount, { limit: 3, after: page.at(-1)?.serial ?? '' }, filter)
      }
      expect(found).toEqual(expected(holds))
      expect(found).toHaveLength(count)
    }
  })

  test('filtered, continues only after a stored serial', async () => {
    const { uuid: mount } = newMount()
    await fill(world.node, mount, 2)
    await expect(world.node.lists.detailed(mount, { limit: 3, after: 'ab' }, { issuer: 'x' })).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/^after: /),
    })
  })
})

describe('a site', () => {
  test('finds, counts and lists its own certificates alone', async () => {
    const { uuid: mount } = newMount()
    const [own] = await fill(world.node, mount, 3)
    const [other] = await fill(north, mount, 2)
    if (own === undefined || other === undefined) throw new Error('none were stored')
    expect(other.site).toBe('north')
    const { certificates } = world.node
    expect((await certificates.find(own))?.certificate).toEqual(own)
    expect(await certificates.find(other)).toBeUndefined()
    expect((await north.certificates.find(other))?.certificate).toEqual(other)
    expect([await certificates.count(mount), await north.certificates.count(mount)]).toEqual([3, 2])
    expect(await north.lists.list(mount, { limit: 10 })).toHaveLength(2)
  })

  test('revokes by lease what another site has issued, for that site', async () => {
    const { certificate, lease } = await north.issue(await north.token(), { mount: world.mount.uuid })
    await world.node.leases.revoke(lease.id)
    expect((await north.certificates.find(certificate))?.revocation?.site).toBe('north')
  })
})
