import { describe, expect, test } from 'vitest'
import { openSql } from '../../attack/sql.ts'
import { createAuthority, errorsOf, type TestAuthority } from '../../pki/api/authority.ts'
import type { Reply } from '../../support/client.ts'
import { readMetric } from '../../support/metric.ts'
import { done, expectData, expectRefused, fresh, useNode } from '../node.ts'

const node = useNode({ workers: 2 })
const at = (name: string) => `sys/quotas/lease-count/${name}`
const exceeded = (path: string) => `1 error occurred:\n\t* request path "${path}": lease count quota exceeded\n\n`

/** An authority whose role `r` gives a lease with each certificate. */
async function leasing(): Promise<TestAuthority> {
  const pki = await createAuthority(node)
  await pki.root()
  await pki.role('r', { generate_lease: true })
  return pki
}

const issue = (pki: TestAuthority): Promise<Reply> => pki.post('issue/r', { common_name: 'a.example', ttl: '1h' })
const counter = async (name: string): Promise<unknown> =>
  ((await node.root.get(at(name))).body as { data: { counter: unknown } }).data.counter
const violations = () => readMetric(node.root, 'vault_quota_lease_count_violation')
const leaseOf = (reply: Reply): string => (reply.body as { lease_id: string }).lease_id

describe('sys/quotas/lease-count', () => {
  test('what is set is read, listed, replaced and taken away', async () => {
    const [name, mount] = [fresh('q'), await node.mount()]
    expect((await node.root.post(at(name), { max_leases: 897, path: mount })).status).toBe(204)
    expectData(await node.root.get(at(name)), {
      ...{ counter: 0, inheritable: false, max_leases: 897, name, path: `${mount}/`, role: '', type: 'lease-count' },
    })
    const { body: listed } = await node.root.list('sys/quotas/lease-count')
    expect(listed).toMatchObject({ data: { keys: expect.arrayContaining([name]) } })
    const twin = await node.root.post(at(fresh('q')), { max_leases: 5, path: `${mount}/` })
    expectRefused(twin, 400, `quota rule with similar properties exists under the name "${name}"`)
    await done(node.root.post(at(name), { max_leases: 5, path: mount }))
    expect((await node.root.get(at(name))).body).toMatchObject({ data: { max_leases: 5 } })
    expect((await node.root.delete(at(name))).status).toBe(204)
    expectRefused(await node.root.get(at(name)), 404)
  })

  test.each([
    [{}, 'max_leases must be from 1 to 1000000000'],
    [{ max_leases: 0 }, 'max_leases must be from 1 to 1000000000'],
    [{ max_leases: 5, role: 'app' }, 'role is not available: no auth method here has roles'],
    [{ max_leases: 5, path: 'nowhere/at/all' }, 'invalid mount path nowhere/at/all'],
    [{ max_leases: 5, path: 'transit/keys' }, 'path must be a mount, or empty for all: leases are counted by mount'],
    [{ max_leases: 5, path: 'transit/*' }, 'path must be a mount, or empty for all: leases are counted by mount'],
    [{ max_leases: 5, path: 'auth/token' }, 'auth/token/ gives no leases that are counted: tokens are not among them'],
    [{ max_leases: 5, path: 'transit', inheritable: true }, 'inheritable can only be set for a quota of all mounts'],
    [{ max_leases: 5, type: 'rate-limit' }, 'type must be lease-count'],
  ])('%j is refused', async (body, why) => {
    expectRefused(await node.root.post(at(fresh('q')), body), 400, why)
  })

  test('needs no sudo, as in the reference', async () => {
    const client = await node.limited('path "sys/quotas/*" { capabilities = ["read", "update", "delete", "list"] }')
    const [name, pki] = [fresh('q'), await leasing()]
    expect((await client.post(at(name), { max_leases: 5, path: pki.path })).status).toBe(204)
    expect((await client.get(at(name))).status).toBe(200)
    expect((await client.list('sys/quotas/lease-count')).status).toBe(200)
    expect((await client.delete(at(name))).status).toBe(204)
  })
})

