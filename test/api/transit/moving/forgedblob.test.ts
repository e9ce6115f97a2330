import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { serving } from '../../../attack/nodes.ts'
import type { Reply } from '../../../support/client.ts'
import { base64, done, fresh, hello, useNode } from '../../node.ts'
import { type BlobKey, backup, blobOf, keyOf } from '../strongroomblob.ts'

/**
 * Backups forged with knowledge of the format and its checksum: each is refused with an explanation, and leaves
 * nothing.
 */
const node = useNode()
const blobs: Record<string, string> = {}

beforeAll(async () => {
  const make = async (key: string, settings: Record<string, unknown>) => {
    const name = await node.key({ allow_plaintext_backup: true, ...settings })
    for (let version = 2; version <= 3; version++) await done(node.root.post(`transit/keys/${name}/rotate`))
    blobs[key] = await backup(node, name)
  }
  await make('aes', { type: 'aes256-gcm96' })
  await make('convergent', { type: 'aes256-gcm96', derived: true, convergent_encryption: true })
  await make('ec', { type: 'ecdsa-p256' })
  await make('ed', { type: 'ed25519' })
  await make('rsa', { type: 'rsa-2048' })
  await make('hmac', { type: 'hmac' })
}, 60_000)

async function expectNothing(backup: string): Promise<Reply> {
  const name = fresh('f')
  const reply = await node.root.post(`transit/restore/${name}`, { backup })
  expect(reply.status, reply.text).toBe(400)
  expect(reply.text).toMatch(
    /^\{"errors":\["(refused JSON|the backup|error parsing|invalid|auto rotate|keys of type|failed to persist|certificate_chain must)/,
  )
  expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  return reply
}

type Forgery = (key: BlobKey) => void
const set =
  (fields: Record<string, unknown>): Forgery =>
  (key) =>
    void Object.assign(key, fields)
const setVersion =
  (index: number, fields: Record<string, unknown>): Forgery =>
  (key) =>
    void Object.assign(key.versions[index] ?? {}, fields)
const spki = (type: 'ec' | 'rsa' | 'ed25519', options: object) =>
  base64(
    generateKeyPairSync(type as 'ec', options as { namedCurve: string }).publicKey.export({
      format: 'der',
      type: 'spki',
    }),
  )
const publicOnly = (key: string): Forgery => setVersion(2, { kind: 'public', key })

/** 2048 bits of which the lowest is 0. */
function evenModulus(): string {
  const jwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
  const n = Buffer.from(jwk.n ?? '', 'base64url')
  n.writeUInt8(n.readUInt8(255) & 0xfe, 255)
  const key = createPublicKey({ format: 'jwk', key: { ...jwk, n: n.toString('base64url') } })
  return base64(key.export({ format: 'der', type: 'spki' }))
}
const edSpki = (point: Uint8Array) => base64(Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), point]))
const ecSpki = (point: Uint8Array) =>
  base64(Buffer.concat([Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex'), point]))

describe.each<[string, string, Forgery]>([
  ['a version twice', 'aes', (key) => void key.versions.splice(1, 1, { ...key.versions[0] })],
  ['versions in another order', 'aes', (key) => void key.versions.reverse()],
  ['the latest version missing', 'aes', (key) => void key.versions.pop()],
  ['the first version missing', 'aes', (key) => void key.versions.shift()],
  ['no version', 'aes', set({ versions: [] })],
  ['a version more than the latest', 'aes', set({ latest_version: 2 })],
  ['version 0', 'aes', setVersion(0, { version: 0 })],
  ['a negative version', 'aes', setVersion(0, { version: -1 })],
  ['a version that is no whole number', 'aes', setVersion(0, { version: 1.5 })],
  ['a latest version of 0', 'aes', set({ latest_version: 0 })],
  ['a latest version that is a fraction', 'aes', set({ latest_version: 2.5 })],
  ['a latest version of 2^31', 'aes', set({ latest_version: 2 ** 31 })],
  [
    'versions near 2^53',
    'aes',
    (key) => {
      set({ latest_version: 2 ** 53 - 1, min_decryption_version: 2 ** 53 - 3, min_available_version: 2 ** 53 - 3 })(key)
      for (const [index, version] of key.versions.entries()) version.version = 2 ** 53 - 3 + index
    },
  ],
  [
    'versions that no ciphertext can name',
    'aes',
    (key) => {
      set({ latest_version: 1e10 + 2, min_decryption_version: 1e10, min_available_version: 1e10 })(key)
      for (const [index, version] of key.versions.entries()) version.version = 1e10 + index
    },
  ],
  ['a decryption floor of 0', 'aes', set({ min_decryption_version: 0 })],
  ['a decryption floor above the latest version', 'aes', set({ min_decryption_version: 4 })],
  ['an encryption floor above the latest version', 'aes', set({ min_encryption_version: 4 })],
  [
    'an encryption floor below that of decryption',
    'aes',
    set({ min_decryption_version: 3, min_encryption_version: 2 }),
  ],
  ['an available floor above that of decryption', 'aes', set({ min_available_version: 2 })],
  ['a negative floor', 'aes', set({ min_encryption_version: -1 })],
  ['a floor that is text', 'aes', set({ min_decryption_version: '1' })],
  ['an unknown type', 'aes', set({ type: 'aes512' })],
  ['a type that a prototype has', 'aes', set({ type: '__proto__' })],
  ['managed_key', 'aes', set({ type: 'managed_key' })],
  ['keys of another type', 'aes', set({ type: 'ecdsa-p256' })],
  ['keys of a shorter type', 'aes', set({ type: 'aes128-gcm96' })],
  ['keys of another curve', 'ec', set({ type: 'ecdsa-p384' })],
  ['a derived key of a type that is not derived from', 'ec', set({ derived: true, kdf: 'hkdf_sha256' })],
  ['a KDF that there is not', 'convergent', set({ kdf: 'hkdf_md5' })],
  ['a KDF without derivation', 'aes', set({ kdf: 'hkdf_sha256' })],
  ['derivation without a KDF', 'aes', set({ derived: true })],
  ['a convergent version that there is not', 'convergent', set({ convergent_version: 4 })],
  ['a convergent version below -1', 'convergent', set({ convergent_version: -2 })],
  ['a convergent version of a key that is not convergent', 'aes', set({ convergent_version: 3 })],
  ['a version of convergence 0', 'convergent', setVersion(1, { convergent_version: 0 })],
  ['a version of convergence 4', 'convergent', setVersion(1, { convergent_version: 4 })],
  ['key_size of another type', 'aes', set({ key_size: 32 })],
  ['an hmac key size beyond the largest', 'hmac', set({ key_size: 513 })],
  ['an hmac key that is too short', 'hmac', setVersion(1, { key: base64(randomBytes(15)) })],
  ['an hmac key that is too long', 'hmac', setVersion(1, { key: base64(randomBytes(513)) })],
  ['an empty key', 'aes', setVersion(2, { key: '' })],
  ['an empty HMAC secret', 'aes', setVersion(2, { hmac_key: '' })],
  ['an HMAC secret that is too long', 'aes', setVersion(2, { hmac_key: base64(randomBytes(600)) })],
  ['a key that is no base64', 'aes', setVersion(2, { key: 'ab*c' })],
  ['a public key of a secret type', 'aes', publicOnly(spki('ec', { namedCurve: 'P-256' }))],
  ['a rotation period under an hour', 'aes', set({ auto_rotate_period: 3599 })],
  ['a rotation period beyond all time', 'aes', set({ auto_rotate_period: 2 ** 53 - 1 })],
  ['a key made beyond all time', 'ec', set({ created_at: 2 ** 53 - 1 })],
  ['a version made beyond all time', 'ec', setVersion(2, { created_at: 2 ** 53 - 1 })],
  ['a certificate chain that is none', 'ec', setVersion(2, { certificate_chain: 'chain' })],
  ['a certificate chain that no database keeps', 'ec', setVersion(2, { certificate_chain: '\ud800' })],
  ['a certificate chain of a secret key', 'aes', setVersion(2, { certificate_chain: '-----BEGIN CERTIFICATE-----' })],
  ['flags that are text', 'aes', set({ exportable: 'true' })],
  ['an EC public key of another curve', 'ec', publicOnly(spki('ec', { namedCurve: 'P-384' }))],
  ['a point that is not on the curve', 'ec', publicOnly(ecSpki(Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)])))],
  ['the point 0, 0', 'ec', publicOnly(ecSpki(Buffer.concat([Buffer.of(4), Buffer.alloc(64)])))],
  [
    'the point at infinity',
    'ec',
    publicOnly(base64(Buffer.from('3019301306072a8648ce3d020106082a8648ce3d03010703020000', 'hex'))),
  ],
  ['an Ed25519 public key for an EC type', 'ec', publicOnly(spki('ed25519', {}))],
  ['an Ed25519 point of order 1', 'ed', publicOnly(edSpki(Buffer.from(`01${'00'.repeat(31)}`, 'hex')))],
  ['an Ed25519 point of order 4', 'ed', publicOnly(edSpki(Buffer.alloc(32)))],
  [
    'an Ed25519 point of order 8',
    'ed',
    publicOnly(edSpki(Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex'))),
  ],
  ['an Ed25519 point that is not on the curve', 'ed', publicOnly(edSpki(Buffer.from(`02${'00'.repeat(31)}`, 'hex')))],
  ['an RSA modulus that is even', 'rsa', publicOnly(evenModulus())],
  ['an RSA key of another size', 'rsa', publicOnly(spki('rsa', { modulusLength: 1024 }))],
  ['an RSA key with an exponent of 1', 'rsa', publicOnly(exponent(1))],
  ['an RSA key with an even exponent', 'rsa', publicOnly(exponent(65536))],
  ['a pair cut short', 'ec', (key) => setVersion(2, { key: String(key.versions[2]?.key).slice(0, 40) })(key)],
  [
    'a pair with a byte more',
    'ec',
    (key) => {
      const bytes = Buffer.from(String(key.versions[2]?.key), 'base64')
      setVersion(2, { key: base64(Buffer.concat([bytes, Buffer.of(0)])) })(key)
    },
  ],
])('%s', (_, name, forge) => {
  test('is refused', async () => {
    const key = keyOf(blobs[name] ?? '')
    forge(key)
    await expectNothing(blobOf(key))
  })
})

function exponent(e: number): string {
  const jwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(e)
  const key = createPublicKey({ format: 'jwk', key: { ...jwk, e: bytes.toString('base64url') } })
  return base64(key.export({ format: 'der', type: 'spki' }))
}

describe('JSON that no server writes', () => {
  const unreadable = 'the backup cannot be read: it is damaged, or not from Strongroom, Vault or OpenBao'
  test.each<[string, string, refusal?: string]>([
    ['2^53', String(2 ** 53)],
    ['a number of 40 digits', '9'.repeat(40)],
    ['a number of 10,000 digits', '9'.repeat(10_000)],
    ['infinity', '1e999'],
    ['a member of depth 100,000', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'nested deeper than 64 levels'],
  ])('is refused: %s', async (_, text, refusal = unreadable) => {
    const key = keyOf(blobs.aes ?? '')
    for (const place of ['latest_version', 'unknown_member', 'history']) {
      const forged = blobOf(
        place === 'history'
          ? { ...key, versions: key.versions.map((version) => ({ ...version, history: { it: '@' } })) }
          : { ...key, [place]: '@' },
        [['"@"', text]],
      )
      expect(await expectNothing(forged)).toMatchObject({ body: { errors: [expect.stringContaining(refusal)] } })
    }
  })

  test('is refused before it is parsed, however much it is', async () => {
    // Parsing it would take seconds: the supervisor would end the worker, and the requests of others with it.
    const workers = serving(node.server)
    const complex = { body: { errors: [expect.stringContaining('refused JSON input due to high complexity: ')] } }
    for (const one of ['0,', '[],', '"":0,']) {
      const [open, close] = one.startsWith('"') ? ['{', '}'] : ['[', ']']
      const text = `${open}${one.repeat(Math.floor((15 << 20) / one.length))}${one.slice(0, -1)}${close}`
      expect(await expectNothing(base64(`{"policy":${text}}`))).toMatchObject(complex)
    }
    const key = keyOf(blobs.aes ?? '')
    const members = Object.fromEntries(Array.from({ length: 1_000_000 }, (_, index) => [`m${index}`, 0]))
    const some = Object.fromEntries(Object.entries(members).slice(0, 9000))
    const versions = Array.from({ length: 80_000 }, (_, index) => ({ ...key.versions[0], version: index + 1 }))
    for (const forged of [
      { ...key, ...members },
      { ...key, versions: [{ ...key.versions[0], history: members }] },
      { ...key, latest_version: 80_000, versions: versions.map((one) => ({ ...one, history: {} })) },
      { ...key, versions: versions.slice(0, 50).map((one) => ({ ...one, history: some })) },
    ]) {
      expect(await expectNothing(blobOf(forged))).toMatchObject(complex)
    }
    expect(serving(node.server)).toEqual(workers)
  }, 300_000)

  test('members of a prototype do not count as members of the blob', async () => {
    const key = keyOf(blobs.aes ?? '')
    const text = JSON.stringify(key)
    await expectNothing(base64(`{"__proto__":{"strongroom_backup":1,"policy":{}},"key":${text}}`))
    await expectNothing(base64(`{"policy":{"__proto__":{"type":0,"latest_version":1},"keys":{"1":{}}}}`))
    await expectNothing(base64(`{"policy":{"type":0,"latest_version":1,"keys":{"__proto__":{"1":{}}}}}`))
  })
})

test('a key of a name that prototypes have is a key like any other', async () => {
  const key = keyOf(blobs.aes ?? '')
  for (const name of ['__proto__', 'constructor', 'hasOwnProperty', 'toString']) {
    await done(node.root.post('transit/restore', { backup: blobOf({ ...key, name }) }))
    const sealed = await done(node.root.post(`transit/encrypt/${name}`, { plaintext: hello }))
    const opened = await done(
      node.root.post(`transit/decrypt/${name}`, { ciphertext: sealed.string('data.ciphertext') }),
    )
    expect(opened.string('data.plaintext')).toBe(hello)
    expect(keyOf(await backup(node, name))).toMatchObject({ name, latest_version: 3 })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { name, latest_version: 3 } })
  }
})

test('the highest version that a backup can have is used and rotated', async () => {
  const key = keyOf(blobs.aes ?? '')
  const highest = 999_999_999
  const name = fresh('f')
  const versions = key.versions.map((one, index) => ({ ...one, version: highest - 2 + index }))
  const [min_decryption_version, min_available_version] = [highest - 2, highest - 2]
  const forged = { ...key, versions, latest_version: highest, min_decryption_version, min_available_version }
  await done(node.root.post(`transit/restore/${name}`, { backup: blobOf(forged) }))
  await done(node.root.post(`transit/keys/${name}/rotate`))
  const sealed = await done(node.root.post(`transit/encrypt/${name}`, { plaintext: hello }))
  const ciphertext = sealed.string('data.ciphertext')
  expect(ciphertext).toMatch(/^vault:v1000000000:/)
  expect((await done(node.root.post(`transit/decrypt/${name}`, { ciphertext }))).string('data.plaintext')).toBe(hello)
})
