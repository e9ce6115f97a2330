import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Reply } from '../../support/client.ts'
import { base64, done, expectData, expectRefused, fresh, hello, useNode } from '../node.ts'
import { envelopeOf, hashFunctions, wrappingKeyOf } from './envelope.ts'
import vault from './fixtures/vaultblobs.json' with { type: 'json' }
import { backup, blobOf, keyOf } from './strongroomblob.ts'

/** Keys that were made before an operator turned FIPS mode on, and their permitted uses. */
const node = useNode()
const names: Record<string, string> = {}
const before: Record<string, string> = {}
/** Backups of keys of each type. */
const backups: Record<string, string> = {}
const hashed = ['sha3-224', 'sha3-256', 'sha3-384', 'sha3-512']
const post = (verb: string, type: string, body: Record<string, unknown>) =>
  node.root.post(`transit/${verb}/${names[type]}`, body)

beforeAll(async () => {
  for (const type of ['aes256-gcm96', 'chacha20-poly1305', 'ed25519', 'ecdsa-p256', 'rsa-2048', 'hmac']) {
    names[type] = await node.key({ type, allow_plaintext_backup: true })
    backups[type] = await backup(node, names[type])
  }
  // An imported Ed25519 key with a version that lacks its private half.
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  before.half = fresh('i')
  before.pkcs8 = base64(privateKey.export({ type: 'pkcs8', format: 'der' }))
  const public_key = publicKey.export({ type: 'spki', format: 'pem' })
  await done(node.root.post(`transit/keys/${before.half}/import`, { type: 'ed25519', public_key }))
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

/** The backup of a key of the type, changed into that of a derived key. */
const forged = (type: string): string => blobOf({ ...keyOf(backups[type] ?? ''), derived: true, kdf: 'hkdf_sha256' })
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

  test.each(['chacha20-poly1305', 'ed25519'])('imports no key of type %s, sound as it is', async (type) => {
    const pem = await wrappingKeyOf(node.root)
    const { privateKey } = generateKeyPairSync('ed25519')
    const key = type === 'ed25519' ? privateKey.export({ type: 'pkcs8', format: 'der' }) : randomBytes(32)
    const text = `FIPS mode: ${type} keys are not approved`
    const name = fresh('i')
    for (const more of [{}, { derived: true, context: hello }, { exportable: true }]) {
      const ciphertext = envelopeOf(pem, key)
      expectRefused(await node.root.post(`transit/keys/${name}/import`, { type, ciphertext, ...more }), 400, text)
    }
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  })

  test('adds no Ed25519 key to one that is there, nor the private half that a version lacks', async () => {
    const ciphertext = envelopeOf(await wrappingKeyOf(node.root), Buffer.from(before.pkcs8 ?? '', 'base64'))
    const text = 'FIPS mode: ed25519 keys are not approved'
    for (const more of [{}, { version: 1 }]) {
      const path = `transit/keys/${before.half}/import_version`
      expectRefused(await node.root.post(path, { ciphertext, ...more }), 400, text)
    }
    expect((await node.root.get(`transit/keys/${before.half}`)).body).toMatchObject({
      data: { latest_version: 1, custody: { 1: { residence: 'public' } } },
    })
  })

  test.each<[string, string, () => string]>([
    ['a backup of ours', 'chacha20-poly1305', () => backups['chacha20-poly1305'] ?? ''],
    ['a backup of ours', 'ed25519', () => backups.ed25519 ?? ''],
    ['a derived key', 'chacha20-poly1305', () => forged('chacha20-poly1305')],
    ['a derived key', 'ed25519', () => forged('ed25519')],
    ['a backup of Vault', 'chacha20-poly1305', () => vault.chacha],
    ['a backup of Vault', 'ed25519', () => vault.ed25519],
    ['a public key of Vault', 'ed25519', () => vault['ed25519-public']],
    ['a derived key of Vault', 'ed25519', () => vault['derived-ed25519']],
  ])('restores nothing unapproved: %s of type %s', async (_, type, blob) => {
    const name = fresh('r')
    const text = `FIPS mode: ${type} keys are not approved`
    expectRefused(await node.root.post('transit/restore', { backup: blob(), name }), 400, text)
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
    // Nor over an existing key, which stays.
    const there = await node.key()
    expectRefused(await node.root.post('transit/restore', { backup: blob(), name: there, force: true }), 400, text)
    expect((await node.root.get(`transit/keys/${there}`)).body).toMatchObject({ data: { type: 'aes256-gcm96' } })
  })

  test.each(['aes256-gcm96', 'ecdsa-p256', 'rsa-2048', 'hmac'])('restores a key of type %s', async (type) => {
    const name = fresh('r')
    await done(node.root.post('transit/restore', { backup: backups[type], name }))
    await done(node.root.post(`transit/keys/${name}/rotate`))
  })

  test('backs up existing keys, approved or not, so that they can be moved', async () => {
    for (const type of ['chacha20-poly1305', 'ed25519']) {
      const held = keyOf(await backup(node, names[type] ?? ''))
      expect(held).toEqual(keyOf(backups[type] ?? ''))
    }
  })

  test.each(hashFunctions)('imports by RSA-OAEP with %s: that hash signs nothing', async (hash_function, oaepHash) => {
    const ciphertext = envelopeOf(await wrappingKeyOf(node.root), randomBytes(32), oaepHash)
    await done(node.root.post(`transit/keys/${fresh('i')}/import`, { ciphertext, hash_function }))
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

  test('certifies an ed25519 key that is there, and warns; others without a warning', async () => {
    for (const [type, expected] of [['ed25519', warning('ed25519')] as const, ['ecdsa-p256', null] as const]) {
      const requested = await done(node.root.post(`transit/keys/${names[type]}/csr`))
      expect(requested.string('data.csr')).toMatch(/^-----BEGIN CERTIFICATE REQUEST-----/)
      expect(warnings(requested)).toEqual(expected)
    }
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
    const lacking = `the HSM lacks CKM_${hash_algorithm.toUpperCase().replace('-', '_')}_HMAC`
    const opened = 'the HMAC secret of version 1 was in the server’s memory for this request'
    expect(warnings(mac)).toEqual([...expected, `${lacking}: ${opened}`])
  })

  test('does not warn of approved use', async () => {
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
