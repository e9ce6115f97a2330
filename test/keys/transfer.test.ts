import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { hashes } from '../../src/crypto/hashes.ts'
import { unwrapKey } from '../../src/crypto/keywrap.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { algorithms } from '../../src/keys/algorithms.ts'
import type { Custody } from '../../src/keys/custody.ts'
import { keyWrap, oaep } from '../api/transit/envelope.ts'
import { decrypted } from '../support/intermediates.ts'
import { makeKey, type Place, useCluster } from './support.ts'

/** Export and import of keys. */

let hsm: Hsm
let place: Place
let custody: Custody
useCluster('transfer', (cluster) => {
  ;({ hsm, place, custody } = cluster)
})

/** One mount for all tests: making its wrapping key takes seconds. */
const mount = randomUUID()

const sha256 = hashes.get('sha2-256')
if (sha256 === undefined) throw new Error('no SHA-256')

const sessionObjects = async () =>
  (await Promise.all((['secret', 'private'] as const).map((one) => hsm.find({ class: one, token: false })))).flat()
    .length

describe('a secret opened for one use', () => {
  it.each(['aes256-gcm96', 'chacha20-poly1305', 'hmac'])(
    'of type %s is wiped in memory and destroyed in the token, whether the use succeeds or fails',
    async (algorithm) => {
      const material = await makeKey(custody, place.database, algorithm, { exportable: true })
      const before = await sessionObjects()
      const lent: Buffer[] = []
      const use = async (fails: boolean) =>
        custody.managed.blobs.open(material, async (secret) => {
          expect(secret.every((byte) => byte === 0)).toBe(false)
          expect(await sessionObjects()).toBe(before + 1)
          lent.push(secret)
          if (fails) throw new Error('the use failed')
        })
      await use(false)
      await expect(use(true)).rejects.toThrow('the use failed')
      expect(lent.map((secret) => secret.every((byte) => byte === 0))).toEqual([true, true])
      expect(await sessionObjects()).toBe(before)
    },
  )
})

describe.each([...algorithms.keys()])('a key of type %s', (algorithm) => {
  it('that is not exportable leaves neither in clear nor under a key of the caller', async () => {
    const material = await makeKey(custody, place.database, algorithm)
    const seen: unknown[] = []
    await expect(
      (async () => custody.transfer.keyExport.open(material, (key) => void seen.push(key)))(),
    ).rejects.toThrow()
    await expect((async () => custody.transfer.keyExport.wrapUnder(material, randomBytes(32)))()).rejects.toThrow()
    expect(seen).toEqual([])
  })

  it('that is exportable leaves nothing behind in the token', async () => {
    const material = await makeKey(custody, place.database, algorithm, { exportable: true })
    const before = await sessionObjects()
    await custody.transfer.keyExport.open(material, ({ kind }) => expect(['secret', 'pair']).toContain(kind))
    expect((await custody.transfer.keyExport.wrapUnder(material, randomBytes(32))).length).toBeGreaterThan(16)
    expect(await sessionObjects()).toBe(before)
  })
})

/** Reads of a key's value in the token during the work. */
async function readings(work: () => Promise<unknown>): Promise<number> {
  const reading = vi.spyOn(hsm, 'attributes')
  try {
    await work()
    return reading.mock.calls.filter(([, names]) => (names as readonly string[]).includes('value')).length
  } finally {
    reading.mockRestore()
  }
}

describe('a key under a key of the caller', () => {
  it.each([
    ['that the token wraps at its exact length is never in memory', 'aes128-gcm96', 0],
    ['that the token wraps at its exact length is never in memory', 'aes256-gcm96', 0],
    ['that it does not wrap so is opened once', 'hmac', 1],
    ['that it does not wrap so is opened once', 'chacha20-poly1305', 1],
    ['that it does not wrap so is opened once', 'ed25519', 1],
  ])('%s: %s', async (_, algorithm, expected) => {
    const [material, transport] = [
      await makeKey(custody, place.database, algorithm, { exportable: true }),
      randomBytes(32),
    ]
    let blob: Buffer | undefined
    let given: readonly Buffer[] = []
    const read = await readings(async () => {
      given = await decrypted(async () => {
        blob = await custody.transfer.keyExport.wrapUnder(material, transport)
      })
    })
    expect([read, given]).toEqual([expected, []])
    const key = Buffer.from(unwrapKey(transport, blob ?? Buffer.alloc(0)) ?? [])
    if (algorithm !== 'ed25519') expect(key).toHaveLength(material.row.sizeBytes)
    else expect(createPublicKey(readPkcs8(key)).equals(material.publicKey)).toBe(true)
  })
})

it('the wrapping key of a mount decrypts, and the token lets it do nothing else', async () => {
  const wrapping = await custody.transfer.keyImport.wrappingKey(mount, 'me')
  const usages = ['decrypt', 'sign', 'unwrap', 'extractable', 'modifiable'] as const
  const shown = await custody.objects.handles.use(wrapping, (key) => hsm.attributes(key, usages))
  expect(shown).toEqual({ decrypt: true, sign: false, unwrap: false, extractable: false, modifiable: false })
  const scheme = {
    hash: sha256,
    prehashed: false,
    padding: 'pkcs1v15',
    saltLength: 'auto',
    marshaling: 'asn1',
  } as const
  await expect((async () => custody.operations.signer.sign(wrapping, Buffer.from('x'), scheme))()).rejects.toThrow()
})

it('a wrapping key that the database no longer has is remembered no longer', async () => {
  const other = randomUUID()
  const wrapping = () => custody.transfer.keyImport.wrappingKey(other, 'me')
  const { row } = await wrapping()
  expect((await wrapping()).row.id).toBe(row.id)
  await place.database.transaction((tx) => custody.materials.removeOwned(tx, { key: other }))
  const next = await wrapping()
  expect(next.row.id).not.toBe(row.id)
  expect((await wrapping()).row.id).toBe(next.row.id)
})

const readPkcs8 = (key: Buffer) => createPrivateKey({ key, format: 'der', type: 'pkcs8' })

const p384 = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ type: 'pkcs8', format: 'der' })

it.each([
  ['a secret longer than an HMAC key may be', 'hmac', () => randomBytes(600)],
  ['a private key of another curve', 'ecdsa-p256', p384],
  ['a text that is no private key', 'ed25519', () => randomBytes(80)],
  ['a key that is accepted', 'hmac', () => randomBytes(48)],
])('%s, in an envelope, is wiped on the host', async (what, algorithm, make) => {
  const { publicKey } = await custody.transfer.keyImport.wrappingKey(mount, 'me')
  const [key, transport] = [make(), randomBytes(32)]
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const ciphertext = Buffer.concat([oaep(pem, transport, 'sha256'), keyWrap(transport, key)])
  const wanted = { algorithm, exportable: true, part: 'key', createdBy: 'me' } as const
  const given = await decrypted(async () => {
    const drafting = custody.transfer.keyImport.prepare(wanted, { mount, hash: sha256, ciphertext })
    if (what.endsWith('accepted')) await drafting
    else await expect(drafting).rejects.toMatchObject({ status: 400 })
  })
  const whole = given.filter(({ length }) => length === key.length)
  expect(whole.map((bytes) => bytes.every((byte) => byte === 0))).toEqual([true])
})
