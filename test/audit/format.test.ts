import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { base64, done, fresh, hello, useNode } from '../api/node.ts'
import { enable, hidden } from './device.ts'

const node = useNode()
const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
const hashed = expect.stringMatching(hidden)
const mount = { mount_point: 'transit/', mount_type: 'transit', mount_class: 'secret' }
const uuidText = expect.stringMatching(/^[0-9a-f-]{36}$/)

test('a request and its answer are two lines in the form of the reference, with their place in a chain', async () => {
  const device = await enable(node.root)
  const key = await node.key()
  const encrypted = await done(node.root.post(`transit/encrypt/${key}`, { plaintext: hello, key_version: 1 }))
  const [request, response, ...more] = device.of(`transit/encrypt/${key}`)
  expect(more).toEqual([])
  const token = await device.hash(node.server.rootToken)
  const auth = {
    client_token: token,
    accessor: hashed,
    display_name: 'root',
    policies: ['root'],
    token_policies: ['root'],
    policy_results: { allowed: true, granting_policies: [{ name: 'root', namespace_id: 'root', type: 'acl' }] },
    token_type: 'service',
    token_issue_time: expect.stringMatching(moment),
  }
  const asked = {
    id: encrypted.string('request_id'),
    operation: 'update',
    ...mount,
    mount_accessor: expect.stringMatching(/^transit_[0-9a-f]{8}$/),
    client_token: token,
    client_token_accessor: auth.accessor,
    namespace: { id: 'root' },
    path: `transit/encrypt/${key}`,
    data: { plaintext: await device.hash(hello), key_version: 1 },
    remote_address: '127.0.0.1',
    remote_port: expect.any(Number),
  }
  const chain = {
    node: hostname(),
    device: uuidText,
    incarnation: uuidText,
    epoch: expect.any(Number),
    sequence: expect.any(Number),
    previous: expect.stringMatching(/^[0-9a-f]{64}$/),
  }
  expect(request).toEqual({ time: expect.stringMatching(moment), type: 'request', auth, request: asked, chain })
  expect(response).toEqual({
    time: expect.stringMatching(moment),
    type: 'response',
    auth,
    request: asked,
    response: {
      ...mount,
      mount_accessor: asked.mount_accessor,
      data: { ciphertext: await device.hash(encrypted.string('data.ciphertext')), key_version: 1 },
    },
    chain: { ...chain, sequence: (request?.chain.sequence ?? 0) + 1 },
  })
  await device.disable()
})

test('every string below data is an HMAC at any depth; names, numbers, booleans and null stay', async () => {
  const device = await enable(node.root)
  const key = await node.key()
  const items = [{ plaintext: hello, reference: 'one' }, { plaintext: hello }]
  await done(node.root.post(`transit/encrypt/${key}`, { batch_input: items, flag: true, nothing: null, deep: [['x']] }))
  const [request, response] = device.of(`transit/encrypt/${key}`)
  expect(request?.request.data).toEqual({
    batch_input: [
      { plaintext: await device.hash(hello), reference: await device.hash('one') },
      { plaintext: await device.hash(hello) },
    ],
    flag: true,
    nothing: null,
    deep: [[await device.hash('x')]],
  })
  expect(response?.response).toMatchObject({
    data: {
      batch_results: [
        { ciphertext: hashed, key_version: 1, reference: await device.hash('one') },
        { ciphertext: hashed, key_version: 1 },
      ],
    },
    warnings: ['Endpoint ignored these unrecognized parameters: [deep flag nothing]'],
  })
  await device.disable()
})

test('a batch with failed items is on record as its whole body', async () => {
  const device = await enable(node.root)
  const key = await node.key()
  const items = [{ plaintext: hello }, { plaintext: '%' }]
  const reply = await node.root.post(`transit/encrypt/${key}`, { batch_input: items, flag: true })
  const partial = await node.root.post(`transit/encrypt/${key}`, {
    batch_input: items,
    partial_failure_response_code: 207,
  })
  expect([reply.status, partial.status]).toEqual([400, 207])
  const [, response, , second] = device.of(`transit/encrypt/${key}`)
  const body = async (text: string, status: number) => ({
    http_content_type: await device.hash('application/json'),
    http_raw_body: await device.hash(text),
    http_status_code: status,
  })
  expect(response?.response?.data).toEqual(await body(reply.text, 400))
  expect(response?.response?.warnings).toEqual(['Endpoint ignored these unrecognized parameters: [flag]'])
  expect(second?.response?.data).toEqual(await body(partial.text, 207))
  await device.disable()
})

