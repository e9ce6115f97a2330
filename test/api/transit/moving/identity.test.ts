import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client, Reply } from '../../../support/client.ts'
import { startServer, type TestServer } from '../../../support/server.ts'
import { base64, done, fresh, hello, useNode } from '../../node.ts'
import { envelopeOf, wrappingKeyOf } from '../envelope.ts'
import { type BlobKey, blobOf, keyOf } from '../strongroomblob.ts'

/**
 * restore ∘ backup = identity: whatever a key's type and history, its copy on a server with another token and other
 * KEKs answers every request as the key itself does, and the copy's backup has the same contents.
 */
const node = useNode()
let other: TestServer
let pem = ''
let directory = ''
beforeAll(async () => {
  other = await startServer()
  pem = await wrappingKeyOf(node.root)
  directory = mkdtempSync(join(tmpdir(), 'sr-identity-'))
  openssl(
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=ca -days 2 -keyout ca.key -out ca.pem',
  )
  writeFileSync(join(directory, 'leaf.ext'), 'basicConstraints=CA:FALSE\n')
}, 120_000)
afterAll(async () => {
  rmSync(directory, { recursive: true })
  await other?.[Symbol.asyncDispose]()
})
const openssl = (words: string) => execFileSync('openssl', words.split(' '), { cwd: directory, stdio: 'pipe' })

const aeads = { 'aes128-gcm96': 16, 'aes256-gcm96': 32, 'chacha20-poly1305': 32 }
const curves = { 'ecdsa-p256': 'P-256', 'ecdsa-p384': 'P-384', 'ecdsa-p521': 'P-521' }
const types = [...Object.keys(aeads), ...Object.keys(curves), 'ed25519', 'hmac', 'rsa-2048']

/** The type and history of a key; properties that a type lacks are left out when the key is made. */
const life = fc.record({
  type: fc.constantFrom(...types),
  origin: fc.constantFrom('made', 'made', 'imported', 'public'),
  derived: fc.boolean(),
  convergent: fc.boolean(),
  exportable: fc.boolean(),
  deletionAllowed: fc.boolean(),
  allowRotation: fc.boolean(),
  autoRotate: fc.constantFrom(0, 3600, 86_400, 9_223_372_036),
  sizeBytes: fc.integer({ min: 16, max: 512 }),
  versions: fc.integer({ min: 1, max: 4 }),
  /** The floors, as shares of the number of versions. */
  decryption: fc.double({ min: 0, max: 1, noNaN: true }),
  encryption: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  trimmed: fc.boolean(),
  chain: fc.boolean(),
  softDeleted: fc.boolean(),
})
type Life = typeof life extends fc.Arbitrary<infer L> ? L : never

const isAead = (type: string): type is keyof typeof aeads => type in aeads
const isCurve = (type: string): type is keyof typeof curves => type in curves

/** The same life without contradictions. */
function sound(one: Life): Life {
  const { type } = one
  const derived = one.derived && (isAead(type) || type === 'ed25519')
  const secret = isAead(type) || type === 'hmac'
  const origin = one.origin === 'public' && (secret || derived) ? 'imported' : one.origin
  const convergent = one.convergent && derived && isAead(type) && origin === 'made'
  const versions = type === 'rsa-2048' ? Math.min(2, one.versions) : one.versions
  const autoRotate = origin === 'made' || one.allowRotation ? one.autoRotate : 0
  return { ...one, derived, origin, convergent, versions, autoRotate, chain: one.chain && !secret && !derived }
}

function pairOf(type: string): { publicKey: KeyObject; privateKey: KeyObject } {
  if (isCurve(type)) return generateKeyPairSync('ec', { namedCurve: curves[type] })
  return type === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('rsa', { modulusLength: 2048 })
}

/** A new key as import takes it. */
function material({ type, origin, sizeBytes }: Life): Record<string, unknown> {
  if (isAead(type)) return { ciphertext: envelopeOf(pem, randomBytes(aeads[type])) }
  if (type === 'hmac') return { ciphertext: envelopeOf(pem, randomBytes(sizeBytes)) }
  const { publicKey, privateKey } = pairOf(type)
  if (origin === 'public') return { public_key: publicKey.export({ type: 'spki', format: 'pem' }) }
  return { ciphertext: envelopeOf(pem, privateKey.export({ type: 'pkcs8', format: 'der' })) }
}

const post = (path: string, body: Record<string, unknown> = {}) => done(node.root.post(`transit/${path}`, body))

async function make(name: string, one: Life): Promise<void> {
  const { type, origin, derived, convergent, versions } = one
  const common = { type, derived, exportable: one.exportable, auto_rotate_period: one.autoRotate, context: hello }
  const settings = { ...common, allow_plaintext_backup: true }
  if (origin === 'made') {
    const size = type === 'hmac' ? { key_size: one.sizeBytes } : {}
    await post(`keys/${name}`, { ...settings, ...size, convergent_encryption: convergent })
    for (let version = 2; version <= versions; version++) await post(`keys/${name}/rotate`)
  } else {
    await post(`keys/${name}/import`, { ...settings, ...material(one), allow_rotation: one.allowRotation })
    for (let version = 2; version <= versions; version++) await post(`keys/${name}/import_version`, material(one))
  }
  await post(`keys/${name}/config`, { deletion_allowed: one.deletionAllowed })
  if (one.chain && origin === 'made') await certify(name)
}

