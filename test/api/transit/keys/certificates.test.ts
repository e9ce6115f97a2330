import { execFileSync } from 'node:child_process'
import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, fresh, useSharedNode } from '../../node.ts'
import { publicKeyOf } from '../../signing.ts'
import { importKey } from '../envelope.ts'

const node = useSharedNode()
let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'sr-csr-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

const at = (name: string): string => join(directory, name)
const put = (name: string, text: string): string => {
  writeFileSync(at(name), text)
  return at(name)
}
const openssl = (args: readonly string[], input = ''): string =>
  execFileSync('openssl', args, { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] })
const post = (path: string, body: Record<string, unknown> = {}) => node.root.post(`transit/keys/${path}`, body)
const csrOf = async (name: string, body: Record<string, unknown> = {}) =>
  (await done(post(`${name}/csr`, body))).string('data.csr')

/** A self-signed CA that signs anything; made once for each use. */
function authority(name: string) {
  openssl([
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-subj',
    `/CN=${name}`,
    '-days',
    '2',
    '-keyout',
    at(`${name}.key`),
    '-out',
    at(`${name}.pem`),
  ])
  const extensions = put(`${name}.ext`, 'basicConstraints=CA:FALSE\n')
  return {
    pem: readFileSync(at(`${name}.pem`), 'utf8'),
    sign: (csr: string): string =>
      openssl([
        'x509',
        '-req',
        '-in',
        put(`${name}.csr`, csr),
        '-CA',
        at(`${name}.pem`),
        '-CAkey',
        at(`${name}.key`),
        '-CAcreateserial',
        '-days',
        '1',
        '-extfile',
        extensions,
      ]),
  }
}

describe('a request', () => {
  test.each(['rsa-2048', 'ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519'])(
    'is one that openssl verifies: %s',
    async (type) => {
      const name = await node.key({ type })
      const reply = await done(post(`${name}/csr`))
      const csr = reply.string('data.csr')
      expectData(reply, { name, type, csr })
      const text = openssl(['req', '-verify', '-noout', '-pubkey', '-subject', '-in', put('one.csr', csr)])
      expect(text).toMatch(/subject=\s*\n?/)
      const pem = /-----BEGIN PUBLIC KEY-----[\s\S]+-----END PUBLIC KEY-----/.exec(text)?.[0] ?? ''
      expect(createPublicKey(pem).equals(await publicKeyOf(node.root, name))).toBe(true)
    },
  )

  test('keeps subject and extensions of a template, and has the key of the version', async () => {
    const template = openssl([
      'req',
      '-new',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      at('t.key'),
      '-subj',
      '/C=DE/O=Müller/CN=example.org',
      '-utf8',
      '-addext',
      'subjectAltName=DNS:a.example.org,DNS:b.example.org',
    ])
    const name = await node.key({ type: 'ecdsa-p256' })
    await done(post(`${name}/rotate`))
    const first = await csrOf(name, { csr: template, version: 1 })
    const text = openssl(['req', '-verify', '-noout', '-text', '-nameopt', 'utf8', '-in', put('two.csr', first)])
    expect(text).toMatch(/CN ?= ?example\.org/)
    expect(text).toMatch(/DNS:a\.example\.org, DNS:b\.example\.org/)
    const keyOf = (csr: string) => openssl(['req', '-noout', '-pubkey', '-in', put('k.csr', csr)])
    expect(createPublicKey(keyOf(first)).equals(await publicKeyOf(node.root, name))).toBe(true)
    expect(keyOf(await csrOf(name))).not.toBe(keyOf(first))
  })

  test('and a chain are for every version that is not trimmed, for any min_encryption_version', async () => {
    const name = await node.key({ type: 'ecdsa-p256' })
    const first = await publicKeyOf(node.root, name)
    await done(post(`${name}/rotate`))
    await done(post(`${name}/rotate`))
    await done(post(`${name}/config`, { min_encryption_version: 3, min_decryption_version: 2 }))
    const csr = await csrOf(name, { version: 1 })
    const keyOf = (pem: string) => createPublicKey(openssl(['req', '-noout', '-pubkey', '-in', put('v.csr', pem)]))
    expect(keyOf(csr).equals(first)).toBe(true)
    const certificate_chain = authority('versions').sign(csr)
    await done(post(`${name}/set-certificate`, { version: 1, certificate_chain }))
    await done(post(`${name}/config`, { min_decryption_version: 1 }))
    const shown = await node.root.get(`transit/keys/${name}`)
    expect(new X509Certificate(shown.string('data.keys.1.certificate_chain')).fingerprint256).toBe(
      new X509Certificate(certificate_chain).fingerprint256,
    )
    await done(post(`${name}/config`, { min_decryption_version: 2 }))
    await done(post(`${name}/trim`, { min_available_version: 2 }))
    for (const version of [1, -1, 4]) {
      expectRefused(await post(`${name}/csr`, { version }), 400, 'could not create the csr: no such key version')
      const set = await post(`${name}/set-certificate`, { certificate_chain, version })
      expectRefused(set, 400, 'failed to persist certificate chain: no such key version')
    }
    expect(keyOf(await csrOf(name, { version: 2 })).equals(first)).toBe(false)
  })

  test('is refused with an explanation', async () => {
    const none = fresh('k')
    expectRefused(await post(`${none}/csr`), 400, `key with provided name '${none}' not found`)
    expectRefused(await post(`${await node.key()}/csr`), 400, "key type 'aes256-gcm96' does not support signing")
    const derived = await node.key({ type: 'ed25519', derived: true })
    expectRefused(await post(`${derived}/csr`), 400, 'operation not supported for keys with derivation enabled')
    const name = await node.key({ type: 'ecdsa-p256' })
    const valid = await csrOf(name)
    const der = Buffer.from(valid.replace(/-----.*-----|\s/g, ''), 'base64')
    const pem = (bytes: Buffer) =>
      `-----BEGIN CERTIFICATE REQUEST-----\n${base64(bytes)}\n-----END CERTIFICATE REQUEST-----`
    for (const csr of ['none', valid + valid, pem(der.subarray(0, -1)), pem(Buffer.alloc(0)), pem(Buffer.alloc(5))]) {
      expectRefused(await post(`${name}/csr`, { csr }), 400, 'could not decode PEM CSR')
    }
    const half = fresh('i')
    const public_key = generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' })
    await done(post(`${half}/import`, { public_key, type: 'ed25519' }))
    const text = 'could not create the csr: private key not imported for key version selected'
    expectRefused(await post(`${half}/csr`), 400, text)
    expectRefused(await post(`${name}/csr`, { version: 2 }), 400, 'could not create the csr: no such key version')
  })
})

