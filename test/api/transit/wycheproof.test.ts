import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, fresh, useSharedNode } from '../node.ts'
import { openedWarnings } from '../signing.ts'
import { envelopeOf, wrappingKeyOf } from './envelope.ts'

/** Wycheproof's vectors through the API, with their keys imported (vectors/README.md). */
const node = useSharedNode()

interface Vector {
  readonly tcId: number
  readonly flags: readonly string[]
  readonly result: 'valid' | 'invalid' | 'acceptable'
  readonly [field: string]: unknown
}
interface Group {
  readonly file: string
  readonly algorithm: string
  readonly keySize: number
  readonly sha: string
  readonly sLen: number
  readonly publicKeyPem: string
  readonly privateKeyPkcs8: string
  readonly tests: readonly Vector[]
}

const read = (name: string): Group[] =>
  JSON.parse(readFileSync(join(import.meta.dirname, 'vectors', `${name}.json`), 'utf8'))
const groups = {
  aead: read('aead'),
  mac: read('mac'),
  ecdsa: read('ecdsa'),
  ed25519: read('ed25519'),
  rsa: read('rsa'),
}

const bytes = (vector: Vector, field: string): Buffer => Buffer.from(String(vector[field] ?? ''), 'hex')
const post = (path: string, body: Record<string, unknown>) => node.root.post(`transit/${path}`, body)
const about = ({ file }: Group, { tcId, flags, comment }: Vector): string =>
  `${file} test ${tcId} (${flags.join(', ')}) ${comment}`
/** `SHA-256`, `SHA3-256` and `SHA-1` as the wire calls them. */
const hashName = (sha: string): string =>
  sha
    .toLowerCase()
    .replace(/^sha-(?!1$)/, 'sha2-')
    .replace('sha-1', 'sha1')
const nodeName = (sha: string): string => sha.toLowerCase().replace(/^sha-/, 'sha')

let wrappingKey = ''
async function imported(type: string, key: Uint8Array): Promise<string> {
  const name = fresh('w')
  wrappingKey ||= await wrappingKeyOf(node.root)
  await done(post(`keys/${name}/import`, { type, ciphertext: envelopeOf(wrappingKey, key) }))
  return name
}

async function importedPublic(type: string, public_key: string): Promise<string> {
  const name = fresh('w')
  await done(post(`keys/${name}/import`, { type, public_key }))
  return name
}

describe('authenticated encryption', () => {
  const failures = {
    aes_gcm: 'cipher: message authentication failed',
    chacha20_poly1305: 'chacha20poly1305: message authentication failed',
  }
  const rows = groups.aead.flatMap((group) =>
    group.tests.map((vector) => [about(group, vector), group, vector] as const),
  )

  test.each(rows)('%s', async (_, { file, keySize }, vector) => {
    const type = file === 'aes_gcm' ? `aes${keySize}-gcm96` : 'chacha20-poly1305'
    const name = await imported(type, bytes(vector, 'key'))
    const payload = Buffer.concat([bytes(vector, 'iv'), bytes(vector, 'ct'), bytes(vector, 'tag')])
    const asked = { ciphertext: `vault:v1:${base64(payload)}`, associated_data: base64(bytes(vector, 'aad')) }
    const reply = await post(`decrypt/${name}`, asked)
    if (vector.result === 'valid') expectData(reply, { plaintext: base64(bytes(vector, 'msg')) })
    else expectRefused(reply, 400, failures[file as keyof typeof failures])
  })
})

describe('HMAC', () => {
  const rows = groups.mac.flatMap((group) =>
    group.tests.map((vector) => [about(group, vector), group, vector] as const),
  )

  test.each(rows)('%s', async (_, { algorithm: hmac }, vector) => {
    const algorithm = hashName(hmac.replace(/^HMAC/, '').replace(/^SHA(?!3-)/, 'SHA-'))
    const name = await imported('hmac', bytes(vector, 'key'))
    const input = base64(bytes(vector, 'msg'))
    const made = (await done(post(`hmac/${name}`, { input, algorithm }))).string('data.hmac')
    const given = `vault:v1:${base64(bytes(vector, 'tag'))}`
    expect(made === given).toBe(vector.result === 'valid')
    const verified = await post(`verify/${name}`, { input, algorithm, hmac: given })
    expectData(verified, { valid: vector.result === 'valid' }, openedWarnings(algorithm))
  })
})

