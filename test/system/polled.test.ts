import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { done, expectData, expectRefused, hello, useNode } from '../api/node.ts'

/** Requests of dashboards and clients to sys/ besides its administration. */

const node = useNode()
const stranger = () => node.server.client('')
const data = async (path: string) =>
  (await done(node.root.get(`sys/${path}`))).body as { data: Record<string, unknown> }

describe('sys/tools', () => {
  test('hash answers as transit/hash, algorithm in path or body', async () => {
    const sum = createHash('sha384').update('hello').digest()
    expectData(await node.root.post('sys/tools/hash/sha2-384', { input: hello }), { sum: sum.toString('hex') })
    const asked = { input: hello, algorithm: 'sha2-384', format: 'base64' }
    expectData(await node.root.post('sys/tools/hash', asked), { sum: sum.toString('base64') })
    expectRefused(
      await node.root.post('sys/tools/hash', { input: hello, algorithm: 'x' }),
      400,
      'unsupported algorithm x',
    )
    expectRefused(await stranger().post('sys/tools/hash', asked), 403, 'permission denied')
  })

  test('the default policy grants hash, and not random', async () => {
    const made = await done(node.root.post('auth/token/create', { policies: ['default'] }))
    const common = node.server.client(made.string('auth.client_token'))
    expect((await common.post('sys/tools/hash', { input: hello })).status).toBe(200)
    expect((await common.post('sys/tools/hash/sha2-512', { input: hello })).status).toBe(200)
    expect((await common.post('sys/tools/random')).status).toBe(403)
  })

  test.each([
    ['', {}, 32],
    ['', { bytes: 5, source: 'seal' }, 5],
    ['/7', {}, 7],
    ['/all', { bytes: 9 }, 9],
    ['/seal/11', {}, 11],
  ])('random%s with %j gives other bytes each time', async (path, body, length) => {
    const draw = async () => (await done(node.root.post(`sys/tools/random${path}`, body))).string('data.random_bytes')
    const [one, other] = [await draw(), await draw()]
    expect(Buffer.from(one, 'base64')).toHaveLength(length)
    expect(other).not.toBe(one)
  })

  test('random refuses as transit/random', async () => {
    expectRefused(await node.root.post('sys/tools/random/0'), 400, "'bytes' cannot be less than 1")
    expectRefused(await node.root.post('sys/tools/random/200000'), 400, "'bytes' should be less than 131072")
  })
})

test('sys/key-status says which system KEK is in use, at the top and in data', async () => {
  const { body } = await done(node.root.get('sys/key-status'))
  const shown = { term: 1, install_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) }
  expect(body).toMatchObject({ ...shown, data: shown })
  expect((await stranger().get('sys/key-status')).status).toBe(403)
})

describe('sys/plugins/catalog', () => {
  test('lists what is built in, by type', async () => {
    const { data: shown } = await data('plugins/catalog')
    const detail = (type: string, name: string) => ({
      ...{ type, name, version: 'v1.13.0+builtin.vault', builtin: true, deprecation_status: 'supported' },
    })
    expect(shown).toEqual({
      auth: ['token'],
      secret: ['pki', 'transit'],
      detailed: [detail('auth', 'token'), detail('secret', 'pki'), detail('secret', 'transit')],
    })
    expectData(await node.root.list('sys/plugins/catalog/secret'), { keys: ['pki', 'transit'] })
    expectData(await node.root.list('sys/plugins/catalog/database'), { keys: [] })
    expectRefused(await node.root.list('sys/plugins/catalog/x'), 400, '"x" is not a supported plugin type')
  })

  test('describes one, and is written by nobody', async () => {
    expectData(await node.root.get('sys/plugins/catalog/secret/transit'), {
      ...{ name: 'transit', args: null, command: '', sha256: '', builtin: true },
      ...{ version: 'v1.13.0+builtin.vault', deprecation_status: 'supported' },
    })
    for (const path of ['secret/kv', 'auth/transit', 'secret/constructor']) {
      expectRefused(await node.root.get(`sys/plugins/catalog/${path}`), 404)
    }
    expect((await node.root.post('sys/plugins/catalog/secret/x', { sha256: 'a', command: 'b' })).status).toBe(405)
    const reader = await node.limited('path "sys/plugins/*" { capabilities = ["read", "list"] }')
    expect((await reader.get('sys/plugins/catalog')).status).toBe(200)
    expect((await reader.get('sys/plugins/catalog/secret/transit')).status).toBe(403)
    expect((await reader.list('sys/plugins/catalog/secret')).status).toBe(403)
  })
})

describe('what dashboards poll', () => {
  test('counts tokens', async () => {
    const total = async () => {
      const { data: shown } = await data('internal/counters/tokens')
      return (shown as { counters: { service_tokens: { total: number } } }).counters.service_tokens.total
    }
    const before = await total()
    for (let count = 0; count < 3; count++) await done(node.root.post('auth/token/create'))
    expect(await total()).toBe(before + 3)
    expectData(await node.root.get('sys/internal/counters/entities'), { counters: { entities: { total: 0 } } })
    const gone = await node.root.get('sys/internal/counters/requests')
    expectRefused(gone, 404, 'The functionality has been removed on this path')
  })

  test('says that clients are not counted, and gives no zero for a count', async () => {
    expectData(await node.root.get('sys/internal/counters/config'), {
      ...{ enabled: 'disable', queries_available: false, reporting_enabled: false, billing_start_timestamp: null },
      ...{ default_report_months: 12, retention_months: 0 },
    })
    expect((await node.root.post('sys/internal/counters/config', { enabled: 'enable' })).status).toBe(405)
    for (const path of ['activity', 'activity/monthly', 'activity/export']) {
      const reply = await node.root.get(`sys/internal/counters/${path}?start_time=2026-01-01T00:00:00Z`)
      const text = 'clients are not counted on this server: no license asks for it.'
      expect([reply.status, reply.string('errors.0')]).toEqual([400, expect.stringContaining(text)])
    }
    for (const path of ['config', 'activity', 'tokens', 'entities', 'requests']) {
      expect((await stranger().get(`sys/internal/counters/${path}`)).status, path).toBe(403)
    }
  })

  test('tells a web interface of no feature flags, and of the root namespace alone', async () => {
    const flags = await done(stranger().get('sys/internal/ui/feature-flags'))
    expect(flags.body).toEqual({ feature_flags: [] })
    const bare = await node.limited('path "transit/keys" { capabilities = ["list"] }')
    expectData(await bare.get('sys/internal/ui/namespaces'), { keys: [''] })
    for (const client of [stranger(), node.server.client('hvs.nobody')]) {
      expectRefused(await client.get('sys/internal/ui/namespaces'), 403, 'permission denied')
    }
  })

  test('says that nothing is replicated, to anybody', async () => {
    const disabled = { mode: 'disabled' }
    expectData(await stranger().get('sys/replication/status'), { ...disabled, dr: disabled, performance: disabled })
    for (const kind of ['dr', 'performance']) {
      expectData(await stranger().get(`sys/replication/${kind}/status`), disabled)
    }
  })

  test('says that no license is needed', async () => {
    const none = { autoloading_used: false, autoloaded: null, persisted_autoload: null }
    expectData(await node.root.get('sys/license/status'), none)
    expect((await stranger().get('sys/license/status')).status).toBe(403)
  })
})
