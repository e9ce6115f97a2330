import { generateKeyPairSync, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asn1, expect as element, readAll, readNumber, readOne } from '../../src/crypto/der.ts'
import { writePem } from '../../src/crypto/pem.ts'
import { traditionalForm } from '../../src/crypto/privatekey.ts'
import { base64, done, fresh, hello } from '../api/node.ts'
import { importKey } from '../api/transit/envelope.ts'
import type { Client } from '../support/client.ts'
import { Remembered } from '../support/memory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { serving } from './nodes.ts'

/**
 * Searches the memory of a worker for the bytes of secrets that it has worked with, under both executors: as bytes, in
 * either order, and as hexadecimal digits; the base64 of requests and answers stays as long as V8 leaves it there.
 * Memory that the C heap frees is overwritten here, as docs/threat-model.md advises.
 *
 * Only seeds of Ed25519 keys may still be there at first: OpenSSL clears a parsed key when its KeyObject is collected.
 * The other garbage is not collected before the first look, so that nobody's missing wipe is hidden.
 */
const environment = {
  GLIBC_TUNABLES: 'glibc.malloc.perturb=90:glibc.malloc.tcache_count=0',
  NODE_OPTIONS: `--import ${join(import.meta.dirname, '../support/collect.ts')}`,
}
const collections = 2
/** Works that are done between two searches of memory. */
const worksOfALook = 12

type Secrets = Readonly<Record<string, Uint8Array>>

interface Key {
  readonly bytes: Buffer
  readonly secrets: Secrets
}

const secretBytes = { 'aes256-gcm96': 32, 'chacha20-poly1305': 32, hmac: 48 } as const
const pairs = {
  'rsa-2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  'ecdsa-p256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  ed25519: () => generateKeyPairSync('ed25519').privateKey,
} as const
type Type = keyof typeof secretBytes | keyof typeof pairs
const types = [...Object.keys(secretBytes), ...Object.keys(pairs)] as readonly Type[]
const isPair = (type: Type): type is keyof typeof pairs => type in pairs

function newKey(type: Type): Key {
  if (!isPair(type)) {
    const bytes = randomBytes(secretBytes[type])
    return { bytes, secrets: { secret: bytes } }
  }
  const key: KeyObject = pairs[type]()
  const bytes = key.export({ format: 'der', type: 'pkcs8' })
  return { bytes, secrets: numbersOf(bytes) }
}

function numbersOf(pkcs8: Buffer): Secrets {
  const { label, der } = traditionalForm(pkcs8)
  if (label === 'PRIVATE KEY') return { seed: pkcs8.subarray(-32) }
  const parts = readAll(readOne(der, asn1.sequence))
  if (label === 'EC PRIVATE KEY') return { scalar: element(parts[1], asn1.octetString) }
  const names = ['d', 'p', 'q', 'd mod p-1', 'd mod q-1', 'coefficient']
  return Object.fromEntries(names.map((name, index) => [name, readNumber(parts[3 + index])]))
}

let client: Client
const post = (path: string, body: unknown = {}) => done(client.post(`transit/${path}`, body))
const readable = { exportable: true, allow_plaintext_backup: true }

async function imported(type: Type, settings: Readonly<Record<string, unknown>> = {}) {
  const name = fresh('w')
  const key = newKey(type)
  await importKey(client, name, key.bytes, { type, ...settings })
  return { name, ...key }
}

/** The key of a type that all works use. */
async function made(type: string): Promise<string> {
  const name = `shared-${type}`
  await post(`keys/${name}`, { type })
  return name
}

const ofEachType: Readonly<Record<string, (type: Type) => Promise<Secrets>>> = {
  'import of': async (type) => (await imported(type)).secrets,

  async 'exports of'(type) {
    const { name, secrets } = await imported(type, readable)
    const form = type === 'hmac' ? 'hmac-key' : isPair(type) ? 'signing-key' : 'encryption-key'
    for (const format of isPair(type) ? ['', 'der', 'pem'] : ['']) {
      await done(client.get(`transit/export/${form}/${name}?format=${format}`))
    }
    return secrets
  },

  async 'backup and restore of'(type) {
    const { name, secrets } = await imported(type, readable)
    const backup = (await done(client.get(`transit/backup/${name}`))).string('data.backup')
    await post(`restore/${fresh('w')}`, { backup })
    return secrets
  },

  async 'byok-export of'(type) {
    const { name, secrets } = await imported(type, readable)
    await done(client.get(`transit/byok-export/${await made('rsa-2048')}/${name}`))
    return secrets
  },
}