/** Verifies a whole group in one batch, over inputs and over their digests: no item may damage another. */
async function verifies(group: Group, name: string, how: Record<string, unknown>, jws = false): Promise<void> {
  const both = group.sha === undefined ? [false] : [false, true]
  for (const prehashed of both) {
    const batch_input = group.tests.map((vector) => {
      const message = bytes(vector, 'msg')
      const input = base64(prehashed ? createHash(nodeName(group.sha)).update(message).digest() : message)
      return { input, signature: `vault:v1:${bytes(vector, 'sig').toString(jws ? 'base64url' : 'base64')}` }
    })
    const reply = await post(`verify/${name}`, { ...how, prehashed, batch_input, partial_failure_response_code: 200 })
    const { data } = reply.body as { data: { batch_results: { valid: boolean }[] } }
    for (const [index, vector] of group.tests.entries()) {
      const valid = data.batch_results[index]?.valid
      const wanted = vector.result === 'acceptable' ? valid : vector.result === 'valid'
      expect(valid, `${about(group, vector)}: ${JSON.stringify(data.batch_results[index])}`).toBe(wanted)
    }
  }
}

const numbered = (some: readonly Group[]) =>
  some.map((group) => [`${group.file} ${group.tests.map(({ tcId }) => tcId).join()}`.slice(0, 80), group] as const)

describe('ECDSA', () => {
  test.each(numbered(groups.ecdsa))('%s', async (_, group) => {
    const name = await importedPublic(`ecdsa-p${/secp(\d+)/.exec(group.file)?.[1]}`, group.publicKeyPem)
    const jws = group.file.endsWith('p1363')
    const how = { hash_algorithm: hashName(group.sha), marshaling_algorithm: jws ? 'jws' : 'asn1' }
    await verifies(group, name, how, jws)
  })
})

describe('Ed25519', () => {
  test.each(numbered(groups.ed25519))('%s', async (_, group) => {
    await verifies(group, await importedPublic('ed25519', group.publicKeyPem), {})
  })
})

describe('RSA', () => {
  const of = (part: string) => numbered(groups.rsa.filter(({ file }) => file.includes(part)))

  test.each(of('pss'))('PSS %s', async (_, group) => {
    const name = await importedPublic(`rsa-${group.keySize}`, group.publicKeyPem)
    const hash_algorithm = hashName(group.sha)
    await verifies(group, name, { hash_algorithm, signature_algorithm: 'pss', salt_length: group.sLen })
  })

  test.each(of('signature'))('PKCS#1 v1.5 %s', async (_, group) => {
    const name = await importedPublic(`rsa-${group.keySize}`, group.publicKeyPem)
    await verifies(group, name, { hash_algorithm: hashName(group.sha), signature_algorithm: 'pkcs1v15' })
  })

  test.each(of('oaep'))('OAEP %s', async (_, group) => {
    const name = await imported(`rsa-${group.keySize}`, Buffer.from(group.privateKeyPkcs8, 'hex'))
    for (const vector of group.tests) {
      const reply = await post(`decrypt/${name}`, { ciphertext: `vault:v1:${base64(bytes(vector, 'ct'))}` })
      // The API has no labels: a ciphertext with one is as wrong as any other.
      if (vector.result === 'valid' && vector.label === '') {
        expectData(reply, { plaintext: base64(bytes(vector, 'msg')) })
      } else {
        expectRefused(reply, 400, 'failed to RSA decrypt the ciphertext: crypto/rsa: decryption error')
      }
    }
  })
})
