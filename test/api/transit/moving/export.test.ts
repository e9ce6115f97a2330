import { execFileSync } from 'node:child_process'
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  verify,
} from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { done, expectData, expectRefused, fresh, hello, useNode } from '../../node.ts'
import { bytesOf, publicKeyOf } from '../../signing.ts'
import { importKey } from '../envelope.ts'

const node = useNode()
const exported = async (path: string): Promise<Record<string, string>> => {
  const reply = await done(node.root.get(`transit/export/${path}`))
  return (reply.body as { data: { keys: Record<string, string> } }).data.keys
}
/** Reads a PEM with openssl: exit code 0 is a key it can read. */
const openssl = (args: readonly string[], input: string): string =>
  execFileSync('openssl', [...args], { input, encoding: 'utf8', stdio: 'pipe' })
const message = Buffer.from('hello')

describe('an exported key is the key', () => {
  test.each([
    ['aes128-gcm96', 16],
    ['aes256-gcm96', 32],
    ['chacha20-poly1305', 32],
  ] as const)('%s: an imported export decrypts', async (type, bytes) => {
    const name = await node.key({ type, exportable: true })
    const sealed = (await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })).string('data.ciphertext')
    const keys = await exported(`encryption-key/${name}`)
    const key = Buffer.from(keys[1] ?? '', 'base64')
    expect(key.length).toBe(bytes)
    const copy = fresh('i')
    await importKey(node.root, copy, key, { type })
    const opened = await node.root.post(`transit/decrypt/${copy}`, { ciphertext: sealed })
    expect(opened.string('data.plaintext')).toBe(hello)
  })

  test.each(['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'rsa-2048'])('%s: PEM that openssl opens', async (type) => {
    const name = await node.key({ type, exportable: true })
    const rsa = type.startsWith('rsa')
    const [own, der, pem] = await Promise.all([
      exported(`signing-key/${name}`),
      exported(`signing-key/${name}?format=der`),
      exported(`signing-key/${name}?format=pem`),
    ])
    const text = own[1] ?? ''
    expect(text).toMatch(
      rsa ? /^-----BEGIN RSA PRIVATE KEY-----[\s\S]+-----\n$/ : /^-----BEGIN EC PRIVATE KEY-----[\s\S]+-----$/,
    )
    expect(openssl([rsa ? 'rsa' : 'ec', '-check', '-noout'], text)).toMatch(rsa ? /ok/ : /^$/)
    openssl(['pkey', '-check', '-noout'], pem[1] ?? '')
    expect(pem[1]).toMatch(/^-----BEGIN PRIVATE KEY-----[\s\S]+-----\n$/)
    const keys = [
      text,
      pem[1] ?? '',
      { key: Buffer.from(der[1] ?? '', 'base64'), format: 'der', type: 'pkcs8' } as const,
    ]
    const publicKey = await publicKeyOf(node.root, name)
    for (const key of keys) {
      expect(verify('sha256', message, publicKey, sign('sha256', message, createPrivateKey(key)))).toBe(true)
    }
    if (rsa) expect(await exported(`encryption-key/${name}`)).toEqual(own)
  })

  test('ed25519: seed and public key in 64 bytes, PKCS#8 in PEM', async () => {
    const name = await node.key({ type: 'ed25519', exportable: true })
    const both = Buffer.from((await exported(`signing-key/${name}`))[1] ?? '', 'base64')
    expect(both.length).toBe(64)
    expect((await exported(`signing-key/${name}?format=raw`))[1]).toBe(both.toString('base64'))
    const pem = (await exported(`signing-key/${name}?format=pem`))[1] ?? ''
    const publicKey = await publicKeyOf(node.root, name)
    expect(verify(null, message, publicKey, sign(null, message, createPrivateKey(pem)))).toBe(true)
    expect((await exported(`public-key/${name}`))[1]).toBe(both.subarray(32).toString('base64'))
  })

  test.each(['hmac', 'aes256-gcm96', 'ed25519'])('%s: the secret of its HMACs', async (type) => {
    const name = await node.key({ type, exportable: true, ...(type === 'hmac' ? { key_size: 100 } : {}) })
    const secret = Buffer.from((await exported(`hmac-key/${name}`))[1] ?? '', 'base64')
    expect(secret.length).toBe(type === 'hmac' ? 100 : 64)
    const made = (await node.root.post(`transit/hmac/${name}`, { input: hello })).string('data.hmac')
    expect(bytesOf(made)).toEqual(createHmac('sha256', secret).update(message).digest())
  })

  test('also after it was made exportable', async () => {
    const name = await node.key({ type: 'ecdsa-p256' })
    await done(node.root.post(`transit/keys/${name}/config`, { exportable: true }))
    const key = createPrivateKey((await exported(`signing-key/${name}`))[1] ?? '')
    expect(createPublicKey(key).equals(await publicKeyOf(node.root, name))).toBe(true)
  })
})

