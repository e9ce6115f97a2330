import { describe, expect, test } from 'vitest'
import type { Reply } from '../../support/client.ts'
import { readMetric } from '../../support/metric.ts'
import { done, expectData, expectRefused, fresh, useNode } from '../node.ts'

const node = useNode()
const at = (name: string) => `sys/quotas/rate-limit/${name}`
const set = (name: string, body: object) => node.root.post(at(name), { interval: '10m', ...body })
const exceeded = (reply: Reply, path: string): void => {
  expectRefused(reply, 429, `request path "${path}": rate limit quota exceeded`)
  expect(Number(reply.headers['retry-after'])).toBeGreaterThan(500)
}

describe('sys/quotas/rate-limit', () => {
  test('what is set is read, listed and taken away', async () => {
    const [name, mount] = [fresh('q'), await node.mount()]
    const body = { rate: 897.3, interval: '2m', block_interval: '5m', path: mount }
    expect((await node.root.post(at(name), body)).status).toBe(204)
    expectData(await node.root.get(at(name)), {
      ...{ block_interval: 300, group_by: 'ip', inheritable: false, interval: 120, name },
      ...{ path: `${mount}/`, rate: 897.3, role: '', type: 'rate-limit' },
    })
    const { body: listed } = await node.root.list('sys/quotas/rate-limit')
    expect(listed).toMatchObject({ data: { keys: expect.arrayContaining([name]) } })
    const twin = await node.root.post(at(fresh('q')), { rate: 5, path: `${mount}/` })
    expectRefused(twin, 400, `quota rule with similar properties exists under the name "${name}"`)
    expect((await node.root.delete(at(name))).status).toBe(204)
    expectRefused(await node.root.get(at(name)), 404)
  })

  test.each([
    [{}, 'rate must be from 1 to 1000000000'],
    [{ rate: 0 }, 'rate must be from 1 to 1000000000'],
    [{ rate: 'many' }, 'rate must be from 1 to 1000000000'],
    [{ rate: 5, role: 'app' }, 'role is not available: no auth method here has roles'],
    [{ rate: 5, path: 'nowhere/at/all' }, 'invalid mount path nowhere/at/all'],
    [{ rate: 5, group_by: 'planet' }, 'group_by must be one of ip, none, token'],
    [{ rate: 5, interval: 0 }, 'interval must be from 1s to a year'],
    [{ rate: 5, path: 'transit/*/x' }, 'path may have 512 characters, and * at its end alone'],
  ])('%j is refused', async (body, why) => {
    expectRefused(await node.root.post(at(fresh('q')), body), 400, why)
  })

  test('needs no sudo, as in the reference', async () => {
    const [client, name] = [
      await node.limited('path "sys/quotas/*" { capabilities = ["read", "update", "delete", "list"] }'),
      fresh('q'),
    ]
    const mount = await node.mount()
    expect((await client.post(at(name), { rate: 1000, path: mount })).status).toBe(204)
    expect((await client.list('sys/quotas/rate-limit')).status).toBe(200)
    expect((await client.get(at(name))).status).toBe(200)
    expect((await client.delete(at(name))).status).toBe(204)
  })
})

