import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { runDirectory } from '../../support/directory.ts'
import { done, expectData, expectRefused, fresh, useNode } from '../node.ts'

const directory = runDirectory()
const node = useNode()
const path = 'sys/quotas/config'
const initial = {
  absolute_rate_limit_exempt_paths: [],
  enable_rate_limit_audit_logging: false,
  enable_rate_limit_response_headers: false,
  rate_limit_exempt_paths: [
    ...['sys/internal/ui/mounts', 'sys/generate-recovery-token/attempt', 'sys/generate-recovery-token/update'],
    ...['sys/generate-root/attempt', 'sys/generate-root/update'],
    ...['sys/generate-root-token/attempt', 'sys/generate-root-token/update'],
    ...['sys/health', 'sys/seal-status', 'sys/unseal'],
  ],
}
afterEach(() => done(node.root.post(path, initial)))

const limited = async (rate = 2, more = {}): Promise<string> => {
  const mount = await node.mount()
  await done(node.root.post(`sys/quotas/rate-limit/${fresh('q')}`, { rate, interval: '10m', path: mount, ...more }))
  return mount
}

describe('sys/quotas/config', () => {
  test('begins as the reference does, and keeps what a request leaves out', async () => {
    expectData(await node.root.get(path), initial)
    expect((await node.root.post(path, { enable_rate_limit_response_headers: true })).status).toBe(204)
    await done(node.root.post(path, { rate_limit_exempt_paths: 'sys/health, /transit/keys/*' }))
    expectData(await node.root.get(path), {
      ...initial,
      enable_rate_limit_response_headers: true,
      rate_limit_exempt_paths: ['sys/health', 'transit/keys/*'],
    })
  })

  test('keeps both of two changes made at once', async () => {
    for (let round = 0; round < 5; round++) {
      const [audited, headers] = [round % 2 === 0, round % 3 !== 0]
      const changes = [{ enable_rate_limit_audit_logging: audited }, { enable_rate_limit_response_headers: headers }]
      await Promise.all(changes.map((change) => done(node.root.post(path, change))))
      expectData(await node.root.get(path), { ...initial, ...changes[0], ...changes[1] })
    }
  })

  test('a path has one quota, of many that are set for it at once', async () => {
    for (const [kind, body] of [
      ['rate-limit', { rate: 1000 }],
      ['lease-count', { max_leases: 1000 }],
    ] as const) {
      const quota = { ...body, path: await node.mount() }
      const names = Array.from({ length: 6 }, () => fresh('q'))
      const replies = await Promise.all(names.map((name) => node.root.post(`sys/quotas/${kind}/${name}`, quota)))
      expect(replies.map(({ status }) => status).toSorted()).toEqual([204, 400, 400, 400, 400, 400])
    }
  })

  test.each([
    [{ rate_limit_exempt_paths: ['a/*/b'] }, 'rate_limit_exempt_paths'],
    [{ absolute_rate_limit_exempt_paths: ['*'] }, 'absolute_rate_limit_exempt_paths'],
    [{ rate_limit_exempt_paths: ['x'.repeat(513)] }, 'rate_limit_exempt_paths'],
  ])('%j is refused', async (body, field) => {
    const why = `${field} must hold paths of 1 to 512 characters, with * at their end alone`
    expectRefused(await node.root.post(path, body), 400, why)
  })

  test('needs no sudo, as in the reference', async () => {
    const client = await node.limited('path "sys/quotas/*" { capabilities = ["read", "update"] }')
    expect([(await client.get(path)).status, (await client.post(path, {})).status]).toEqual([200, 204])
  })

  test.each(['rate_limit_exempt_paths', 'absolute_rate_limit_exempt_paths'])(
    '%s are not counted, nor what lies below them',
    async (field) => {
      const mount = await limited(1)
      await done(node.root.post(path, { [field]: [`${mount}/keys`, `${mount}/ha*`] }))
      for (const free of ['keys/a', 'keys/b', 'hash', 'hash/sha2-256']) {
        expect((await node.root.get(`${mount}/${free}`)).status).not.toBe(429)
      }
      const replies = [await node.root.get(`${mount}/keyses`), await node.root.get(`${mount}/keyses`)]
      expect(replies.map(({ status }) => status)).toEqual([404, 429])
    },
  )

  test('without an exempt path health counts, too', async () => {
    const name = fresh('q')
    await done(node.root.post(path, { rate_limit_exempt_paths: [] }))
    expectData(await node.root.get(path), { ...initial, rate_limit_exempt_paths: [] })
    await done(node.root.post(`sys/quotas/rate-limit/${name}`, { rate: 1, interval: '10m', path: 'sys/health' }))
    const ask = async () => (await node.server.client('').get('sys/health')).status
    expect([await ask(), await ask()]).toEqual([200, 429])
    await done(node.root.delete(`sys/quotas/rate-limit/${name}`))
    expect(await ask()).toBe(200)
  })
})

describe('enable_rate_limit_response_headers', () => {
  const told = (headers: Readonly<Record<string, unknown>>) =>
    ['limit', 'remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}`])

  test('has each answer say what is left, refusals too', async () => {
    const mount = await limited(3)
    expect(told((await node.root.get(`${mount}/keys/a`)).headers)).toEqual([undefined, undefined, undefined])
    await done(node.root.post(path, { enable_rate_limit_response_headers: true }))
    await done(node.root.post(`${mount}/keys/a`))
    const read = await node.root.get(`${mount}/keys/a`)
    expect([read.status, ...told(read.headers)]).toEqual([200, '3', '0', expect.stringMatching(/^[56]\d\d$/)])
    const refused = await node.root.get(`${mount}/keys/a`)
    expect([refused.status, ...told(refused.headers)]).toEqual([429, '3', '0', refused.headers['retry-after']])
    expect(told((await node.root.get('sys/mounts')).headers)).toEqual([undefined, undefined, undefined])
  })

  test('tells each token its own', async () => {
    await done(node.root.post(path, { enable_rate_limit_response_headers: true }))
    const mount = await limited(5, { group_by: 'token' })
    const policy = `path "${mount}/*" { capabilities = ["read"] }`
    for (const client of [await node.limited(policy), await node.limited(policy)]) {
      expect(told((await client.get(`${mount}/keys/a`)).headers).slice(0, 2)).toEqual(['5', '4'])
    }
  })
})

test('a request beyond a quota is audited only when that is enabled', async () => {
  const file = join(directory, `${fresh('audit')}.log`)
  await done(node.root.post('sys/audit/file', { type: 'file', options: { file_path: file } }))
  const lines = async (mount: string) => (await readFile(file, 'utf8')).split('\n').filter((one) => one.includes(mount))
  for (const grouping of ['ip', 'token']) {
    const silent = await limited(1, { group_by: grouping })
    await node.root.get(`${silent}/keys/a`)
    const before = (await lines(`"path":"${silent}/keys/a"`)).length
    expect(before).toBeGreaterThan(0)
    expect((await node.root.get(`${silent}/keys/a`)).status).toBe(429)
    expect(await lines(`"path":"${silent}/keys/a"`)).toHaveLength(before)
    await done(node.root.post(path, { enable_rate_limit_audit_logging: true }))
    expect((await node.root.get(`${silent}/keys/a`)).status).toBe(429)
    const after = await lines(`"path":"${silent}/keys/a"`)
    expect(after.length).toBeGreaterThan(before)
    expect(after.at(-1)).toContain('rate limit quota exceeded')
    await done(node.root.post(path, { enable_rate_limit_audit_logging: false }))
  }
  await done(node.root.delete('sys/audit/file'))
})