async function certify(name: string): Promise<void> {
  const csr = await done(node.root.post(`transit/keys/${name}/csr`, {}))
  writeFileSync(join(directory, 'leaf.csr'), csr.string('data.csr'))
  openssl('x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile leaf.ext -out leaf.pem')
  const chain = ['leaf.pem', 'ca.pem'].map((file) => readFileSync(join(directory, file), 'utf8')).join('')
  await post(`keys/${name}/set-certificate`, { certificate_chain: chain })
}

/** Raises the floors and trims, as far as that is allowed. */
async function age(name: string, { versions, decryption, encryption, trimmed }: Life): Promise<void> {
  const low = 1 + Math.round(decryption * (versions - 1))
  const high = encryption === null ? 0 : low + Math.round(encryption * (versions - low))
  await post(`keys/${name}/config`, { min_decryption_version: low, min_encryption_version: high })
  if (trimmed && high > 0) await post(`keys/${name}/trim`, { min_available_version: low })
}

/** Requests whose answers identify the key, with values that every version of it has made. */
async function asks(name: string, { type, versions, origin, derived }: Life) {
  const asked: { path: string; body: Record<string, unknown> }[] = []
  const context = derived ? { context: hello } : {}
  const signs = type !== 'hmac' && !isAead(type) && origin !== 'public'
  const encrypts = isAead(type) || type === 'rsa-2048'
  for (let key_version = 1; key_version <= versions; key_version++) {
    const given = { input: hello, plaintext: hello, key_version, ...context }
    if (encrypts) {
      const ciphertext = (await post(`encrypt/${name}`, given)).string('data.ciphertext')
      asked.push({ path: 'decrypt', body: { ciphertext, ...context } })
    }
    if (signs) {
      const signature = (await post(`sign/${name}`, given)).string('data.signature')
      asked.push({ path: 'verify', body: { input: hello, signature, ...context } })
    }
    asked.push({ path: 'hmac', body: { input: hello, key_version } })
  }
  return asked
}

const plain = ({ status, body }: Reply) => {
  const { data = null, errors = null } = (body ?? {}) as { data?: unknown; errors?: unknown }
  return { status, data, errors }
}

async function faceOf(client: Client, name: string): Promise<unknown> {
  const { body } = await done(client.get(`transit/keys/${name}`))
  const {
    custody: _,
    name: __,
    backup_info: ___,
    restore_info: ____,
    ...rest
  } = (body as { data: object }).data as Record<string, unknown>
  return rest
}

/** The contents of a backup without the key's name and the places of its parts. */
async function contents(client: Client, name: string): Promise<BlobKey> {
  const { name: _, ...key } = keyOf((await done(client.get(`transit/backup/${name}`))).string('data.backup'))
  return { ...key, versions: key.versions.map(({ history: _, ...version }) => version) }
}

test('restore of a backup is the identity, on a server of its own token and KEKs, and again', async () => {
  const elsewhere = other.client()
  await fc.assert(
    fc.asyncProperty(life.map(sound), async (one) => {
      const [name, copy, again] = [fresh('o'), fresh('c'), fresh('a')]
      await make(name, one)
      const asked = await asks(name, one)
      await age(name, one)
      const held = await contents(node.root, name)
      const face = await faceOf(node.root, name)

      const put = {
        ...held,
        name,
        soft_deleted: one.softDeleted,
        versions: held.versions.map((version) => ({ ...version, history: {} })),
      }
      await done(elsewhere.post(`transit/restore/${copy}`, { backup: blobOf(put) }))
      if (one.softDeleted) {
        expect(await faceOf(elsewhere, copy)).toMatchObject({ soft_deleted: true })
        expect((await elsewhere.get(`transit/backup/${copy}`)).status).toBe(400)
        await done(elsewhere.post(`transit/keys/${copy}/soft-delete-restore`))
      }
      expect(await faceOf(elsewhere, copy)).toEqual(face)
      for (const { path, body } of asked) {
        const answer = await node.root.post(`transit/${path}/${name}`, body)
        expect(plain(await elsewhere.post(`transit/${path}/${copy}`, body))).toEqual(plain(answer))
      }
      expect(await contents(elsewhere, copy)).toEqual(held)

      const back = (await done(elsewhere.get(`transit/backup/${copy}`))).string('data.backup')
      await done(node.root.post('transit/restore', { backup: back, name: again }))
      expect(await faceOf(node.root, again)).toEqual(face)
      expect(await contents(node.root, again)).toEqual(held)
      await sameNew(one, name, elsewhere, copy)
    }),
    { numRuns: 40, endOnFailure: true },
  )
}, 300_000)

/** The key opens and verifies values that the copy has made. */
async function sameNew({ type, derived, origin }: Life, name: string, elsewhere: Client, copy: string): Promise<void> {
  const given = { input: hello, plaintext: hello, ...(derived ? { context: hello } : {}) }
  if (isAead(type) || type === 'rsa-2048') {
    const ciphertext = (await done(elsewhere.post(`transit/encrypt/${copy}`, given))).string('data.ciphertext')
    const sealed = { ciphertext, ...(derived ? { context: hello } : {}) }
    if (origin !== 'public')
      expect((await post(`decrypt/${name}`, sealed)).string('data.plaintext')).toBe(base64('hello'))
  } else if (type !== 'hmac' && origin !== 'public') {
    const signature = (await done(elsewhere.post(`transit/sign/${copy}`, given))).string('data.signature')
    expect((await post(`verify/${name}`, { ...given, signature })).body).toMatchObject({ data: { valid: true } })
  }
}
