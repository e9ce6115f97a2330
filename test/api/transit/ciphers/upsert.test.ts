import { describe, expect, test } from 'vitest'
import type { Client } from '../../../support/client.ts'
import { base64, done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const encrypt = (name: string, body: Record<string, unknown>, client: Client = node.root) =>
  client.post(`transit/encrypt/${name}`, body)
const exists = async (name: string) => (await node.root.get(`transit/keys/${name}`)).status === 200
const may = (...capabilities: string[]) =>
  node.limited(`path "transit/encrypt/*" { capabilities = ${JSON.stringify(capabilities)} }`)

describe('encrypting with a key that does not exist', () => {
  test('makes it, of the default type', async () => {
    const name = fresh('k')
    const reply = await encrypt(name, { plaintext: hello })
    expect(reply.body).toMatchObject({ data: { key_version: 1, ciphertext: expect.stringMatching(/^vault:v1:/) } })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { type: 'aes256-gcm96', derived: false, exportable: false, latest_version: 1 },
    })
  })

  test.each(['aes128-gcm96', 'chacha20-poly1305'])('makes it of type %s when asked', async (type) => {
    const name = fresh('k')
    await encrypt(name, { plaintext: hello, type })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { type } })
  })

  test('takes the type of the first item of a batch, else of the request', async () => {
    const [first, second] = [fresh('k'), fresh('k')]
    await encrypt(first, { type: 'aes256-gcm96', batch_input: [{ plaintext: hello, type: 'aes128-gcm96' }] })
    await encrypt(second, { type: 'aes128-gcm96', batch_input: [{ plaintext: hello }] })
    for (const name of [first, second]) {
      expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { type: 'aes128-gcm96' } })
    }
  })

  test('by many clients at once makes one key, and all can decrypt', async () => {
    const name = fresh('k')
    const replies = await Promise.all(Array.from({ length: 10 }, () => encrypt(name, { plaintext: hello })))
    for (const reply of replies) {
      const ciphertext = reply.string('data.ciphertext')
      const opened = await node.root.post(`transit/decrypt/${name}`, { ciphertext })
      expect(opened.string('data.plaintext')).toBe(hello)
    }
  })

  test.each([
    [{ type: 'ecdsa-p256' }, 'key type ecdsa-p256 not supported for this operation'],
    [{ type: 'rsa-2048' }, 'unknown key type rsa-2048'],
    [{ type: 'hmac' }, 'unknown key type hmac'],
    [{ type: 'nothing' }, 'unknown key type nothing'],
    [
      { convergent_encryption: true },
      'convergent encryption requires derivation to be enabled, so context is required',
    ],
    [{ plaintext: '', context: '\n' }, 'context must not be empty: leave it out for a key that is not derived'],
    [{ context: '\r\n' }, 'context must not be empty: leave it out for a key that is not derived'],
    [{ context: '!' }, 'failed to base64-decode context: illegal base64 data at input byte 0'],
    [{ associated_data: '!' }, 'failed to base64-decode associated_data: illegal base64 data at input byte 0'],
    [{ type: 'ed25519', context: base64('x') }, 'unknown key type ed25519'],
    [{ type: 'managed_key' }, 'unknown key type managed_key'],
    [{ plaintext: '!' }, 'failed to base64-decode plaintext: illegal base64 data at input byte 0'],
    [{ nonce: 'AAAA' }, 'base64-decoded nonce must be 12 bytes long but given 3 bytes'],
    [{ key_version: 2 }, 'requested version for encryption is higher than the latest key version'],
  ])('and %j is refused, and leaves no key behind: %s', async (body, text) => {
    const name = fresh('k')
    expectRefused(await encrypt(name, { plaintext: hello, ...body }), 400, text)
    expect(await exists(name)).toBe(false)
  })

  test('and a batch of which nothing can be encrypted leaves no key behind', async () => {
    const name = fresh('k')
    const reply = await encrypt(name, { batch_input: [{ plaintext: '!' }, { plaintext: hello, key_version: 9 }] })
    expect(reply.body).toMatchObject({
      data: { batch_results: [{ error: expect.any(String) }, { error: expect.any(String) }] },
    })
    expect(reply.status).toBe(400)
    expect(await exists(name)).toBe(false)
  })

  test('and a batch whose only contexts are empty leaves no key behind', async () => {
    const name = fresh('k')
    const item = { plaintext: hello, context: '\n' }
    expect((await encrypt(name, { batch_input: [item, item] })).status).toBe(400)
    expect(await exists(name)).toBe(false)
    const mixed = { batch_input: [item, { plaintext: hello, context: base64('c') }] }
    expect((await encrypt(name, mixed)).body).toMatchObject({ data: { batch_results: [{}, { key_version: 1 }] } })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { derived: true } })
  })

  test('and a batch of which something can be encrypted makes it', async () => {
    const name = fresh('k')
    const reply = await encrypt(name, { batch_input: [{ plaintext: '!' }, { plaintext: hello }] })
    expect(reply.status).toBe(400)
    expect(reply.body).toMatchObject({ data: { batch_results: [{}, { key_version: 1 }] } })
    expect(await exists(name)).toBe(true)
  })
})

