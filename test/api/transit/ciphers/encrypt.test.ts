import { describe, expect, test } from 'vitest'
import { base64, expectData, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const encrypt = (name: string, body: Record<string, unknown>) => node.root.post(`transit/encrypt/${name}`, body)
const decrypt = (name: string, body: Record<string, unknown>) => node.root.post(`transit/decrypt/${name}`, body)
const sealedBytes = (ciphertext: string) => Buffer.from(ciphertext.split(':')[2] ?? '', 'base64')

describe.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'])('encrypting with %s', (type) => {
  test('answers a ciphertext of 12 bytes nonce, the text and 16 bytes tag, which decrypts', async () => {
    const name = await node.key({ type })
    const reply = await encrypt(name, { plaintext: hello })
    expectData(reply, { ciphertext: expect.stringMatching(/^vault:v1:[A-Za-z0-9+/]+={0,2}$/), key_version: 1 })
    expect(sealedBytes(reply.string('data.ciphertext'))).toHaveLength(12 + 5 + 16)
    const opened = await decrypt(name, { ciphertext: reply.string('data.ciphertext') })
    expectData(opened, { plaintext: hello })
  })

  test('takes the empty text', async () => {
    const name = await node.key({ type })
    const ciphertext = (await encrypt(name, { plaintext: '' })).string('data.ciphertext')
    expect(sealedBytes(ciphertext)).toHaveLength(28)
    expectData(await decrypt(name, { ciphertext }), { plaintext: '' })
  })

  test('authenticates associated data, which decryption must repeat', async () => {
    const name = await node.key({ type })
    const associated_data = base64('who')
    const ciphertext = (await encrypt(name, { plaintext: hello, associated_data })).string('data.ciphertext')
    expectData(await decrypt(name, { ciphertext, associated_data }), { plaintext: hello })
    const text = /message authentication failed$/
    for (const other of [{}, { associated_data: base64('else') }]) {
      const reply = await decrypt(name, { ciphertext, ...other })
      expect({ status: reply.status, body: reply.body }).toEqual({
        status: 400,
        body: { errors: [expect.stringMatching(text)] },
      })
    }
  })

  test('never uses a nonce twice', async () => {
    const name = await node.key({ type })
    const batch_input = Array.from({ length: 500 }, () => ({ plaintext: hello }))
    const { body } = await encrypt(name, { batch_input })
    const { batch_results: results } = (body as { data: { batch_results: { ciphertext: string }[] } }).data
    const nonces = results.map(({ ciphertext }) => sealedBytes(ciphertext).toString('hex', 0, 12))
    expect(new Set(nonces).size).toBe(500)
  })
})

describe('encrypting', () => {
  test('takes a megabyte', async () => {
    const name = await node.key()
    const plaintext = base64(Buffer.alloc(1024 * 1024, 7))
    const ciphertext = (await encrypt(name, { plaintext })).string('data.ciphertext')
    expectData(await decrypt(name, { ciphertext }), { plaintext })
  })

  test('skips line breaks in base64, as the reference does', async () => {
    const name = await node.key()
    const ciphertext = (await encrypt(name, { plaintext: 'aGVs\r\nbG8=\n' })).string('data.ciphertext')
    expectData(await decrypt(name, { ciphertext }), { plaintext: hello })
  })

  test('with an older version does as it is told', async () => {
    const name = await node.key()
    await node.root.post(`transit/keys/${name}/rotate`)
    const tagged = (version: number) => expect.stringMatching(`^vault:v${version}:`)
    const reply = await encrypt(name, { plaintext: hello, key_version: 1 })
    expectData(reply, { ciphertext: tagged(1), key_version: 1 })
    expectData(await encrypt(name, { plaintext: hello, key_version: '0' }), { ciphertext: tagged(2), key_version: 2 })
  })

  test.each([
    [-1, 'requested version for encryption is negative'],
    [2, 'requested version for encryption is higher than the latest key version'],
  ])('with version %i is refused: %s', async (key_version, text) => {
    expectRefused(await encrypt(await node.key(), { plaintext: hello, key_version }), 400, text)
  })

  test('checks a nonce, and warns that it was not used', async () => {
    const name = await node.key()
    const nonce = base64(Buffer.alloc(12, 1))
    const reply = await encrypt(name, { plaintext: hello, nonce })
    expect(reply.body).toMatchObject({ warnings: ['the nonce was not used: this key makes its own'] })
    expect(sealedBytes(reply.string('data.ciphertext')).subarray(0, 12)).not.toEqual(Buffer.alloc(12, 1))
    const text = 'base64-decoded nonce must be 12 bytes long but given 8 bytes'
    expectRefused(await encrypt(name, { plaintext: hello, nonce: base64(Buffer.alloc(8)) }), 400, text)
  })

  test('ignores a context where the key is not derived', async () => {
    const name = await node.key()
    const ciphertext = (await encrypt(name, { plaintext: hello, context: base64('x') })).string('data.ciphertext')
    expectData(await decrypt(name, { ciphertext }), { plaintext: hello })
  })

  test.each(['ecdsa-p256', 'ed25519', 'hmac'])('with a key of type %s is refused', async (type) => {
    const text = `message encryption not supported for key type ${type}`
    expectRefused(await encrypt(await node.key({ type }), { plaintext: hello }), 400, text)
  })

  test.each([
    [{}, 'missing plaintext to encrypt'],
    [{ plaintext: null }, 'missing plaintext to encrypt'],
    [{ plaintext: 'aGk' }, 'failed to base64-decode plaintext: illegal base64 data at input byte 0'],
    [
      { plaintext: hello, associated_data: '!' },
      'failed to base64-decode associated_data: illegal base64 data at input byte 0',
    ],
    [{ plaintext: hello, nonce: '_' }, 'failed to base64-decode nonce: illegal base64 data at input byte 0'],
  ])('%j is refused: %s', async (body, text) => {
    expectRefused(await encrypt(await node.key(), body), 400, text)
  })

  test('with a key of another mount is not possible', async () => {
    const mount = await node.mount()
    const name = await node.key()
    await node.root.post(`${mount}/keys/${name}`)
    const ciphertext = (await encrypt(name, { plaintext: hello })).string('data.ciphertext')
    const reply = await node.root.post(`${mount}/decrypt/${name}`, { ciphertext })
    expectRefused(reply, 400, 'cipher: message authentication failed')
    expectRefused(
      await node.root.post(`${mount}/decrypt/${fresh('k')}`, { ciphertext }),
      400,
      'encryption key not found',
    )
  })
})
