import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { routes } from '../../../src/engines/transit/index.ts'
import type { Ability } from '../../../src/hsm/capabilities.ts'
import type { Algorithm } from '../../../src/keys/algorithms/algorithm.ts'
import { algorithmOf, algorithms } from '../../../src/keys/algorithms.ts'
import type { Client, Reply } from '../../support/client.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { fresh, hello } from '../node.ts'
import { envelopeOf, wrappingKeyOf } from './envelope.ts'

/**
 * Every type of key with every flag, in every residence, through every route: it works, or a 4xx says why not.
 * Generated from the algorithm table and the route table. A lesser token is SoftHSM with a self-test that reports fewer
 * abilities.
 */
interface Mode {
  readonly name: string
  readonly config: Readonly<Record<string, unknown>>
  readonly lacking: readonly Ability[]
  /** The residences of its keys. */
  readonly residences: readonly string[]
}
const poor: readonly Ability[] = [
  ...(['aes-gcm', 'eddsa', 'create-ed25519', 'digest-key'] as const),
  ...(['rsa-pss', 'rsa-raw', 'oaep-sha256', 'wrap-rsa', 'wrap-p384', 'ecdsa-p521'] as const),
]
const modes: readonly Mode[] = [
  { name: 'a default node', config: {}, lacking: [], residences: ['enveloped', 'public', 'wrapped'] },
  { name: 'a strict node', config: { strict: true }, lacking: [], residences: ['public', 'token', 'wrapped'] },
  {
    name: 'a node whose token can do little',
    config: {},
    lacking: poor,
    residences: ['enveloped', 'public', 'token', 'wrapped'],
  },
  {
    name: 'a strict node whose token can do little',
    config: { strict: true },
    lacking: poor,
    residences: ['public', 'token', 'wrapped'],
  },
]

const flags = [
  {},
  { derived: true },
  { derived: true, convergent_encryption: true },
  { exportable: true },
  { exportable: true, allow_plaintext_backup: true },
]
type Origin = 'made' | 'imported' | 'public'
const rows = [...algorithms.keys()].flatMap((type) => {
  const made = flags.map((settings) => ({ type, settings, origin: 'made' as Origin }))
  const imported = flags.slice(0, 4).map((settings) => ({ type, settings, origin: 'imported' as Origin }))
  const halves = [{ type, settings: {}, origin: 'public' as Origin }]
  // One size of RSA stands for all: making the others takes seconds.
  return /rsa-[34]/.test(type) ? made.slice(0, 1) : [...made, ...imported, ...halves]
})

/** A key from elsewhere, and its public half. */
function foreign(algorithm: Algorithm): { material: Buffer; publicKey: KeyObject | undefined } {
  if (algorithm.kind === 'aead' || algorithm.kind === 'hmac') {
    return { material: randomBytes(algorithm.sizeBytes), publicKey: undefined }
  }
  const pair =
    algorithm.kind === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: algorithm.modulusBits })
      : algorithm.kind === 'ec'
        ? generateKeyPairSync('ec', { namedCurve: algorithm.jwk })
        : generateKeyPairSync('ed25519')
  return { material: pair.privateKey.export({ type: 'pkcs8', format: 'der' }), publicKey: pair.publicKey }
}

/** Why a key cannot be made or used: the rule or the mechanism, by its name. */
const reasons =
  /^(strict mode: |provided type does not support public_key import|cannot decrypt ciphertext, key version does not have a private counterpart|requested version for signing does not contain a private part|the HSM (lacks|refuses) CKM_|the HSM lacks C_|what stays in the HSM cannot be exported, and it lacks CKM_|derivation |key derivation and convergent|convergent encryption not supported|import cannot be used on keys with convergent encryption|strict mode refuses|message (en|de)cryption not supported for key type |key type \S+ does not support )/

const errorsOf = (reply: Reply): readonly string[] => (reply.body as { errors?: string[] }).errors ?? []

/** Expects an answer that is no server fault, and no refusal without a text. */
function expectAnswer(reply: Reply, what: string): void {
  expect(reply.status, `${what}: ${reply.text}`).toBeLessThan(500)
  if (reply.status < 400 || reply.status === 404) return
  expect(errorsOf(reply).length, `${what}: ${reply.text}`).toBeGreaterThan(0)
  for (const text of errorsOf(reply)) expect(text, what).toMatch(/\w{2,}\W+\w{2,}/)
}

/** 200, or refused for one of the reasons; @returns whether it worked */
function worked(reply: Reply, what: string): boolean {
  if (reply.status === 200) return true
  expect(reply.status, `${what}: ${reply.text}`).toBe(400)
  expect(errorsOf(reply), what).toEqual([expect.stringMatching(reasons)])
  return false
}

/**
 * A plausible value for a field or capture of any route, so that a new route is in the matrix as soon as it is in the
 * table.
 */