describe('a rate', () => {
  test('counts the requests below a mount, refused ones too, and others not', async () => {
    const mount = await node.mount()
    await done(set(fresh('q'), { rate: 4, path: mount }))
    const replies = []
    for (let count = 0; count < 4; count++) {
      replies.push((await (count % 2 ? node.root : node.server.client('')).get(`${mount}/keys/a`)).status)
    }
    expect(replies).toEqual([403, 404, 403, 404])
    exceeded(await node.root.get(`${mount}/keys/a`), `${mount}/keys/a`)
    exceeded(await node.server.client('').get(`${mount}/x`), `${mount}/x`)
    exceeded(await node.root.get(`${mount}/keys/a?help=1`), `${mount}/keys/a`)
    expect((await node.root.get('transit/keys/a')).status).toBe(404)
  })

  test('that refuses requests counts them as violations', async () => {
    const mount = await node.mount()
    await done(set(fresh('q'), { rate: 1, path: mount }))
    const violations = () => readMetric(node.root, 'vault_quota_rate_limit_violation')
    expect((await node.root.get(`${mount}/keys/a`)).status).toBe(404)
    const before = await violations()
    for (let count = 0; count < 3; count++) exceeded(await node.root.get(`${mount}/keys/a`), `${mount}/keys/a`)
    expect(await violations()).toBe(before + 3)
  })

  test('counts requests that cannot be read', async () => {
    const mount = await node.mount()
    await done(set(fresh('q'), { rate: 2, path: mount }))
    const broken = () => fetch(`${node.server.url}/v1/${mount}/keys/a`, { method: 'POST', body: '{' })
    expect([(await broken()).status, (await broken()).status, (await broken()).status]).toEqual([400, 400, 429])
  })

  test('of the longest path is the one that counts', async () => {
    const mount = await node.mount()
    await done(set(fresh('q'), { rate: 1, path: mount }))
    await done(set(fresh('q'), { rate: 2, path: `${mount}/keys/*` }))
    await done(set(fresh('q'), { rate: 3, path: `${mount}/keys/own` }))
    for (const [path, rate] of [
      ['keys/own', 3],
      ['keys/any', 2],
      ['config/keys', 1],
    ] as const) {
      for (let count = 0; count < rate; count++) expect((await node.root.get(`${mount}/${path}`)).status).not.toBe(429)
      exceeded(await node.root.get(`${mount}/${path}`), `${mount}/${path}`)
    }
  })

  test('by token is that of each token, and that of the address for none', async () => {
    const mount = await node.mount()
    await done(set(fresh('q'), { rate: 2, path: mount, group_by: 'token' }))
    const policy = `path "${mount}/*" { capabilities = ["read"] }`
    for (const client of [await node.limited(policy), await node.limited(policy)]) {
      for (let count = 0; count < 2; count++) expect((await client.get(`${mount}/keys/a`)).status).toBe(404)
      exceeded(await client.get(`${mount}/keys/a`), `${mount}/keys/a`)
    }
  })

  test('that refuses a request takes no use of its token', async () => {
    const [name, mount] = [fresh('q'), await node.mount()]
    await done(set(name, { rate: 1, path: mount, group_by: 'token' }))
    const made = await done(node.root.post('auth/token/create', { policies: ['root'], num_uses: 2 }))
    const client = node.server.client(made.string('auth.client_token'))
    expect((await client.get(`${mount}/keys/a`)).status).toBe(404)
    for (let count = 0; count < 3; count++) exceeded(await client.get(`${mount}/keys/a`), `${mount}/keys/a`)
    await done(node.root.delete(at(name)))
    expect([(await client.get(`${mount}/keys/a`)).status, (await client.get(`${mount}/keys/a`)).status]).toEqual([
      404, 403,
    ])
  })

  test('begins anew with another value, and ends with the quota', async () => {
    const [name, mount] = [fresh('q'), await node.mount()]
    const ask = async () => (await node.root.get(`${mount}/keys/a`)).status
    await done(set(name, { rate: 1, path: mount }))
    expect([await ask(), await ask()]).toEqual([404, 429])
    await done(set(fresh('q'), { rate: 1, path: `${mount}/other` }))
    expect(await ask()).toBe(429)
    await done(set(name, { rate: 2, path: mount }))
    expect([await ask(), await ask(), await ask()]).toEqual([404, 404, 429])
    await done(node.root.delete(at(name)))
    expect(await ask()).toBe(404)
  })

  test('for all requests leaves health and the quotas themselves reachable', { timeout: 60_000 }, async () => {
    const name = fresh('q')
    await done(set(name, { rate: 1, group_by: 'none' }))
    expect((await node.root.get('sys/mounts')).status).toBe(200)
    exceeded(await node.root.get('sys/mounts'), 'sys/mounts')
    expect((await node.server.client('').get('sys/health')).status).toBe(200)
    expect((await node.root.delete(at(name))).status).toBe(204)
    expect((await node.root.get('sys/mounts')).status).toBe(200)
  })
})
