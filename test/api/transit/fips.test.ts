import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Reply } from '../../support/client.ts'
import { base64, done, expectData, expectRefused, fresh, hello, useNode } from '../node.ts'

/** Keys that were made before an operator turned FIPS mode on, and what may still be done with them. */
const node = useNode()
const names: Record<string, string> = {}
const before: Record<string, string> = {}
const hashed = ['sha3-224', 'sha3-256', 'sha3-384', 'sha3-512']
const post = (verb: string, type: string, body: Record<string, unknown>) =>
  node.root.post(`transit/${verb}/${names[type]}`, body)

beforeAll(async () => {
  for (const type of ['aes256-gcm96', 'chacha20-poly1305', 'ed25519', 'ecdsa-p256', 'rsa-2048', 'hmac']) {
    names[type] = await node.key({ type })
  }
  const sealed = await done(post('encrypt', 'chacha20-poly1305', { plaintext: hello }))
  before.sealed = sealed.string('data.ciphertext')
  for (const type of ['ecdsa-p256', 'rsa-2048']) {
    const signed = await done(post('sign', type, { input: hello, hash_algorithm: 'sha1' }))
    before[type] = signed.string('data.signature')
  }
  const { server } = node
  const config = JSON.parse(readFileSync(server.configFile, 'utf8'))
  await server.stop()
  writeFileSync(server.configFile, JSON.stringify({ ...config, fips: true }))
  await server.start()
}, 120_000)

const warnings = (reply: Reply): unknown => (reply.body as { warnings: unknown }).warnings
const warning = (what: string): string[] => [`FIPS mode: ${what} is not approved`]

describe('FIPS mode', () => {
  test.each(['chacha20-poly1305', 'ed25519'])('makes no key of type %s, by no way', async (type) => {
    const text = `FIPS mode: ${type} keys are not approved`
    expectRefused(await node.root.post(`transit/keys/${fresh('k')}`, { type }), 400, text)
    expectRefused(await node.root.post(`transit/keys/${names[type]}/rotate`), 400, text)
    const pem = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' })
    const material = type === 'ed25519' ? { public_key: pem } : { ciphertext: base64(Buffer.alloc(600)) }
    const imported = await node.root.post(`transit/keys/${fresh('k')}/import`, { type, ...material })
    expect(imported.status).toBe(400)
    if (type === 'ed25519') expectRefused(imported, 400, text)
    if (type === 'chacha20-poly1305') {
      expectRefused(await node.root.post(`transit/encrypt/${fresh('k')}`, { type, plaintext: hello }), 400, text)
    }
  })

  test('makes keys of every other type', async () => {
    for (const type of ['aes128-gcm96', 'aes256-gcm96', 'ecdsa-p384', 'rsa-3072', 'hmac']) await node.key({ type })
  })

  test('uses a chacha20-poly1305 key that is there, and warns', async () => {
    const sealed = await done(post('encrypt', 'chacha20-poly1305', { plaintext: hello }))
    expect(warnings(sealed)).toEqual(warning('chacha20-poly1305'))
    for (const verb of ['decrypt', 'rewrap']) {
      const reply = await done(post(verb, 'chacha20-poly1305', { ciphertext: before.sealed }))
      expect(warnings(reply)).toEqual(warning('chacha20-poly1305'))
    }
    const batch_input = [{ ciphertext: before.sealed }, { ciphertext: before.sealed }]
    expect(warnings(await done(post('decrypt', 'chacha20-poly1305', { batch_input })))).toEqual(
      warning('chacha20-poly1305'),
    )
  })

  test('signs and verifies with an ed25519 key that is there, and warns of the key alone', async () => {
    const signed = await done(post('sign', 'ed25519', { input: hello, hash_algorithm: 'sha3-256' }))
    expect(warnings(signed)).toEqual(warning('ed25519'))
    const signature = signed.string('data.signature')
    expectData(await post('verify', 'ed25519', { input: hello, signature }), { valid: true }, warning('ed25519'))
    // Its HMAC secret is a secret as any other.
    expect(warnings(await done(post('hmac', 'ed25519', { input: hello })))).toBeNull()
  })

  test.each(['ecdsa-p256', 'rsa-2048'])('signs no SHA-1 with %s, and verifies one with a warning', async (type) => {
    const sha1 = { input: hello, hash_algorithm: 'sha1' }
    const text = 'FIPS mode: sha1 signatures are not approved'
    expectRefused(await post('sign', type, sha1), 400, text)
    expectRefused(await post('sign', type, { input: hello, algorithm: 'sha1' }), 400, text)
    const batch = await post('sign', type, { batch_input: [sha1, { input: hello }] })
    expect(batch.body).toMatchObject({ data: { batch_results: [{ error: text }, { key_version: 1 }] } })
    expectData(await post('verify', type, { ...sha1, signature: before[type] }), { valid: true }, warning('sha1'))
  })

  test.each(hashed)('hashes, signs and authenticates with %s, and warns', async (hash_algorithm) => {
    const expected = warning(hash_algorithm)
    expect(warnings(await done(node.root.post(`transit/hash`, { input: hello, algorithm: hash_algorithm })))).toEqual(
      expected,
    )
    for (const type of ['ecdsa-p256', 'rsa-2048']) {
      const signed = await done(post('sign', type, { input: hello, hash_algorithm }))
      expect(warnings(signed)).toEqual(expected)
      const verified = { input: hello, hash_algorithm, signature: signed.string('data.signature') }
      expectData(await post('verify', type, verified), { valid: true }, expected)
    }
    const mac = await done(post('hmac', 'hmac', { input: hello, algorithm: hash_algorithm }))
    expect(warnings(mac)).toEqual(expected)
  })

  test('says nothing of what is approved', async () => {
    const sealed = await done(post('encrypt', 'aes256-gcm96', { plaintext: hello }))
    expect(warnings(sealed)).toBeNull()
    for (const hash_algorithm of ['sha2-224', 'sha2-256', 'sha2-384', 'sha2-512']) {
      for (const type of ['ecdsa-p256', 'rsa-2048']) {
        expect(warnings(await done(post('sign', type, { input: hello, hash_algorithm })))).toBeNull()
      }
    }
    expect(warnings(await done(node.root.post('transit/hash', { input: base64('x') })))).toBeNull()
  })
})