const samples: Readonly<Record<string, unknown>> = {
  ...{ plaintext: hello, input: hello, context: hello, ciphertext: 'vault:v1:AAAA', signature: 'vault:v1:AAAA' },
  ...{ type: 'plaintext', key_type: 'public-key', version: '1', hash_algorithm: 'sha2-256', algorithm: 'sha2-256' },
  ...{ min_available_version: 1, backup: hello, bits: 256, source: 'seal', bytes: '8' },
}
const ending = /^(DELETE|POST keys\/:name\/(soft|trim))/
const ordered = [...routes]
  .filter(({ path }) => path.includes(':name'))
  .sort((a, b) => Number(ending.test(`${a.method} ${a.path}`)) - Number(ending.test(`${b.method} ${b.path}`)))

/** Makes a key as its origin says; 204 of an import is as good as 200. */
async function createKey(
  client: Client,
  name: string,
  { type, settings, origin }: (typeof rows)[number],
): Promise<boolean> {
  if (origin === 'made') return worked(await client.post(`transit/keys/${name}`, { type, ...settings }), 'create')
  const { material, publicKey } = foreign(algorithmOf(type))
  const source =
    origin === 'public'
      ? { public_key: publicKey?.export({ type: 'spki', format: 'pem' }) ?? 'none' }
      : { ciphertext: envelopeOf(await wrappingKeyOf(client), material) }
  const context = 'derived' in settings ? { context: hello } : {}
  const reply = await client.post(`transit/keys/${name}/import`, { type, ...source, ...settings, ...context })
  return reply.status === 204 || worked(reply, 'import')
}

describe.each(modes)('$name', ({ config, lacking, residences }) => {
  const seen = new Set<string>()
  let server: TestServer
  beforeAll(async () => {
    server = await startServer({ config })
    if (lacking.length === 0) return
    await server.stop()
    const file = readdirSync(server.stateDirectory).find((name) => name.startsWith('self-test-')) ?? ''
    const path = join(server.stateDirectory, file)
    const findings = JSON.parse(readFileSync(path, 'utf8')) as { proven: Ability[] }
    const proven = findings.proven.filter((ability) => !lacking.includes(ability))
    expect(proven.length).toBeLessThan(findings.proven.length)
    writeFileSync(path, JSON.stringify({ ...findings, proven }))
    await server.start()
  }, 120_000)
  afterAll(() => server?.[Symbol.asyncDispose]())

  const post = (path: string, body: Record<string, unknown> = {}) => server.client().post(`transit/${path}`, body)

  test.each(rows)('$origin $type $settings', { timeout: 60_000 }, async (row) => {
    const { type, settings } = row
    const name = fresh('x')
    if (!(await createKey(server.client(), name, row))) return
    const shown = (await server.client().get(`transit/keys/${name}`)).body
    seen.add((shown as { data: { custody: Record<string, { residence: string }> } }).data.custody[1]?.residence ?? '')
    const context = 'derived' in settings ? { context: hello } : {}
    const { abilities } = algorithms.get(type) ?? { abilities: { encrypt: false, sign: false } }

    const sealed = await post(`encrypt/${name}`, { plaintext: hello, ...context })
    if (worked(sealed, 'encrypt')) {
      expect(abilities.encrypt).toBe(true)
      const opened = await post(`decrypt/${name}`, { ciphertext: sealed.string('data.ciphertext'), ...context })
      if (worked(opened, 'decrypt')) expect(opened.string('data.plaintext')).toBe(hello)
      worked(await post(`rewrap/${name}`, { ciphertext: sealed.string('data.ciphertext'), ...context }), 'rewrap')
    }

    for (const scheme of ['pss sha2-256', 'pkcs1v15 sha2-512', 'pss sha3-256', 'pkcs1v15 sha1']) {
      const [signature_algorithm, hash_algorithm] = scheme.split(' ')
      const how = { input: hello, signature_algorithm, hash_algorithm, ...context }
      const signed = await post(`sign/${name}`, how)
      if (!worked(signed, `sign ${scheme}`)) continue
      expect(abilities.sign).toBe(true)
      const checked = await post(`verify/${name}`, { ...how, signature: signed.string('data.signature') })
      expect(checked.body, scheme).toMatchObject({ data: { valid: true } })
    }

    for (const algorithm of ['sha1', 'sha2-256', 'sha2-384', 'sha3-256', 'sha3-512']) {
      const made = await post(`hmac/${name}`, { input: hello, algorithm })
      if (!worked(made, `hmac ${algorithm}`)) continue
      const checked = await post(`verify/${name}`, { input: hello, algorithm, hmac: made.string('data.hmac') })
      expect(checked.body, algorithm).toMatchObject({ data: { valid: true } })
    }

    for (const { method, path, body } of ordered) {
      const url = path.replace(/:(\w+)\*?/g, (_, field: string) => (field === 'name' ? name : String(samples[field])))
      const fields = Object.keys(body.properties).filter((field) => field in samples)
      const sent = Object.fromEntries(fields.map((field) => [field, samples[field]]))
      const reply = await server.client().call(method, `transit/${url}`, method === 'POST' ? sent : undefined)
      expectAnswer(reply, `${method} ${path}`)
    }
  })

  test('has its keys where they belong', () => {
    expect([...seen].sort()).toEqual(residences)
  })

  test('found no fault of ours', () => {
    expect(server.output()).not.toMatch(/server fault|"level":(50|60|"error"|"fatal")/)
  })
})
