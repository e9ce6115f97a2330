import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { done, enveloped, expectData, expectRefused, fresh, hello, useNode, uuid } from './node.ts'

const node = useNode()
const headers = () => ({ 'X-Vault-Token': node.server.rootToken })
const fetched = (path: string, init: RequestInit = {}) =>
  fetch(`${node.server.url}${path}`, { ...init, headers: { ...headers(), ...init.headers } })

describe('a path', () => {
  test('answers the same with /v1/ and without', async () => {
    const key = await node.key()
    const [with1, bare] = await Promise.all([fetched(`/v1/transit/keys/${key}`), fetched(`/transit/keys/${key}`)])
    const data = ((await with1.json()) as { data: unknown }).data
    expect(((await bare.json()) as { data: unknown }).data).toEqual(data)
  })

  test('without a mount is 404 and names itself without /v1/', async () => {
    const text = 'no handler for route "nomount/x". route entry not found.'
    expectRefused(await node.root.get('nomount/x'), 404, text)
    expectRefused(await node.root.post('nomount/x', {}), 404, text)
  })

  test('that a mount does not have is 404, and 405 under another verb', async () => {
    expectRefused(await node.root.get('transit/nothing'), 404, '1 error occurred:\n\t* unsupported path\n\n')
    const unsupported = '1 error occurred:\n\t* unsupported operation\n\n'
    expectRefused(await node.root.get('transit/encrypt/a'), 405, unsupported)
    expectRefused(await node.root.call('PATCH', 'transit/keys/a', {}), 405, unsupported)
    expectRefused(
      await node.root.call('OPTIONS', 'transit/keys/a'),
      400,
      'cannot handle internal-only request operation',
    )
    expectRefused(await node.root.call('TRACE', 'transit/keys/a'), 405)
  })

  test('that is written to and ends in a slash is refused', async () => {
    expectRefused(await node.root.post('transit/keys/a/', {}), 400, "cannot write to a path ending in '/'")
  })

  test.each(['transit/../sys/mounts', 'transit//keys', 'transit/%2e%2e/keys', 'transit/a%2fb'])(
    'that is not clean is refused: %s',
    async (path) => {
      // On a raw socket, because clients normalise the path.
      const status = await new Promise((resolve) => {
        const socket = connect(Number(new URL(node.server.url).port), '127.0.0.1')
        socket.once('data', (data) => resolve(String(data).split(' ')[1]))
        socket.write(`GET /v1/${path} HTTP/1.1\r\nHost: x\r\nX-Vault-Token: ${node.server.rootToken}\r\n\r\n`)
      })
      expect(status).toBe('400')
    },
  )
})

describe('a body', () => {
  const plaintext = JSON.stringify({ plaintext: hello })
  test.each(['', 'application/x-www-form-urlencoded', 'text/plain', 'application/json; charset=utf-8'])(
    'is JSON whatever its content type says: %j',
    async (type) => {
      const reply = await node.root.call('POST', `transit/encrypt/${await node.key()}`, plaintext, {
        'Content-Type': type,
      })
      expect(reply.status, reply.text).toBe(200)
    },
  )

  test('that is a form is read as one', async () => {
    const type = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const form = `plaintext=${encodeURIComponent(hello)}&key_version=1`
    expect((await node.root.call('PUT', `transit/encrypt/${await node.key()}`, form, type)).status).toBe(200)
  })

  test.each(['', 'null', '{}', ' \n'])('that says nothing is fine: %j', async (body) => {
    expect((await node.root.call('POST', `transit/keys/${fresh('k')}`, body)).status).toBe(200)
  })

  test.each([
    ['[]', /cannot unmarshal array into Go value/],
    ['{"a":', /unexpected EOF/],
    ['{"a" 1}', /invalid syntax/],
    ['"x"', /cannot unmarshal string/],
  ])('that is not a JSON object is refused: %j', async (body, text) => {
    const reply = await node.root.call('POST', `transit/keys/${fresh('k')}`, body)
    expect(reply.status).toBe(400)
    expect(reply.body).toEqual({ errors: [expect.stringMatching(text)] })
    expect(reply.text).toMatch(/failed to decode JSON input/)
  })

  test('of more than 32 MiB is 413', async () => {
    const reply = await node.root.call('POST', 'transit/hash', `{"input":"${'A'.repeat(33_600_000)}"}`)
    expectRefused(reply, 413, 'http: request body too large')
  })

  test('in which a name is spelled __proto__ or constructor pollutes nothing', async () => {
    const body = '{"__proto__":{"exportable":true},"constructor":{"derived":true}}'
    const reply = await node.root.call('POST', `transit/keys/${fresh('k')}`, body)
    expect(reply.body).toMatchObject({
      data: { exportable: false, derived: false },
      warnings: ['Endpoint ignored these unrecognized parameters: [__proto__ constructor]'],
    })
  })
})

describe('an answer', () => {
  test('has the envelope in the reference’s order, no-store, and a request id of its own', async () => {
    const reply = await done(node.root.post('transit/hash', { input: hello }))
    expect(Object.keys(reply.body as object)).toEqual(Object.keys(enveloped(null) as object))
    expect(reply.text.endsWith('}\n')).toBe(true)
    expect(reply.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' })
    const again = await done(node.root.post('transit/hash', { input: hello }))
    expect(reply.string('request_id')).toMatch(uuid)
    expect(again.string('request_id')).not.toBe(reply.string('request_id'))
  })

  test('of an error, and one without a body, is not to be stored either', async () => {
    const name = await node.key()
    await done(node.root.post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    for (const reply of [await node.root.get('nomount/x'), await node.root.delete(`transit/keys/${name}`)]) {
      expect(reply.headers['cache-control']).toBe('no-store')
    }
  })

  test('cannot be wrapped yet, and is refused before anything is done', async () => {
    const name = fresh('k')
    const reply = await node.root.call('POST', `transit/keys/${name}`, {}, { 'X-Vault-Wrap-TTL': '60s' })
    expectRefused(
      reply,
      400,
      'response wrapping is not available on this server: send no X-Vault-Wrap-TTL or X-Vault-Wrap-Format',
    )
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  })

  test('is the same with the headers that Go clients and hvac add', async () => {
    const extra = { 'X-Vault-Request': 'true', 'X-Vault-Namespace': '', 'X-Vault-Policy-Override': 'true' }
    expect((await node.root.call('POST', 'transit/hash', { input: hello }, extra)).status).toBe(200)
    const other = await node.root.call('POST', 'transit/hash', { input: hello }, { 'X-Vault-Namespace': 'team' })
    expectRefused(other, 404, 'namespace not found')
  })
})

test('keys in a query are parameters of a read, never of a write', async () => {
  const reply = await node.root.call('POST', 'transit/hash?input=AAAA', { input: hello })
  expectData(reply, { sum: '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824' })
})