describe('a lease beyond the quota of its mount', () => {
  test('is refused before anything is stored, and given once another has ended', async () => {
    const [name, pki] = [fresh('q'), await leasing()]
    const old = await done(issue(pki))
    await done(node.root.post(at(name), { max_leases: 2, path: pki.path }))
    expect(await counter(name)).toBe(1)
    await done(issue(pki))
    const before = (await pki.list('certs')).body
    expectRefused(await issue(pki), 429, exceeded(`${pki.path}/issue/r`))
    expect((await pki.list('certs')).body).toMatchObject({ data: (before as { data: object }).data })
    expect(await counter(name)).toBe(2)
    await done(node.root.post('sys/leases/revoke', { lease_id: leaseOf(old) }))
    expect(await counter(name)).toBe(1)
    await done(issue(pki))
    expect((await issue(pki)).status).toBe(429)
    await done(node.root.post(`sys/leases/revoke-force/${pki.path}`))
    expect(await counter(name)).toBe(0)
    await done(issue(pki))
  })

  test('is refused by the leases there are once the quota is written, whatever their count was', async () => {
    const [name, pki] = [fresh('q'), await leasing()]
    await done(issue(pki))
    await done(issue(pki))
    await using database = await openSql(node.server.database.url)
    const drift = (by: number) =>
      database.rows(
        "UPDATE tallies SET n = n + ? WHERE name = CONCAT('leases-', (SELECT id FROM mounts WHERE path = ?)) LIMIT 1",
        [by, `${pki.path}/`],
      )
    for (const by of [-5, 7]) {
      await drift(by)
      const writes = [at(name), at(name), at(name)].map((path) =>
        node.root.post(path, { max_leases: 3, path: pki.path }),
      )
      expect((await Promise.all(writes)).map(({ status }) => status)).toEqual([204, 204, 204])
      expect(await counter(name)).toBe(2)
    }
    expect([(await issue(pki)).status, (await issue(pki)).status]).toEqual([200, 429])
  })

  test('counts as a violation', async () => {
    const [name, pki] = [fresh('q'), await leasing()]
    await done(node.root.post(at(name), { max_leases: 1, path: pki.path }))
    await done(issue(pki))
    const before = await violations()
    for (let count = 0; count < 6; count++) expect((await issue(pki)).status).toBe(429)
    expect(await violations()).toBe(before + 6)
  })

  test('is none of a certificate without a lease', async () => {
    const [name, pki] = [fresh('q'), await leasing()]
    await pki.role('free')
    await done(node.root.post(at(name), { max_leases: 1, path: pki.path }))
    await done(issue(pki))
    expect((await issue(pki)).status).toBe(429)
    await done(pki.post('issue/free', { common_name: 'a.example' }))
  })

  test('is refused by a quota smaller than what there is, until there is room', async () => {
    const [name, pki] = [fresh('q'), await leasing()]
    const given = [await done(issue(pki)), await done(issue(pki)), await done(issue(pki))]
    await done(node.root.post(at(name), { max_leases: 1, path: pki.path }))
    expect([await counter(name), (await issue(pki)).status]).toEqual([3, 429])
    for (const one of given) await done(node.root.post('sys/leases/revoke', { lease_id: leaseOf(one) }))
    await done(issue(pki))
  })

  test('is refused exactly, of 200 at once over two workers', { timeout: 120_000 }, async () => {
    const [name, pki] = [fresh('q'), await leasing()]
    await done(node.root.post(at(name), { max_leases: 37, path: pki.path }))
    const replies = await Promise.all(Array.from({ length: 200 }, () => issue(pki)))
    const byStatus = Map.groupBy(replies, ({ status }) => status)
    expect([...byStatus].map(([status, some]) => [status, some.length]).toSorted()).toEqual([
      [200, 37],
      [429, 163],
    ])
    expect(errorsOf(byStatus.get(429)?.[0] as Reply)).toEqual([exceeded(`${pki.path}/issue/r`)])
    expect(await counter(name)).toBe(37)
    const { body } = await node.root.list(`sys/leases/lookup/${pki.path}/issue/r`)
    expect((body as { data: { keys: unknown[] } }).data.keys).toHaveLength(37)
  })
})

describe('a quota of all mounts', () => {
  test('counts the leases of those without one of their own', { timeout: 60_000 }, async () => {
    const [all, own] = [fresh('q'), fresh('q')]
    const [free, bound] = [await leasing(), await leasing()]
    await done(issue(free))
    await done(issue(bound))
    await done(node.root.post(at(own), { max_leases: 3, path: bound.path }))
    await done(node.root.post(at(all), { max_leases: 1_000_000 }))
    const there = Number(await counter(all))
    await done(node.root.post(at(all), { max_leases: there + 1, inheritable: true }))
    expect((await node.root.get(at(all))).body).toMatchObject({ data: { path: '', inheritable: true } })
    await done(issue(bound))
    expect([await counter(all), await counter(own)]).toEqual([there, 2])
    await done(issue(free))
    expectRefused(await issue(free), 429, exceeded(`${free.path}/issue/r`))
    await done(issue(bound))
    expect([await counter(all), await counter(own)]).toEqual([there + 1, 3])
    expect((await issue(bound)).status).toBe(429)
    await done(node.root.delete(at(own)))
    expect([await counter(all), (await issue(bound)).status]).toEqual([there + 4, 429])
    await done(node.root.delete(at(all)))
    await done(issue(free))
  })
})