const operations: Readonly<Record<string, () => Promise<Secrets>>> = {
  async 'encryption by an opened key'() {
    const { name, secrets } = await imported('chacha20-poly1305')
    await post(`encrypt/${name}`, { plaintext: hello })
    return secrets
  },
  async 'signature by an opened key'() {
    const { name, secrets } = await imported('ed25519')
    await post(`sign/${name}`, { input: hello })
    return secrets
  },
  async 'HMAC with SHA-3'() {
    const { name, secrets } = await imported('hmac')
    await post(`hmac/${name}/sha3-256`, { input: hello })
    return secrets
  },
  async 'encryption and decryption by a derived key'() {
    const { name, bytes: root } = await imported('aes256-gcm96', { derived: true, context: hello })
    const [bytes, context] = [randomBytes(64), randomBytes(24)]
    const more = { context: base64(context) }
    const sealed = await post(`encrypt/${name}`, { plaintext: base64(bytes), ...more })
    await post(`decrypt/${name}`, { ciphertext: sealed.string('data.ciphertext'), ...more })
    const derived = Buffer.from(hkdfSync('sha256', root, Buffer.alloc(0), context, 32))
    return { root, derived, plaintext: bytes }
  },
  async 'random bytes'() {
    const sources = ['platform', 'seal', 'all']
    const replies = await Promise.all(sources.map((source) => post(`random/${source}/64`)))
    return Object.fromEntries(
      replies.map((reply, at) => [sources[at], Buffer.from(reply.string('data.random_bytes'), 'base64')]),
    )
  },
}

const ofEachCipher: Readonly<Record<string, (type: string) => Promise<Secrets>>> = {
  async 'encryption, decryption and rewrapping by'(type) {
    const name = await made(type)
    const plaintext = randomBytes(96)
    const ciphertext = (await post(`encrypt/${name}`, { plaintext: base64(plaintext) })).string('data.ciphertext')
    await post(`decrypt/${name}`, { ciphertext })
    await post(`rewrap/${name}`, { ciphertext })
    await client.post(`transit/encrypt/${name}`, { plaintext: base64(plaintext), key_version: 7 })
    return { plaintext }
  },
  async 'data keys under'(type) {
    const data = await post(`datakey/plaintext/${await made(type)}`)
    return { plaintext: Buffer.from(data.string('data.plaintext'), 'base64') }
  },
}

async function importToPki(type: keyof typeof pairs): Promise<Secrets> {
  const { bytes, secrets } = newKey(type)
  await done(client.post('pki/keys/import', { pem_bundle: writePem('PRIVATE KEY', bytes) }))
  return secrets
}

type Work = () => Promise<Secrets>
const forEach = <T extends string>(
  kinds: Readonly<Record<string, (type: T) => Promise<Secrets>>>,
  all: readonly T[],
): (readonly [string, Work])[] =>
  Object.entries(kinds).flatMap(([kind, work]) => all.map((type) => [`${kind} ${type}`, () => work(type)] as const))

const works: ReadonlyMap<string, Work> = new Map([
  ...forEach(ofEachType, types),
  ...forEach(ofEachCipher, ['aes256-gcm96', 'chacha20-poly1305', 'rsa-2048']),
  ...forEach({ 'keys for PKI of': importToPki }, ['rsa-2048', 'ecdsa-p256', 'ed25519']),
  ...Object.entries(operations),
])

describe.each(['inline', 'threads'])('with the executor %s', (executor) => {
  let server: TestServer
  let atOnce: readonly string[]
  let later: readonly string[]
  beforeAll(async () => {
    server = await startServer({ environment: { ...environment, STRONGROOM_PKCS11_EXECUTOR: executor } })
    client = server.client()
    const remembered = new Remembered()
    const worker = serving(server)[0] ?? 0
    const seen = new Set<string>()
    const held = randomBytes(16).toString('hex')
    await post(`keys/${held}`)
    remembered.add('held', Buffer.from(held))
    for (const [index, [title, work]] of [...works].entries()) {
      for (const [name, bytes] of Object.entries(await work())) {
        remembered.add(`${title}: ${name}`, bytes)
        remembered.add(`${title}: ${name}, in hexadecimal`, Buffer.from(Buffer.from(bytes).toString('hex')))
      }
      // Soon, before something else takes the memory.
      if (index % worksOfALook === worksOfALook - 1) for (const name of remembered.found(worker)) seen.add(name)
    }
    for (const name of remembered.found(worker)) seen.add(name)
    atOnce = [...seen]
    for (let collection = 0; collection < collections; collection++) {
      process.kill(worker, 'SIGURG')
      await client.get('sys/health')
    }
    later = remembered.found(worker)
  }, 600_000)
  afterAll(() => server?.[Symbol.asyncDispose]())

  test('what the worker still holds is found', () => {
    expect(atOnce).toContain('held')
    expect(later).toContain('held')
  })

  test.each([...works.keys()])('nothing is left of %s', (title) => {
    const of = (found: readonly string[]) => found.filter((name) => name.startsWith(`${title}: `))
    expect(of(later)).toEqual([])
    expect(of(atOnce).filter((name) => !name.endsWith(': seed'))).toEqual([])
  })
})
