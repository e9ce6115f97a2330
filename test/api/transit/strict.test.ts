import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startServer, type TestServer } from '../../support/server.ts'
import { expectData, expectRefused, fresh, hello } from '../node.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ config: { strict: true } })
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())
const post = (path: string, body: Record<string, unknown> = {}) => server.client().post(`transit/${path}`, body)

async function key(type: string): Promise<string> {
  const name = fresh('s')
  expect((await post(`keys/${name}`, { type })).status).toBe(200)
  return name
}
const custodyOf = async (name: string): Promise<unknown> =>
  ((await server.client().get(`transit/keys/${name}`)).body as { data: { custody: unknown } }).data.custody

describe('strict mode on SoftHSM', () => {
  test('refuses operations that the token cannot compute, naming the mechanism', async () => {
    const chacha = 'strict mode: the HSM lacks CKM_CHACHA20_POLY1305'
    expectRefused(await post(`keys/${fresh('s')}`, { type: 'chacha20-poly1305' }), 400, chacha)
    expectRefused(await post(`encrypt/${fresh('s')}`, { type: 'chacha20-poly1305', plaintext: hello }), 400, chacha)
  })

  test.each([224, 256, 384, 512])(
    'refuses HMAC with SHA3-%i by its name, and makes the SHA-2 of its length',
    async (bits) => {
      const name = await key('hmac')
      const text = `strict mode: the HSM lacks CKM_SHA3_${bits}_HMAC`
      expectRefused(await post(`hmac/${name}`, { input: hello, algorithm: `sha3-${bits}` }), 400, text)
      const asked = { input: hello, algorithm: `sha3-${bits}`, hmac: 'vault:v1:AAAA' }
      expectRefused(await post(`verify/${name}`, asked), 400, text)
      const long = fresh('s')
      expect((await post(`keys/${long}`, { type: 'hmac', key_size: 64 })).status).toBe(200)
      const mac = await post(`hmac/${long}`, { input: hello, algorithm: `sha2-${bits}` })
      expectData(mac, { hmac: expect.stringMatching(/^vault:v1:/) })
    },
  )

  test('refuses HMAC with a secret that is too short for the hash, naming the size that serves', async () => {
    const name = await key('hmac')
    const text =
      'strict mode: CKM_SHA384_HMAC in the HSM takes secrets of 48 bytes or more, and that of version 1 has 32: key_size 64 serves every SHA-2'
    expectRefused(await post(`hmac/${name}`, { input: hello, algorithm: 'sha2-384' }), 400, text)
    expect((await post(`hmac/${name}`, { input: hello })).status).toBe(200)
    expect(await custodyOf(name)).toMatchObject({ 1: { residence: 'wrapped', ever_plaintext: false } })
  })

  test('makes every SHA-2 with the secret of a key of another type', async () => {
    const name = await key('aes256-gcm96')
    for (const bits of [224, 256, 384, 512]) {
      const mac = await post(`hmac/${name}`, { input: hello, algorithm: `sha2-${bits}` })
      expectData(mac, { hmac: expect.stringMatching(/^vault:v1:/) })
    }
    expect(await custodyOf(name)).toMatchObject({ 1: { hmac: { residence: 'wrapped', ever_plaintext: false } } })
  })

  test('signs with SHA-3 nevertheless: the digest is public', async () => {
    for (const type of ['rsa-2048', 'ecdsa-p256']) {
      const name = await key(type)
      const how = { input: hello, hash_algorithm: 'sha3-256' }
      const signature = (await post(`sign/${name}`, how)).string('data.signature')
      expectData(await post(`verify/${name}`, { ...how, signature }), { valid: true })
    }
  })

  test('decrypts RSA-OAEP with a private key that stays in the token', async () => {
    const name = await key('rsa-2048')
    const ciphertext = (await post(`encrypt/${name}`, { plaintext: hello })).string('data.ciphertext')
    expectData(await post(`decrypt/${name}`, { ciphertext }), { plaintext: hello })
    expect(await custodyOf(name)).toMatchObject({ 1: { residence: 'wrapped', ever_plaintext: false } })
  })

  test('keeps Ed25519 keys in the token, which cannot wrap them', async () => {
    const name = await key('ed25519')
    const signature = (await post(`sign/${name}`, { input: hello })).string('data.signature')
    expectData(await post(`verify/${name}`, { input: hello, signature }), { valid: true })
    expect(await custodyOf(name)).toMatchObject({ 1: { residence: 'token', ever_plaintext: false } })
  })
})
