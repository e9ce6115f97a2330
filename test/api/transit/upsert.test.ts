import { describe, expect, test } from 'vitest'
import type { Client } from '../../support/client.ts'
import { base64, expectRefused, fresh, hello, useNode } from '../node.ts'

const node = useNode()
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
    [{ context: base64('x') }, 'derived keys are not available yet: send no context for a key that does not exist'],
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

  test('and a batch of which something can be encrypted makes it', async () => {
    const name = fresh('k')
    const reply = await encrypt(name, { batch_input: [{ plaintext: '!' }, { plaintext: hello }] })
    expect(reply.status).toBe(400)
    expect(reply.body).toMatchObject({ data: { batch_results: [{}, { key_version: 1 }] } })
    expect(await exists(name)).toBe(true)
  })
})

describe('a token that encrypts', () => {
  test('with update alone uses keys and makes none', async () => {
    const [client, old, name] = [await may('update'), await node.key(), fresh('k')]
    expect((await encrypt(old, { plaintext: hello }, client)).status).toBe(200)
    const reply = await encrypt(name, { plaintext: hello }, client)
    expect(reply.status).toBe(403)
    expect(reply.body).toMatchObject({ errors: ['1 error occurred:\n\t* permission denied\n\n', expect.any(String)] })
    expect(await exists(name)).toBe(false)
  })

  test('with create alone makes keys and uses none that exists', async () => {
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
  for (const verb of ['decrypt', 'rewrap', 'sign', 'verify', 'hmac']) {
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