describe('versions', () => {
  test('all, one, vN and latest; none below the floor', async () => {
    const name = await node.key({ exportable: true })
    for (let count = 0; count < 2; count++) await done(node.root.post(`transit/keys/${name}/rotate`))
    const all = await exported(`encryption-key/${name}`)
    expect(Object.keys(all)).toEqual(['1', '2', '3'])
    expect(new Set(Object.values(all)).size).toBe(3)
    for (const [path, version] of [
      ['2', 2],
      ['v2', 2],
      ['latest', 3],
    ] as const) {
      const one = { [version]: all[version] }
      expect(await exported(`encryption-key/${name}/${path}`)).toEqual(one)
      expect(await exported(`encryption-key/${name}?version=${path}`)).toEqual(one)
      expect(await exported(`encryption-key/${name}/${path}?version=1`)).toEqual(one)
    }
    await done(node.root.post(`transit/keys/${name}/config`, { min_decryption_version: 2 }))
    expect(Object.keys(await exported(`encryption-key/${name}`))).toEqual(['2', '3'])
    const refuse = async (version: string, text: string) =>
      expectRefused(await node.root.get(`transit/export/encryption-key/${name}/${version}`), 400, text)
    await refuse('1', 'version for export is below minimum decryption version')
    await refuse('0', 'version for export is below minimum decryption version')
    await refuse('4', 'version does not exist or cannot be found')
    await refuse('two', 'invalid key version')
  })
})

describe('a public key', () => {
  test.each([
    ['ecdsa-p256', /-----END PUBLIC KEY-----$/],
    ['rsa-2048', /-----END PUBLIC KEY-----\n$/],
  ] as const)('needs no exportable: %s', async (type, end) => {
    const name = await node.key({ type })
    const reply = await node.root.get(`transit/export/public-key/${name}`)
    const pem = reply.string('data.keys.1')
    expectData(reply, { name, type, keys: { 1: pem } })
    expect(pem).toMatch(end)
    expect(createPublicKey(pem).equals(await publicKeyOf(node.root, name))).toBe(true)
    const der = (await exported(`public-key/${name}?format=der`))[1] ?? ''
    const key = createPublicKey({ key: Buffer.from(der, 'base64'), format: 'der', type: 'spki' })
    expect(key.equals(createPublicKey(pem))).toBe(true)
  })

  test.each(['ecdsa-p256', 'ecdsa-p521', 'rsa-2048', 'ed25519'])(
    'of %s is shown as node:crypto writes it',
    async (type) => {
      const name = await node.key({ type })
      const { body } = await node.root.get(`transit/keys/${name}`)
      const text = (body as { data: { keys: Record<string, { public_key: string }> } }).data.keys[1]?.public_key ?? ''
      if (type === 'ed25519') return expect(Buffer.from(text, 'base64')).toHaveLength(32)
      expect(text).toBe(createPublicKey(text).export({ type: 'spki', format: 'pem' }))
    },
  )

  test('that was imported alone has no private half to export', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const name = fresh('i')
    await done(node.root.post(`transit/keys/${name}/import`, { public_key: pem, type: 'ecdsa-p256', exportable: true }))
    expect(await exported(`signing-key/${name}`)).toEqual({ 1: '' })
    expectRefused(
      await node.root.post(`transit/sign/${name}`, { input: hello }),
      400,
      'requested version for signing does not contain a private part',
    )
    const signature = `vault:v1:${sign('sha256', message, privateKey).toString('base64')}`
    const verified = await node.root.post(`transit/verify/${name}`, { input: hello, signature })
    expect(verified.body).toMatchObject({ data: { valid: true } })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { custody: { 1: { residence: 'public', origin: 'imported' } } },
    })
  })
})

describe('refusals', () => {
  test('name the setting that forbids it', async () => {
    const refuse = async (path: string, text: string) =>
      expectRefused(await node.root.get(`transit/export/${path}`), 400, text)
    const [closed, aes, ec, hmac] = await Promise.all([
      node.key({ allow_plaintext_backup: true }),
      node.key({ exportable: true }),
      node.key({ type: 'ecdsa-p256', exportable: true }),
      node.key({ type: 'hmac', exportable: true }),
    ])
    for (const kind of ['encryption-key', 'hmac-key']) {
      await refuse(`${kind}/${closed}`, 'private key material is not exportable')
    }
    await refuse(`private-key/${aes}`, 'invalid export type: private-key')
    await refuse(`signing-key/${aes}`, 'signing not supported for the key')
    await refuse(`encryption-key/${ec}`, 'encryption not supported for the key')
    await refuse(`encryption-key/${hmac}`, 'encryption not supported for the key')
    await refuse(`public-key/${aes}`, 'unknown key type aes256-gcm96 for export type public-key')
    await refuse(`encryption-key/${aes}?format=hex`, 'invalid format: hex')
    await refuse(`encryption-key/${aes}?format=pem`, 'invalid format: pem is not a format of aes256-gcm96 keys')
    await refuse(`signing-key/${ec}?format=raw`, 'invalid format: raw is not a format of ecdsa-p256 keys')
    await refuse(`certificate-chain/${ec}`, 'selected key version does not have a certificate chain imported')
    expectRefused(await node.root.get(`transit/export/encryption-key/${fresh('k')}`), 404)
  })
})

test('nothing of an exported key is in the log', async () => {
  const key = randomBytes(32)
  const name = fresh('i')
  await importKey(node.root, name, key, { exportable: true })
  expect((await exported(`encryption-key/${name}`))[1]).toBe(key.toString('base64'))
  for (const form of ['base64', 'hex'] as const) expect(node.server.output()).not.toContain(key.toString(form))
})
