import { describe, expect, test } from 'vitest'
import { done, expectRefused, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const rotate = (name: string, body = {}) => node.root.post(`transit/keys/${name}/rotate`, body)

describe('rotating', () => {
  test('answers the key object with one version more, and everything new is made with it', async () => {
    const name = await node.key()
    const reply = await rotate(name)
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({
      data: { name, latest_version: 2, keys: { 1: expect.any(Number), 2: expect.any(Number) } },
    })
    const sealed = await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })
    expect(sealed.string('data.ciphertext')).toMatch(/^vault:v2:/)
    const mac = await node.root.post(`transit/hmac/${name}`, { input: hello })
    expect(mac.string('data.hmac')).toMatch(/^vault:v2:/)
  })

  test('keeps ciphertexts of older versions readable', async () => {
    const name = await node.key()
    const old = (await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })).string('data.ciphertext')
    const mac = (await node.root.post(`transit/hmac/${name}`, { input: hello })).string('data.hmac')
    await done(rotate(name))
    const opened = await node.root.post(`transit/decrypt/${name}`, { ciphertext: old })
    expect(opened.string('data.plaintext')).toBe(hello)
    const verified = await node.root.post(`transit/verify/${name}`, { input: hello, hmac: mac })
    expect(verified.body).toMatchObject({ data: { valid: true } })
  })

  test('gives every version a key and an HMAC secret of its own', async () => {
    const name = await node.key({ type: 'ecdsa-p256' })
    await done(rotate(name))
    const { keys } = ((await node.root.get(`transit/keys/${name}`)).body as { data: { keys: Keys } }).data
    expect(keys[1]?.public_key).not.toBe(keys[2]?.public_key)
    const macs = await Promise.all(
      [1, 2].map((key_version) => node.root.post(`transit/hmac/${name}`, { input: hello, key_version })),
    )
    const [one, two] = macs.map((reply) => reply.string('data.hmac').split(':')[2])
    expect(one).not.toBe(two)
  })

  test.each(['aes128-gcm96', 'chacha20-poly1305', 'ed25519', 'ecdsa-p521', 'rsa-2048', 'hmac'])(
    'works for a key of type %s',
    async (type) => {
      const name = await node.key({ type })
      expect((await rotate(name)).body).toMatchObject({ data: { latest_version: 2, type } })
    },
  )

  test('by many clients at once gives as many versions, none twice', async () => {
    const name = await node.key()
    const replies = await Promise.all(Array.from({ length: 10 }, () => rotate(name)))
    expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { latest_version: 11 } })
    for (let key_version = 1; key_version <= 11; key_version++) {
      const sealed = await node.root.post(`transit/encrypt/${name}`, { plaintext: hello, key_version })
      const opened = await node.root.post(`transit/decrypt/${name}`, { ciphertext: sealed.string('data.ciphertext') })
      expect(opened.string('data.plaintext')).toBe(hello)
    }
  })

  test('is seen by the very next request', async () => {
    const name = await node.key()
    for (let version = 2; version < 12; version++) {
      await rotate(name)
      const sealed = await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })
      expect(sealed.body).toMatchObject({ data: { key_version: version } })
    }
  })

  test('is refused for a missing key, and with a managed key for a key of another type', async () => {
    expectRefused(await rotate('nokey'), 400, 'key not found')
    const reply = await rotate(await node.key(), { managed_key_name: 'x' })
    expectRefused(reply, 400, 'managed_key_name and managed_key_id are for keys of type managed_key')
  })
})

type Keys = Readonly<Record<string, { readonly public_key: string }>>
