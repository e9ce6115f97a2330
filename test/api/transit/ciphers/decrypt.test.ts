import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, fresh, hello, useNode } from '../../node.ts'

const node = useNode()
const decrypt = (name: string, ciphertext: unknown) => node.root.post(`transit/decrypt/${name}`, { ciphertext })
let key: string
let good: string

beforeAll(async () => {
  key = await node.key()
  good = (await done(node.root.post(`transit/encrypt/${key}`, { plaintext: hello }))).string('data.ciphertext')
})

const payload = () => good.slice('vault:v1:'.length)

describe('decrypting', () => {
  test.each([
    [() => undefined, 'missing ciphertext to decrypt'],
    [() => '', 'missing ciphertext to decrypt'],
    [() => 'hello', 'invalid ciphertext: no prefix'],
    [() => payload(), 'invalid ciphertext: no prefix'],
    [() => 'vault:v1', 'invalid ciphertext: wrong number of fields'],
    [() => `vault:vx:${payload()}`, 'invalid ciphertext: version number could not be decoded'],
    [() => `vault:v-1:${payload()}`, 'invalid ciphertext: version number could not be decoded'],
    [() => `vault:v${'9'.repeat(30)}:${payload()}`, 'invalid ciphertext: version number could not be decoded'],
    [() => `vault:v2:${payload()}`, 'invalid ciphertext: version is too new'],
    [() => 'vault:v1:!!!!', 'invalid ciphertext: could not decode base64'],
    [() => `vault:v1:${base64(Buffer.alloc(11))}`, 'invalid ciphertext length'],
    [() => `vault:v1:${base64(Buffer.alloc(27))}`, 'cipher: message authentication failed'],
    [() => `vault:v1:${base64(Buffer.alloc(40))}`, 'cipher: message authentication failed'],
  ])('case %# is refused: %s', async (ciphertext, text) => {
    expectRefused(await decrypt(key, ciphertext()), 400, text)
  })

  test('reads version 0 as version 1', async () => {
    expectData(await decrypt(key, good.replace('v1', 'v0')), { plaintext: hello })
  })

  test('refuses a ciphertext with any bit turned, always in the same words', async () => {
    const bytes = Buffer.from(payload(), 'base64')
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length * 8 - 1), async (bit) => {
        const turned = Buffer.from(bytes)
        turned[bit >> 3] = (turned[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        const reply = await decrypt(key, `vault:v1:${base64(turned)}`)
        expectRefused(reply, 400, 'cipher: message authentication failed')
      }),
      { numRuns: 60 },
    )
  })

  test('with another key, or another version, is refused', async () => {
    expectRefused(await decrypt(await node.key(), good), 400, 'cipher: message authentication failed')
    const name = await node.key()
    const sealed = await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const wrong = sealed.string('data.ciphertext').replace('v1', 'v2')
    expectRefused(await decrypt(name, wrong), 400, 'cipher: message authentication failed')
  })

  test('with a missing key is refused, and makes none', async () => {
    const name = fresh('k')
    expectRefused(await decrypt(name, good), 400, 'encryption key not found')
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  })

  test.each(['ecdsa-p256', 'ed25519', 'hmac'])('with a key of type %s is refused', async (type) => {
    const name = await node.key({ type })
    expectRefused(await decrypt(name, good), 400, `message decryption not supported for key type ${type}`)
  })

  test('gives back any plaintext', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.uint8Array({ maxLength: 40 }), async (bytes, aad) => {
        const associated_data = base64(aad)
        const sealed = await node.root.post(`transit/encrypt/${key}`, { plaintext: base64(bytes), associated_data })
        const ciphertext = sealed.string('data.ciphertext')
        const opened = await node.root.post(`transit/decrypt/${key}`, { ciphertext, associated_data })
        expect(opened.string('data.plaintext')).toBe(base64(bytes))
      }),
      { numRuns: 30 },
    )
  })

  test('leaves no plaintext in the log', () => {
    expect(node.server.output()).not.toContain(hello)
  })
})
