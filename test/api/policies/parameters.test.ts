import { beforeAll, describe, expect, test } from 'vitest'
import type { Client, Reply } from '../../support/client.ts'
import { base64, done, expectRefused, hello, useSharedNode } from '../node.ts'

const node = useSharedNode()
const rule = (path: string, limits: string, ...capabilities: string[]) =>
  `path "${path}" { capabilities = ${JSON.stringify(capabilities.length > 0 ? capabilities : ['update'])}\n ${limits} }\n`

/** 403 of a limit: the reference's text, and the rule that was broken. */
function expectDenied(reply: Reply, why: string): void {
  expect(reply.status, reply.text).toBe(403)
  expect(reply.body).toEqual({
    errors: ['1 error occurred:\n\t* permission denied\n\n', expect.stringContaining(why)],
  })
}

describe('the block on sha1 for one key', () => {
  const noSha1 = 'denied_parameters = { "hash_algorithm" = ["sha1"] }'
  let key: string
  let other: string
  let client: Client
  beforeAll(async () => {
    key = await node.key({ type: 'rsa-2048' })
    other = await node.key({ type: 'rsa-2048' })
    client = await node.limited(
      rule('transit/*', '') + rule(`transit/+/${key}`, noSha1) + rule(`transit/+/${key}/*`, noSha1),
    )
  })
  const digest = base64(Buffer.alloc(20))
  const forms: [string, string, object][] = [
    ['in the body', '', { input: hello, hash_algorithm: 'sha1' }],
    ['under the alias', '', { input: hello, algorithm: 'sha1' }],
    ['in the path', '/sha1', { input: hello }],
    ['in the path, with another in the body', '/sha1', { input: hello, hash_algorithm: 'sha2-256' }],
    ['in a batch item', '', { batch_input: [{ input: hello }, { input: hello, hash_algorithm: 'sha1' }] }],
    ['in a batch item under the alias', '', { batch_input: [{ input: hello, algorithm: 'sha1' }] }],
    ['as the default of a batch', '', { batch_input: [{ input: hello }], hash_algorithm: 'sha1' }],
    ['as the alias of that default', '', { batch_input: [{ input: hello }], algorithm: 'sha1' }],
    ['of a digest', '', { input: digest, prehashed: true, signature_algorithm: 'pkcs1v15', algorithm: 'sha1' }],
    ['in upper case', '', { input: hello, hash_algorithm: 'SHA1' }],
    ['under a name in upper case', '', { input: hello, HASH_ALGORITHM: 'sha1' }],
    ['in a list', '', { input: hello, hash_algorithm: ['sha1'] }],
    ['behind null', '', { input: hello, hash_algorithm: null, algorithm: 'sha1' }],
  ]

  test.each(forms)('holds %s, to sign, to verify and for HMACs', async (_, path, body) => {
    for (const verb of ['sign', 'verify', 'hmac']) {
      const reply = await client.post(`transit/${verb}/${key}${path}`, body)
      expectDenied(reply, 'denies this value of the parameter ')
      expect(reply.text).not.toContain(hello)
    }
  })

  test('holds in a form and in a percent-encoded path', async () => {
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const sent = await client.call('POST', `transit/sign/${key}`, `input=${hello}&algorithm=sha1`, form)
    expectDenied(sent, 'denies this value')
    expectDenied(await client.post(`transit/sign/${key}/s%68a1`, { input: hello }), 'in the path')
  })

  test('cannot be bypassed by names that only look like parameters: their values are not used either', async () => {
    const sha1 = '{"hash_algorithm":"sha1","algorithm":"sha1"}'
    for (const body of [
      `{"input":"${hello}","__proto__":${sha1}}`,
      `{"input":"${hello}","constructor":{"prototype":${sha1}}}`,
      `{"batch_input":[{"input":"${hello}","__proto__":${sha1}}]}`,
      `{"input":"${hello}","algorithm":"sha1","algorithm":"sha2-256"}`,
    ]) {
      const sent = await client.call('POST', `transit/sign/${key}`, body)
      const [signature] = /vault:v1:[^"]+/.exec(sent.text) ?? []
      expect(signature, sent.text).toBeDefined()
      const check = { input: hello, signature, hash_algorithm: 'sha2-256' }
      expect((await node.root.post(`transit/verify/${key}`, check)).body).toMatchObject({ data: { valid: true } })
    }
    const items = [{ input: hello, hash_algorithm: 'sha1' }]
    for (const body of [
      { BATCH_INPUT: items },
      { batch_input: JSON.stringify(items) },
      { batch_input: { 0: items[0] } },
    ])
      expect((await client.post(`transit/sign/${key}`, body)).status, JSON.stringify(body)).toBe(400)
  })

  test('leaves other hashes, and other keys, alone', async () => {
    for (const [path, body] of [
      ['', { input: hello }],
      ['', { input: hello, hash_algorithm: 'sha2-256' }],
      ['/sha2-512', { input: hello }],
      ['', { batch_input: [{ input: hello, algorithm: 'sha2-384' }, { input: hello }] }],
    ] as const)
      expect((await client.post(`transit/sign/${key}${path}`, body)).status).toBe(200)
    expect((await client.post(`transit/sign/${other}/sha1`, { input: hello })).status).toBe(200)
    expect((await client.post(`transit/sign/${other}`, { input: hello, algorithm: 'sha1' })).status).toBe(200)
  })

  test('is not escaped by the path where only the body was thought of', async () => {
    const careless = await node.limited(rule('transit/*', '') + rule(`transit/sign/${key}`, noSha1))
    expectDenied(await careless.post(`transit/sign/${key}/sha1`, { input: hello }), `path "transit/sign/${key}" in`)
    expect((await careless.post(`transit/sign/${key}/sha2-256`, { input: hello })).status).toBe(200)
  })

  test('names the rule, the parameter and its place', async () => {
    const reply = await client.post(`transit/sign/${key}`, { batch_input: [{ input: hello, algorithm: 'sha1' }] })
    expect((reply.body as { errors: string[] }).errors[1]).toMatch(
      new RegExp(
        `^path "transit/\\+/${key}" in policy "p[0-9a-f]+" denies this value of the parameter "hash_algorithm" in item 0 of batch_input$`,
      ),
    )
  })
})

describe('allowed parameters', () => {
  test('are the only ones, and their values the only ones', async () => {
    const key = await node.key({ type: 'ecdsa-p256' })
    const client = await node.limited(
      rule(
        'transit/sign/*',
        'allowed_parameters = { "input" = [], "hash_algorithm" = ["sha2-*"], "batch_input" = [] }',
      ),
    )
    const sign = (body: object, path = '') => client.post(`transit/sign/${key}${path}`, body)
    expect((await sign({ input: hello })).status).toBe(200)
    expect((await sign({ input: hello, algorithm: 'sha2-512' })).status).toBe(200)
    expect((await sign({ input: hello }, '/sha2-384')).status).toBe(200)
    expectDenied(
      await sign({ input: hello, key_version: 1 }),
      'does not allow the parameter "key_version", only "input"',
    )
    expectDenied(await sign({ input: hello }, '/sha3-256'), 'in the path, only "sha2-*"')
    expectDenied(await sign({ batch_input: [{ input: hello, hash_algorithm: 'sha3-256' }] }), 'in item 0')
    expectDenied(await sign({ input: hello, stranger: 'x' }), '"stranger"')
    expectDenied(await sign({ input: hello, hash_algorithm: '' }), 'does not allow this value')
  })

  test('keep a maker of keys to one type, and from making them exportable', async () => {
    const client = await node.limited(
      rule(
        'transit/keys/*',
        `allowed_parameters = { "type" = ["aes256-gcm96", "hmac"], "*" = [] }
         denied_parameters = { "exportable" = [true], "allow_plaintext_backup" = ["true"] }
         required_parameters = ["type"]`,
      ),
    )
    const make = (body: object) => client.post(`transit/keys/k${Math.random().toString(16).slice(2)}`, body)
    expect((await make({ type: 'hmac', key_size: 32, exportable: false })).status).toBe(200)
    expectDenied(await make({}), 'requires the parameter "type"')
    expectDenied(await make({ type: null }), 'requires the parameter "type"')
    expectDenied(await make({ type: 'rsa-2048' }), 'only "aes256-gcm96", "hmac"')
    for (const yes of [true, 'true', 'T', 1, '1', 7])
      expectDenied(await make({ type: 'hmac', exportable: yes }), '"exportable"')
    expectDenied(await make({ type: 'hmac', allow_plaintext_backup: 1 }), '"allow_plaintext_backup"')
  })

  test('keep the policies that a token may give to the ones named', async () => {
    const client = await node.limited(
      rule(
        'auth/token/create',
        'allowed_parameters = { "policies" = ["default", "app-*"], "ttl" = ["1h"] }',
        'update',
        'sudo',
      ),
    )
    const create = (body: object) => client.post('auth/token/create', body)
    expect((await create({ policies: ['default'], ttl: 3600 })).status).toBe(200)
    expect((await create({ policies: ['default', 'app-1'], ttl: '60m' })).status).toBe(200)
    for (const policies of [['default', 'root'], 'root', [], [['default']]])
      expectDenied(await create({ policies }), 'does not allow this value of the parameter "policies"')
    expectDenied(await create({ policies: ['default'], ttl: '2h' }), '"ttl"')
    expectDenied(await create({ policies: ['default'], lease: '2h' }), '"ttl"')
    expectDenied(await create({ policies: ['default'], no_parent: true }), '"no_parent"')
  })
})

describe('limits', () => {
  test('on wrapping keep unwrapped answers back, listings and deletions too', async () => {
    const key = await node.key()
    const client = await node.limited(
      rule('transit/keys', 'max_wrapping_ttl = "1h"', 'list') +
        rule('transit/keys/*', 'min_wrapping_ttl = 60', 'read', 'delete'),
    )
    for (const reply of [
      client.list('transit/keys'),
      client.get(`transit/keys/${key}`),
      client.delete(`transit/keys/${key}`),
    ])
      expectDenied(await reply, 'allows only wrapped answers')
    const wrapped = await client.call('GET', `transit/keys/${key}`, undefined, { 'X-Vault-Wrap-TTL': '60' })
    expect(wrapped.status).toBe(400)
  })

  test('apply to the query of a read, but not to a listing or a deletion', async () => {
    const key = await node.key()
    await done(node.root.post(`transit/keys/${key}/config`, { deletion_allowed: true }))
    const client = await node.limited(
      rule('transit/keys', 'denied_parameters = { "limit" = [] }', 'list') +
        rule('transit/keys/*', 'denied_parameters = { "context" = [] }', 'read', 'delete'),
    )
    expectDenied(await client.get(`transit/keys/${key}?context=${hello}`), 'denies the parameter "context"')
    expect((await client.get(`transit/keys/${key}`)).status).toBe(200)
    expect((await client.list('transit/keys?limit=1')).status).toBe(200)
    expect((await client.delete(`transit/keys/${key}?context=x`)).status).toBe(204)
  })

  test('bind a creation as they bind an update', async () => {
    const client = await node.limited(
      rule('transit/encrypt/*', 'allowed_parameters = { "plaintext" = [] }', 'create', 'update'),
    )
    const path = `transit/encrypt/up${Date.now()}`
    expectDenied(await client.post(path, { plaintext: hello, type: 'aes128-gcm96' }), '"type"')
    expect((await node.root.get(path.replace('encrypt', 'keys'))).status).not.toBe(200)
    expect((await client.post(path, { plaintext: hello })).status).toBe(200)
    expectDenied(await client.post(path, { plaintext: hello, type: 'aes128-gcm96' }), '"type"')
  })

  test('of several policies on one path are added up, and a policy without limits lifts none', async () => {
    const key = await node.key({ type: 'ecdsa-p256' })
    const path = `transit/sign/${key}`
    const client = await node.limited(
      rule(path, 'denied_parameters = { "hash_algorithm" = ["sha1"] }') +
        rule(path, 'denied_parameters = { "algorithm" = ["sha2-512"] } required_parameters = ["input"]') +
        rule(path, ''),
    )
    expect((await client.post(path, { input: hello, hash_algorithm: 'sha2-384' })).status).toBe(200)
    expectDenied(await client.post(path, { input: hello, hash_algorithm: 'sha1' }), 'hash_algorithm')
    expectDenied(await client.post(path, { input: hello, hash_algorithm: 'sha2-512' }), 'hash_algorithm')
    expectDenied(await client.post(path, {}), 'requires the parameter "input"')
  })

  test('in random are those of the path too', async () => {
    const client = await node.limited(
      rule('transit/random*', 'denied_parameters = { "source" = ["seal"], "bytes" = [64] }'),
    )
    for (const path of ['random/seal', 'random/64', 'random/platform/64', 'random/seal/16'])
      expectDenied(await client.post(`transit/${path}`), 'in the path')
    expectDenied(await client.post('transit/random', { bytes: '0x40' }), '"bytes"')
    expect((await client.post('transit/random/064')).status).toBe(400)
    expect((await client.post('transit/random/platform/16')).status).toBe(200)
  })

  test('of restore bind the path with a name too, however long it is', async () => {
    const denied = rule('transit/restore', 'denied_parameters = { "force" = [true], "name" = ["taken", "a/b"] }')
    const client = await node.limited(rule('transit/*', '') + denied)
    for (const path of ['restore', 'restore/k', 'restore/k/l/m'])
      expectDenied(await client.post(`transit/${path}`, { backup: 'x', force: true }), '"force"')
    for (const path of ['restore/taken', 'restore/a/b'])
      expectDenied(await client.post(`transit/${path}`, { backup: 'x' }), '"name" in the path')
    expect((await client.post('transit/restore/a/b/c', { backup: 'x' })).status).toBe(400)
  })

  test('cannot be had where they do not work yet, or mean nothing', async () => {
    const write = (body: string) => node.root.post('sys/policies/acl/never', { policy: `path "a" { ${body} }` })
    for (const key of ['mfa_methods = ["a"]', 'control_group = { }'])
      expect((await write(key)).text).toContain('is not built yet')
    expectRefused(
      await write('min_wrapping_ttl = 60 max_wrapping_ttl = 30'),
      400,
      'failed to parse policy: path "a": max_wrapping_ttl cannot be less than min_wrapping_ttl',
    )
    expect((await node.root.get('sys/policies/acl/never')).status).toBe(404)
  })
})

test('a large batch is looked through before anything of it is done', async () => {
  const key = await node.key({ type: 'hmac', key_size: 32 })
  const client = await node.limited(rule(`transit/hmac/${key}`, 'denied_parameters = { "algorithm" = ["sha1"] }'))
  const batch_input = Array.from({ length: 5000 }, () => ({ input: hello, hash_algorithm: 'sha2-256' }))
  expect((await client.post(`transit/hmac/${key}`, { batch_input })).status).toBe(200)
  batch_input.push({ input: hello, hash_algorithm: 'sha1' })
  expectDenied(await client.post(`transit/hmac/${key}`, { batch_input }), 'in item 5000 of batch_input')
})