describe('a chain', () => {
  test('is kept with its version, shown, exported, and in the backup', async () => {
    const name = await node.key({ type: 'ecdsa-p256', allow_plaintext_backup: true })
    const ca = authority('one')
    const leaf = ca.sign(await csrOf(name))
    const reply = await done(post(`${name}/set-certificate`, { certificate_chain: `${leaf}${ca.pem}` }))
    const chain = reply.string('data.certificate_chain')
    expectData(reply, { name, type: 'ecdsa-p256', certificate_chain: chain })
    const pems = chain.match(/-----BEGIN[\s\S]*?END CERTIFICATE-----/g) ?? []
    expect(pems.map((pem) => new X509Certificate(pem).fingerprint256)).toEqual(
      [leaf, ca.pem].map((pem) => new X509Certificate(pem).fingerprint256),
    )
    await done(post(`${name}/rotate`))
    const shown = { data: { keys: { 1: { certificate_chain: chain }, 2: { certificate_chain: '' } } } }
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject(shown)
    const exported = await node.root.get(`transit/export/certificate-chain/${name}/1`)
    expect(exported.string('data.keys.1')).toBe(chain)
    const backup = (await done(node.root.get(`transit/backup/${name}`))).string('data.backup')
    const copy = fresh('r')
    await done(node.root.post(`transit/restore/${copy}`, { backup }))
    expect((await node.root.get(`transit/keys/${copy}`)).body).toMatchObject(shown)
  })

  test('that does not belong to this key is refused, and changes nothing', async () => {
    const [name, other] = [await node.key({ type: 'ecdsa-p256' }), await node.key({ type: 'ecdsa-p256' })]
    const ca = authority('two')
    const [leaf, foreign] = [ca.sign(await csrOf(name)), ca.sign(await csrOf(other))]
    const refuse = async (chain: string | undefined, text: string) =>
      expectRefused(await post(`${name}/set-certificate`, { certificate_chain: chain ?? null }), 400, text)
    const failed = 'failed to persist certificate chain:'
    await refuse(undefined, 'certificate_chain must hold at least one certificate in PEM')
    await refuse('no PEM', 'certificate_chain must hold at least one certificate in PEM')
    await refuse(foreign, `${failed} leaf certificate public key does not match the selected key version`)
    await refuse(`${ca.pem}${leaf}`, `${failed} certificate in the first position is not a leaf certificate`)
    await refuse(`${leaf}${foreign}`, `${failed} a certificate after the first is not a CA certificate`)
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
    await refuse(leaf + broken, `${failed} certificate 2 is malformed`)
    await refuse(leaf.repeat(21), `${failed} it has more than 20 certificates`)
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { keys: { 1: { certificate_chain: '' } } },
    })
  })

  test('needs a signing key that is not derived', async () => {
    const name = fresh('i')
    await importKey(node.root, name, Buffer.alloc(32, 3), {})
    const body = { certificate_chain: '' }
    expectRefused(await post(`${name}/set-certificate`, body), 400, "key type 'aes256-gcm96' does not support signing")
  })
})