describe('encrypting with a context and a key that does not exist', () => {
  const context = base64('c')
  const read = async (name: string) => (await node.root.get(`transit/keys/${name}`)).body

  test.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'])('makes a derived key of type %s', async (type) => {
    const name = fresh('k')
    const ciphertext = (await encrypt(name, { plaintext: hello, context, type })).string('data.ciphertext')
    expect(await read(name)).toMatchObject({ data: { type, derived: true, convergent_encryption: false } })
    const opened = await node.root.post(`transit/decrypt/${name}`, { ciphertext, context })
    expect(opened.string('data.plaintext')).toBe(hello)
  })

  test('makes a convergent one when asked, and does not use a nonce', async () => {
    const name = fresh('k')
    const nonce = base64(Buffer.alloc(12, 3))
    const body = { plaintext: hello, context, convergent_encryption: true, nonce }
    const first = await encrypt(name, body)
    expect(first.body).toMatchObject({ warnings: ['the nonce was not used: this key makes its own'] })
    expect((await encrypt(name, body)).string('data.ciphertext')).toBe(first.string('data.ciphertext'))
    expect(await read(name)).toMatchObject({
      data: { derived: true, convergent_encryption: true, convergent_encryption_version: -1 },
    })
  })

  test('takes convergence from the items of a batch, which all have a context', async () => {
    const name = fresh('k')
    const item = { plaintext: hello, context, convergent_encryption: 'true', type: 'aes128-gcm96' }
    const number = { ...item, convergent_encryption: 7 }
    const reply = await encrypt(name, { batch_input: [item, number, { ...item, context: base64('d') }] })
    const results = (reply.body as { data: { batch_results: { ciphertext: string }[] } }).data.batch_results
    expect(new Set(results.map(({ ciphertext }) => ciphertext)).size).toBe(2)
    expect(await read(name)).toMatchObject({ data: { type: 'aes128-gcm96', convergent_encryption: true } })
  })

  test.each([
    ['context', [{ context }, {}], /^context should be set either in all the request blocks or in none$/],
    ['type', [{}, { type: 'aes128-gcm96' }], /^type should be the same in all the request blocks/],
    [
      'convergent_encryption',
      [{ context, convergent_encryption: true }, { context }],
      /^convergent_encryption should be the same in all the request blocks/,
    ],
  ])('makes none for a batch whose items disagree about %s', async (_, items, text) => {
    const name = fresh('k')
    const reply = await encrypt(name, { batch_input: items.map((item) => ({ plaintext: hello, ...item })) })
    expect(reply.status).toBe(400)
    expect(reply.body).toEqual({ errors: [expect.stringMatching(text)] })
    expect(await exists(name)).toBe(false)
  })

  test.each([
    ['convergent_encryption', 'perhaps', /convergent_encryption/],
    ['convergent_encryption', [7], /convergent_encryption/],
    ['type', {}, /type/],
  ])('makes none when %s is %j', async (field, value, text) => {
    const name = fresh('k')
    const reply = await encrypt(name, { batch_input: [{ plaintext: hello, context, [field]: value }] })
    expect(reply.status).toBe(400)
    expect(reply.text).toMatch(text)
    expect(await exists(name)).toBe(false)
  })
})

describe('where the mount makes no keys by encrypting', () => {
  test('a missing key is refused whatever the token may do, and an existing one is used', async () => {
    const [mount, name] = [await node.mount(), fresh('k')]
    await done(node.root.post(`${mount}/keys/old`))
    await done(node.root.post(`${mount}/config/keys`, { disable_upsert: true }))
    const post = (key: string, body: Record<string, unknown>) => node.root.post(`${mount}/encrypt/${key}`, body)
    expectRefused(await post(name, { plaintext: hello }), 400, 'encryption key not found')
    expectRefused(await post(name, { batch_input: [{ plaintext: hello }] }), 400, 'encryption key not found')
    expect((await node.root.get(`${mount}/keys/${name}`)).status).toBe(404)
    expect((await post('old', { plaintext: hello })).status).toBe(200)
    await done(node.root.post(`${mount}/config/keys`, { disable_upsert: false }))
    expect((await post(name, { plaintext: hello })).status).toBe(200)
  })
})

describe('a token that encrypts', () => {
  test('with only update uses keys and makes none', async () => {
    const [client, old, name] = [await may('update'), await node.key(), fresh('k')]
    expect((await encrypt(old, { plaintext: hello }, client)).status).toBe(200)
    const reply = await encrypt(name, { plaintext: hello }, client)
    expect(reply.status).toBe(403)
    expect(reply.body).toMatchObject({ errors: ['1 error occurred:\n\t* permission denied\n\n', expect.any(String)] })
    expect(await exists(name)).toBe(false)
  })

  test('with only create makes keys and uses no existing one', async () => {
    const [client, name] = [await may('create'), fresh('k')]
    expect((await encrypt(name, { plaintext: hello }, client)).status).toBe(200)
    expect((await encrypt(name, { plaintext: hello }, client)).status).toBe(403)
  })

  test('with both does both', async () => {
    const [client, name] = [await may('create', 'update'), fresh('k')]
    expect((await encrypt(name, { plaintext: hello }, client)).status).toBe(200)
    expect((await encrypt(name, { plaintext: hello }, client)).status).toBe(200)
  })
})

test('nothing but encrypt makes a key', async () => {
  const name = fresh('k')
  for (const verb of ['decrypt', 'rewrap', 'sign', 'verify', 'hmac', 'datakey/plaintext']) {
    const reply = await node.root.post(`transit/${verb}/${name}`, {
      input: hello,
      ciphertext: 'vault:v1:AAAA',
      hmac: 'x',
    })
    expect(reply.status, verb).toBe(400)
    expect(reply.text).toMatch(/key not found/)
  }
  expect(await exists(name)).toBe(false)
})
