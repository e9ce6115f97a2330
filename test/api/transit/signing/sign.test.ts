import { createHash, verify } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, hello, useSharedNode } from '../../node.ts'
import { bytesOf, hashNames, opensslVerifies, publicKeyOf } from '../../signing.ts'

const node = useSharedNode()
const message = Buffer.from('hello')
const names: Record<string, string> = {}
const sign = (type: string, body: Record<string, unknown> = {}, hash = '') =>
  node.root.post(`transit/sign/${names[type]}${hash}`, { input: hello, ...body })
const signature = async (type: string, body: Record<string, unknown> = {}) =>
  (await done(sign(type, body))).string('data.signature')

beforeAll(async () => {
  for (const type of ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519', 'rsa-2048', 'aes256-gcm96', 'hmac']) {
    names[type] = await node.key({ type })
  }
})
const keyOf = (type: string) => publicKeyOf(node.root, names[type] ?? '')

describe('signing', () => {
  test('answers a signature with its version, and nothing else', async () => {
    const reply = await sign('ecdsa-p256')
    expectData(reply, { key_version: 1, signature: expect.stringMatching(/^vault:v1:[A-Za-z0-9+/]+={0,2}$/) })
  })

  test.each(hashNames)('with ECDSA and %s verifies by node:crypto', async (hash_algorithm, hash) => {
    const bytes = bytesOf(await signature('ecdsa-p256', { hash_algorithm }))
    expect(verify(hash, message, await keyOf('ecdsa-p256'), bytes)).toBe(true)
    expect(verify(hash, Buffer.from('other'), await keyOf('ecdsa-p256'), bytes)).toBe(false)
  })

  test.each([
    ['ecdsa-p256', 64],
    ['ecdsa-p384', 96],
    ['ecdsa-p521', 132],
  ])('with %s in JWS form gives %i bytes in base64url', async (type, length) => {
    const text = await signature(type, { marshaling_algorithm: 'jws' })
    expect(text).toMatch(/^vault:v1:[\w-]+$/)
    const bytes = bytesOf(text, 'base64url')
    expect(bytes).toHaveLength(length)
    const key = { key: await keyOf(type), dsaEncoding: 'ieee-p1363' } as const
    expect(verify('sha256', message, key, bytes)).toBe(true)
  })

  test('with ECDSA of a digest is as of the input', async () => {
    const input = base64(createHash('sha384').update(message).digest())
    const bytes = bytesOf(await signature('ecdsa-p256', { input, prehashed: true, hash_algorithm: 'sha2-384' }))
    expect(verify('sha384', message, await keyOf('ecdsa-p256'), bytes)).toBe(true)
  })

  test.each([0, 1, 20, 32, 48, 100])('with ECDSA takes a digest of any length: %i bytes', async (length) => {
    const input = base64(Buffer.alloc(length, 9))
    for (const type of ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521']) {
      for (const marshaling_algorithm of ['asn1', 'jws']) {
        const how = { input, prehashed: true, marshaling_algorithm }
        const made = await signature(type, how)
        const verified = (body: Record<string, unknown>) => node.root.post(`transit/verify/${names[type]}`, body)
        expectData(await verified({ ...how, signature: made }), { valid: true })
        const other = base64(Buffer.concat([Buffer.from([1]), Buffer.alloc(Math.max(0, length - 1), 9)]))
        expectData(await verified({ ...how, input: other, signature: made }), { valid: false })
      }
    }
  })

  test('with hash none and ECDSA or Ed25519 is over the input itself', async () => {
    const none = { hash_algorithm: 'none', prehashed: true, signature_algorithm: 'pkcs1v15' }
    const input = base64(createHash('sha256').update(message).digest())
    const ec = bytesOf(await signature('ecdsa-p256', { ...none, input }))
    expect(verify('sha256', message, await keyOf('ecdsa-p256'), ec)).toBe(true)
    expect(verify(null, message, await keyOf('ed25519'), bytesOf(await signature('ed25519', none)))).toBe(true)
  })

  test('with Ed25519 is over the input, for any hash or prehashed', async () => {
    const first = await signature('ed25519')
    const key = await keyOf('ed25519')
    expect(verify(null, message, key, bytesOf(first))).toBe(true)
    const scheme = { hash_algorithm: 'sha2-512', prehashed: true }
    expect(await signature('ed25519', scheme)).toBe(first)
    const jws = await signature('ed25519', { marshaling_algorithm: 'jws' })
    expect(bytesOf(jws, 'base64url')).toEqual(bytesOf(first))
  })

  test.each(['ecdsa-p256', 'ed25519'])('with %s ignores signature_algorithm, and so does verifying', async (type) => {
    const body = { signature_algorithm: 'zzz' }
    const made = await signature(type, body)
    const verified = (more: object) =>
      node.root.post(`transit/verify/${names[type]}`, { input: hello, ...body, ...more })
    expectData(await verified({ signature: made }), { valid: true })
    expectData(await verified({ signature: made, input: base64('other') }), { valid: false })
    const item = { input: hello, ...body }
    const batch = await done(node.root.post(`transit/sign/${names[type]}`, { batch_input: [item] }))
    expectData(await verified({ signature: batch.string('data.batch_results.0.signature') }), { valid: true })
  })

  test('takes the empty input', async () => {
    expect(
      verify(null, Buffer.alloc(0), await keyOf('ed25519'), bytesOf(await signature('ed25519', { input: '' }))),
    ).toBe(true)
  })

  test('takes the hash from the URL, then from hash_algorithm, then from its older name', async () => {
    const key = await keyOf('ecdsa-p256')
    const hashOf = async (body: Record<string, unknown>, url = '') => {
      const bytes = bytesOf((await done(sign('ecdsa-p256', body, url))).string('data.signature'))
      return hashNames.find(([, hash]) => verify(hash, message, key, bytes))?.[0]
    }
    expect(await hashOf({ hash_algorithm: 'sha2-384', algorithm: 'sha2-224' }, '/sha2-512')).toBe('sha2-512')
    expect(await hashOf({ hash_algorithm: 'sha2-384', algorithm: 'sha2-224' })).toBe('sha2-384')
    expect(await hashOf({ algorithm: 'sha2-224' })).toBe('sha2-224')
    expect(await hashOf({})).toBe('sha2-256')
  })

  test('with an older version verifies by that version’s key', async () => {
    const name = await node.key({ type: 'ed25519' })
    const key = await publicKeyOf(node.root, name)
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const reply = await node.root.post(`transit/sign/${name}`, { input: hello, key_version: 1 })
    expect(reply.body).toMatchObject({ data: { key_version: 1 } })
    expect(verify(null, message, key, bytesOf(reply.string('data.signature')))).toBe(true)
  })

  test.each([{ hash_algorithm: 'none' }, { hash_algorithm: 'none', prehashed: true }])(
    'with Ed25519 and %j signs the input, for which it needs no hash',
    async (how) => {
      const made = await signature('ed25519', how)
      expect(made).toBe(await signature('ed25519'))
      const signed = { input: hello, signature: made }
      expectData(await node.root.post(`transit/verify/${names.ed25519}`, { ...signed, ...how }), { valid: true })
      expectData(await node.root.post(`transit/verify/${names.ed25519}/none`, signed), { valid: true })
    },
  )

  test('is confirmed by openssl', async () => {
    const verb = (...digest: string[]) => ['pkeyutl', '-verify', '-rawin', ...digest, '-pubin', '-inkey']
    const ec = bytesOf(await signature('ecdsa-p384', { hash_algorithm: 'sha2-384' }))
    expect(opensslVerifies(await keyOf('ecdsa-p384'), message, ec, verb('-digest', 'sha384'))).toBe(true)
    expect(opensslVerifies(await keyOf('ed25519'), message, bytesOf(await signature('ed25519')), verb())).toBe(true)
  })
})

