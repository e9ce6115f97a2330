import { beforeAll, describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'
import { bytesOf, hashNames, openedWarnings } from '../../signing.ts'

const node = useSharedNode()
let key: string
beforeAll(async () => {
  key = await node.key()
})
const hmac = (name: string, body: Record<string, unknown> = {}, url = '') =>
  node.root.post(`transit/hmac/${name}${url}`, { input: hello, ...body })
const verify = (name: string, body: Record<string, unknown>, url = '') =>
  node.root.post(`transit/verify/${name}${url}`, { input: hello, ...body })
const lengths: Record<string, number> = { 1: 20, 224: 28, 256: 32, 384: 48, 512: 64 }
const lengthOf = (hash: string) => lengths[/\d+$/.exec(hash)?.[0] ?? ''] ?? 0

describe('an HMAC', () => {
  test.each(hashNames.map(([name]) => name))(
    'with %s is the same each time, has its length, and verifies',
    async (algorithm) => {
      const reply = await hmac(key, { algorithm })
      // SoftHSM has no HMAC with SHA-3: the secret is opened, and the answer says so.
      const why = expect.stringMatching(
        /^the HSM lacks CKM_SHA3_\d+_HMAC: the HMAC secret of version 1 was in the server’s memory/,
      )
      const warnings = algorithm.startsWith('sha3') ? [why] : undefined
      expectData(reply, { hmac: expect.stringMatching(/^vault:v1:[A-Za-z0-9+/]+={0,2}$/) }, warnings)
      const text = reply.string('data.hmac')
      expect(bytesOf(text)).toHaveLength(lengthOf(algorithm))
      expect((await hmac(key, {}, `/${algorithm}`)).string('data.hmac')).toBe(text)
      expect((await hmac(key, { hash_algorithm: algorithm })).string('data.hmac')).toBe(text)
      expectData(await verify(key, { hmac: text, hash_algorithm: algorithm }), { valid: true }, warnings)
      expectData(await verify(key, { hmac: text, algorithm, input: base64('other') }), { valid: false }, warnings)
    },
  )

  test.each([16, 17, 31, 63, 64, 65, 100, 128, 511, 512])(
    'with a key of %i bytes verifies by every hash',
    async (key_size) => {
      const name = await node.key({ type: 'hmac', key_size })
      const texts = new Set<string>()
      for (const [algorithm] of hashNames) {
        const text = (await hmac(name, { algorithm })).string('data.hmac')
        const verified = await verify(name, { hmac: text, algorithm })
        expectData(verified, { valid: true }, openedWarnings(algorithm))
        texts.add(text)
      }
      expect(texts.size).toBe(hashNames.length)
    },
  )

  test.each(['aes128-gcm96', 'chacha20-poly1305', 'ed25519', 'ecdsa-p521', 'rsa-2048', 'hmac'])(
    'is made by every type of key: %s',
    async (type) => {
      const name = await node.key({ type })
      const text = (await hmac(name)).string('data.hmac')
      expectData(await verify(name, { hmac: text }), { valid: true })
    },
  )

  test('uses SHA-256 by default', async () => {
    const text = (await hmac(key, { algorithm: 'sha2-256' })).string('data.hmac')
    for (const body of [{}, { algorithm: '' }, { algorithm: null }]) expectData(await hmac(key, body), { hmac: text })
  })

  test('is made and verified with hash_algorithm if algorithm names another; the URL wins over both', async () => {
    const both = { algorithm: 'sha2-256', hash_algorithm: 'sha2-512' }
    const text = (await hmac(key, { hash_algorithm: 'sha2-512' })).string('data.hmac')
    expectData(await hmac(key, both), { hmac: text })
    expectData(await verify(key, { ...both, hmac: text }), { valid: true })
    const items = [{ input: hello, ...both }]
    expectData(await hmac(key, { batch_input: items }), { batch_results: [{ hmac: text, reference: '' }] })
    expectData(await verify(key, { batch_input: items.map((item) => ({ ...item, hmac: text })) }), {
      batch_results: [{ valid: true, reference: '' }],
    })
    const other = (await hmac(key, { hash_algorithm: 'sha2-384' })).string('data.hmac')
    const replaced = (field: string) => [
      `Endpoint replaced the value of these parameters with the values captured from the endpoint's path: [${field}]`,
    ]
    expectData(await hmac(key, both, '/sha2-384'), { hmac: other }, replaced('algorithm'))
    const verified = await verify(key, { ...both, hmac: other }, '/sha2-384')
    expectData(verified, { valid: true }, replaced('hash_algorithm'))
  })

  test('takes the empty input', async () => {
    const text = (await hmac(key, { input: '' })).string('data.hmac')
    expectData(await verify(key, { hmac: text, input: '' }), { valid: true })
  })

  test('of one key is not that of another', async () => {
    const other = await node.key()
    expect((await hmac(other)).string('data.hmac')).not.toBe((await hmac(key)).string('data.hmac'))
  })

  test('with an older version does as it is told, down to the minimum', async () => {
    const name = await node.key()
    const first = (await hmac(name)).string('data.hmac')
    await done(node.root.post(`transit/keys/${name}/rotate`))
    expectData(await hmac(name, { key_version: 1 }), { hmac: first })
    expectData(await hmac(name, { key_version: 2 }), { hmac: expect.stringMatching(/^vault:v2:/) })
    await done(node.root.post(`transit/keys/${name}/config`, { min_encryption_version: 2 }))
    const old = 'cannot generate HMAC: version is too old (disallowed by policy)'
    expectRefused(await hmac(name, { key_version: 1 }), 400, old)
    expectData(await verify(name, { hmac: first }), { valid: true })
  })
})

describe('an HMAC is refused', () => {
  test.each([
    [{ input: undefined }, 'missing input for HMAC'],
    [{ input: null }, 'missing input for HMAC'],
    [{ input: '!' }, 'unable to decode input as base64: illegal base64 data at input byte 0'],
    [{ algorithm: 'none' }, 'unsupported algorithm "none"'],
    [{ algorithm: 'md5' }, 'unsupported algorithm "md5"'],
    [{ key_version: 2 }, 'key version does not exist; latest key version is 1'],
    [{ key_version: -1 }, 'key version does not exist (cannot be negative)'],
  ])('with %j: %s', async (body, text) => {
    expectRefused(await hmac(key, body), 400, text)
  })

  test('for a missing key', async () => {
    expectRefused(await hmac(fresh('k')), 400, 'encryption key not found')
  })
})
