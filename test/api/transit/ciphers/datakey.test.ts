import { describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, fresh, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const datakey = (type: string, name: string, body: Record<string, unknown> = {}) =>
  node.root.post(`transit/datakey/${type}/${name}`, body)
const decrypt = (name: string, body: Record<string, unknown>) => node.root.post(`transit/decrypt/${name}`, body)
const tagged = (version: number) => expect.stringMatching(`^vault:v${version}:`)

describe.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305', 'rsa-2048'])('a data key under %s', (type) => {
  test('in plaintext is shown and decrypts to the same', async () => {
    const name = await node.key({ type })
    const reply = await datakey('plaintext', name)
    expectData(reply, { ciphertext: tagged(1), key_version: 1, plaintext: expect.any(String) })
    expect(Buffer.from(reply.string('data.plaintext'), 'base64')).toHaveLength(32)
    const opened = await decrypt(name, { ciphertext: reply.string('data.ciphertext') })
    expectData(opened, { plaintext: reply.string('data.plaintext') })
  })

  test('wrapped shows the ciphertext alone', async () => {
    const name = await node.key({ type })
    const reply = await datakey('wrapped', name)
    expectData(reply, { ciphertext: tagged(1), key_version: 1 })
    const opened = await decrypt(name, { ciphertext: reply.string('data.ciphertext') })
    expect(Buffer.from(opened.string('data.plaintext'), 'base64')).toHaveLength(32)
  })
})

describe('a data key', () => {
  test.each([
    [128, 16],
    [256, 32],
    [512, 64],
    ['512', 64],
  ])('of %s bits has %i bytes', async (bits, bytes) => {
    const reply = await datakey('plaintext', await node.key(), { bits })
    expect(Buffer.from(reply.string('data.plaintext'), 'base64')).toHaveLength(bytes)
  })

  test.each([0, 64, 192, 1024, -256])('of %i bits is refused', async (bits) => {
    expectRefused(await datakey('plaintext', await node.key(), { bits }), 400, 'invalid bit length')
  })

  test('is a new one every time', async () => {
    const name = await node.key()
    const keys = await Promise.all(Array.from({ length: 20 }, () => datakey('plaintext', name)))
    expect(new Set(keys.map((reply) => reply.string('data.plaintext'))).size).toBe(20)
  })

  test('takes associated data and a version', async () => {
    const name = await node.key()
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const associated_data = base64('a')
    const reply = await datakey('plaintext', name, { associated_data, key_version: 1 })
    expectData(reply, { ciphertext: tagged(1), key_version: 1, plaintext: expect.any(String) })
    const ciphertext = reply.string('data.ciphertext')
    expectData(await decrypt(name, { ciphertext, associated_data }), { plaintext: reply.string('data.plaintext') })
    expectRefused(await decrypt(name, { ciphertext }), 400, 'cipher: message authentication failed')
    const text = 'requested version for encryption is higher than the latest key version'
    expectRefused(await datakey('plaintext', name, { key_version: 3 }), 400, text)
  })

  test('under a derived key needs its context, and decrypts with it', async () => {
    const name = await node.key({ derived: true })
    const context = base64('c')
    const reply = await datakey('plaintext', name, { context })
    const opened = await decrypt(name, { ciphertext: reply.string('data.ciphertext'), context })
    expectData(opened, { plaintext: reply.string('data.plaintext') })
    for (const body of [{}, { context: '' }]) {
      const refused = await datakey('wrapped', name, body)
      expect(refused.status).toBe(400)
      expect(refused.body).toEqual({ errors: [expect.stringMatching(/^missing 'context' for key derivation/)] })
    }
  })

  test('is padded by OAEP alone', async () => {
    const name = await node.key({ type: 'rsa-2048' })
    const text = 'padding_scheme "pkcs1v15" is not offered: RSA encryption uses oaep only'
    expectRefused(await datakey('wrapped', name, { padding_scheme: 'pkcs1v15' }), 400, text)
    await done(datakey('wrapped', name, { padding_scheme: 'oaep' }))
  })

  test('ignores a nonce with a warning', async () => {
    const reply = await datakey('wrapped', await node.key(), { nonce: base64(Buffer.alloc(12)) })
    expectData(reply, { ciphertext: tagged(1), key_version: 1 }, ['the nonce was not used: this key makes its own'])
  })

  test.each([
    [{ context: '!' }, 'failed to base64-decode context: illegal base64 data at input byte 0'],
    [{ nonce: '!' }, 'failed to base64-decode nonce: illegal base64 data at input byte 0'],
    [{ nonce: 'AAAA' }, 'base64-decoded nonce must be 12 bytes long but given 3 bytes'],
    [{ associated_data: '!' }, 'failed to base64-decode associated_data: illegal base64 data at input byte 0'],
    [{ key_version: -1 }, 'requested version for encryption is negative'],
  ])('with %j is refused: %s', async (body, text) => {
    expectRefused(await datakey('wrapped', await node.key(), body), 400, text)
  })

  test('of another type is refused', async () => {
    expectRefused(await datakey('naked', await node.key()), 400, "Invalid path, must be 'plaintext' or 'wrapped'")
  })

  test.each(['ecdsa-p256', 'ed25519', 'hmac'])('under a key of type %s is refused', async (type) => {
    const text = `message encryption not supported for key type ${type}`
    expectRefused(await datakey('plaintext', await node.key({ type })), 400, text)
  })

  test('never makes the key it is under', async () => {
    const name = fresh('k')
    expectRefused(await datakey('plaintext', name), 400, 'encryption key not found')
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  })

  test('in plaintext may be forbidden and wrapped permitted, since the type is in the path', async () => {
    const name = await node.key()
    const client = await node.limited('path "transit/datakey/wrapped/*" { capabilities = ["update"] }')
    expect((await client.post(`transit/datakey/wrapped/${name}`)).status).toBe(200)
    expect((await client.post(`transit/datakey/plaintext/${name}`)).status).toBe(403)
  })
})