describe('signing is refused', () => {
  const none = 'hash_algorithm=none requires both prehashed=true and signature_algorithm=pkcs1v15'
  test.each([
    [{ input: undefined }, 'missing input'],
    [{ input: null }, 'missing input'],
    [{ input: '!' }, 'unable to decode input as base64: illegal base64 data at input byte 0'],
    [{ hash_algorithm: 'sha9' }, 'invalid hash algorithm "sha9"'],
    [{ hash_algorithm: 'none' }, none],
    [{ hash_algorithm: 'none', prehashed: true }, none],
    [{ marshaling_algorithm: 'x' }, 'invalid marshaling type "x"'],
    [{ salt_length: 'abc' }, "salt length neither 'auto', 'hash', nor an int: abc"],
    [{ salt_length: -5 }, 'salt length is invalid: -5'],
    [{ key_version: 2 }, 'requested version for signing is higher than the latest key version'],
    [{ key_version: -1 }, 'requested version for signing is negative'],
  ])('with %j: %s', async (body, text) => {
    expectRefused(await sign('ecdsa-p256', body), 400, text)
  })

  test('with a signature algorithm that RSA keys do not have', async () => {
    const body = { signature_algorithm: 'zzz' }
    expectRefused(await sign('rsa-2048', body), 400, 'unsupported rsa signature algorithm zzz')
    const signed = { input: hello, signature: await signature('rsa-2048'), ...body }
    const verified = await node.root.post(`transit/verify/${names['rsa-2048']}`, signed)
    expectRefused(verified, 400, 'unsupported rsa signature algorithm zzz')
  })

  test('with an unknown hash in the URL', async () => {
    expectRefused(await sign('ecdsa-p256', {}, '/sha9'), 400, 'invalid hash algorithm "sha9"')
    expectRefused(await sign('ecdsa-p256', { hash_algorithm: 'sha2-256' }, '/none'), 400, none)
  })

  test.each(['aes256-gcm96', 'hmac'])('by a key of type %s', async (type) => {
    expectRefused(await sign(type), 400, `key type ${type} does not support signing`)
  })

  test('below the minimum version, and for a missing key', async () => {
    const name = await node.key({ type: 'ed25519' })
    await done(node.root.post(`transit/keys/${name}/rotate`))
    await done(node.root.post(`transit/keys/${name}/config`, { min_encryption_version: 2 }))
    const old = 'requested version for signing is less than the minimum encryption key version'
    expectRefused(await node.root.post(`transit/sign/${name}`, { input: hello, key_version: 1 }), 400, old)
    expectRefused(await node.root.post('transit/sign/nokey', { input: hello }), 400, 'signing key not found')
  })
})