test('fields that the mount is tuned to show stay in clear, in the request and in the answer', async () => {
  const device = await enable(node.root)
  const path = await node.mount()
  await done(
    node.root.post(`sys/mounts/${path}/tune`, {
      audit_non_hmac_request_keys: ['type'],
      audit_non_hmac_response_keys: 'name,keys',
    }),
  )
  await done(node.root.post(`${path}/keys/k`, { type: 'aes256-gcm96', other: 'x' }))
  await done(node.root.list(`${path}/keys`))
  const [request, response] = device.of(`${path}/keys/k`)
  expect(request?.request.data).toEqual({ type: 'aes256-gcm96', other: hashed })
  expect(response?.request.data).toEqual({ type: 'aes256-gcm96', other: hashed })
  expect(response?.response?.data).toMatchObject({ name: 'k', type: hashed, keys: expect.anything() })
  const [, listed] = device.of(`${path}/keys/`)
  expect(listed).toMatchObject({ request: { operation: 'list' }, response: { data: { keys: ['k'] } } })
  await device.disable()
})

test('a new token and its accessor are HMACs, its policies and metadata are not', async () => {
  const device = await enable(node.root)
  const made = await done(
    node.root.post('auth/token/create', { policies: ['p'], meta: { who: 'me' }, ttl: '1h', display_name: 'a b' }),
  )
  const [, response] = device.of('auth/token/create')
  expect(response).toMatchObject({
    request: { mount_class: 'auth', mount_point: 'auth/token/', data: { meta: { who: hashed }, ttl: hashed } },
    response: {
      auth: {
        client_token: await device.hash(made.string('auth.client_token')),
        accessor: await device.hash(made.string('auth.accessor')),
        display_name: 'token-a-b',
        policies: ['default', 'p'],
        token_policies: ['default', 'p'],
        metadata: { who: 'me' },
        token_type: 'service',
        token_ttl: 3600,
        token_issue_time: expect.stringMatching(moment),
      },
    },
  })
  const client = node.server.client(made.string('auth.client_token'))
  await done(client.get('auth/token/lookup-self'))
  const [request] = device.of('auth/token/lookup-self')
  expect(request?.auth).toMatchObject({
    client_token: await device.hash(made.string('auth.client_token')),
    display_name: 'token-a-b',
    metadata: { who: 'me' },
    token_ttl: 3600,
    policy_results: {
      allowed: true,
      granting_policies: [{ name: 'default', namespace_id: 'root', type: 'acl' }],
    },
  })
  await device.disable()
})

test('of a new or renewed token the record has name and time of issue, which the answer lacks', async () => {
  const device = await enable(node.root)
  const made = await done(node.root.post('auth/token/create', { ttl: '1h', display_name: 'a b' }))
  const renewed = await done(node.server.client(made.string('auth.client_token')).post('auth/token/renew-self'))
  const [, creation] = device.of('auth/token/create')
  const [, renewal] = device.of('auth/token/renew-self')
  const issued = { display_name: 'token-a-b', token_issue_time: expect.stringMatching(moment) }
  expect(creation?.response?.auth).toMatchObject(issued)
  expect(renewal?.response?.auth).toMatchObject(issued)
  expect(renewal?.response?.auth).toHaveProperty('token_issue_time', renewal?.auth.token_issue_time)
  for (const { body } of [made, renewed]) {
    expect(body).toHaveProperty('auth.client_token')
    expect(body).not.toHaveProperty('auth.display_name')
    expect(body).not.toHaveProperty('auth.token_issue_time')
  }
  await device.disable()
})

test('refusals are on record with their reason: bad token, no token, policies, no such path, bad field', async () => {
  const device = await enable(node.root)
  const key = await node.key()
  const limited = await node.limited(`path "transit/keys/${key}" { capabilities = ["read"] }`)
  const stranger = node.server.client('hvs.nobody')
  await stranger.get(`transit/keys/${key}`)
  await node.server.client('').get(`transit/keys/${key}`)
  await limited.delete(`transit/keys/${key}`)
  const [bad, badAnswer, none, noneAnswer, denied, deniedAnswer] = device.of(`transit/keys/${key}`).slice(-6)
  expect(bad).toMatchObject({
    type: 'request',
    auth: { token_type: 'default' },
    request: { operation: 'read', client_token: await device.hash('hvs.nobody') },
    error: 'permission denied',
  })
  expect(badAnswer).toMatchObject({ type: 'response', error: 'permission denied' })
  expect(none?.request).not.toHaveProperty('client_token')
  expect([none?.error, noneAnswer?.error]).toEqual(['permission denied', 'permission denied'])
  expect(denied).toMatchObject({ request: { operation: 'delete' }, auth: { policy_results: { allowed: false } } })
  expect(denied?.error).toMatch(/^1 error occurred:\n\t\* permission denied\n\n; .*"delete"/)
  expect(deniedAnswer?.error).toBe(denied?.error)

  await node.root.get('transit/nothing/here')
  expect(device.of('transit/nothing/here').map(({ error }) => error)).toEqual([
    undefined,
    '1 error occurred:\n\t* unsupported path\n\n',
  ])
  await node.root.post(`transit/keys/${key}/config`, { min_decryption_version: 'x' })
  expect(device.of(`transit/keys/${key}/config`).map(({ error }) => error ?? '')).toEqual([
    '',
    expect.stringContaining('Field validation failed'),
  ])
  await device.disable()
})

test('what cannot be read as a request is on record, and what anybody may ask is not', async () => {
  const device = await enable(node.root)
  await node.root.call('POST', 'transit/random', '{')
  await node.root.call('POST', 'transit//random', {})
  expect([device.of('transit/random').length, device.of('transit//random').length]).toEqual([2, 2])
  const before = device.lines().length
  for (const path of ['sys/health', 'sys/seal-status', 'sys/leader', 'sys/init']) await node.root.get(path)
  expect(device.lines().length).toBe(before)
  await node.server.client('').get('sys/internal/ui/mounts')
  expect(device.of('sys/internal/ui/mounts')).toHaveLength(2)
  await device.disable()
})

test('a question for help is on record, also who asks without a good token', async () => {
  const device = await enable(node.root)
  await done(node.root.get('transit/keys/a?help=1'))
  await node.server.client('hvs.nobody').get('transit/keys/a?help=1')
  expect(device.of('transit/keys/a')).toMatchObject([
    { type: 'request', request: { operation: 'help' }, auth: { display_name: 'root' } },
    { type: 'response', response: { data: { http_status_code: 200, http_raw_body: hashed } } },
    { type: 'request', request: { operation: 'help' }, error: 'permission denied' },
    { type: 'response', error: 'permission denied' },
  ])
  await device.disable()
})

test('a create is on record as a create', async () => {
  const device = await enable(node.root)
  const name = fresh('k')
  await done(node.root.post(`transit/encrypt/${name}`, { plaintext: hello }))
  expect(device.of(`transit/encrypt/${name}`).map(({ request }) => request.operation)).toEqual(['create', 'create'])
  await device.disable()
})

test('options: prefix, accessor in clear, raw, lists by their length, mode', async () => {
  const prefixed = await enable(node.root, { prefix: '@cee: ' })
  const open = await enable(node.root, { hmac_accessor: 'false', mode: '0640' })
  const raw = await enable(node.root, { log_raw: 'true' })
  const short = await enable(node.root, { elide_list_responses: 'true' })
  const secret = base64(fresh('secret'))
  const key = await node.key()
  await done(node.root.post(`transit/encrypt/${key}`, { plaintext: secret }))
  await done(node.root.list('transit/keys'))
  for (const line of prefixed.text().trim().split('\n')) expect(line).toMatch(/^@cee: \{"time":/)
  expect(prefixed.of(`transit/encrypt/${key}`)).toHaveLength(2)
  const self = await node.root.get('auth/token/lookup-self')
  expect(open.of(`transit/encrypt/${key}`)[0]).toMatchObject({
    auth: { accessor: self.string('data.accessor'), client_token: hashed },
    request: { client_token_accessor: self.string('data.accessor'), data: { plaintext: hashed } },
  })
  expect(raw.of(`transit/encrypt/${key}`)[1]).toMatchObject({
    auth: { client_token: node.server.rootToken },
    request: { data: { plaintext: secret } },
  })
  expect(short.of('transit/keys/')[1]?.response?.data).toEqual({ keys: expect.any(Number) })
  expect([open, short].map(({ file }) => statSync(file).mode & 0o777)).toEqual([0o640, 0o600])
  for (const device of [prefixed, open, raw, short]) await device.disable()
})
