import { generateKeyPairSync, type KeyObject, randomBytes, verify } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../../support/client.ts'
import { startServer, type TestServer } from '../../../support/server.ts'
import { done, expectRefused, fresh, hello, useNode } from '../../node.ts'
import { envelopeOf, importKey, wrappingKeyOf } from '../envelope.ts'

/** Keys that move from one server to another with a token and KEKs of its own. */
const node = useNode()
const pkcs8 = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'pkcs8' })
const backup = async (name: string): Promise<string> =>
  (await done(node.root.get(`transit/backup/${name}`))).string('data.backup')
const hmacOf = async (client: Client, name: string) =>
  (await done(client.post(`transit/hmac/${name}`, { input: hello }))).string('data.hmac')

describe('a server of its own token and KEKs', () => {
  let other: TestServer | undefined
  beforeAll(async () => {
    other = await startServer()
  }, 120_000)
  afterAll(() => other?.[Symbol.asyncDispose]())

  test.each(['aes256-gcm96', 'chacha20-poly1305', 'ecdsa-p256', 'ed25519', 'rsa-2048', 'hmac'])(
    'restores %s keys whole',
    async (type) => {
      const client = other?.client()
      if (client === undefined) throw new Error('no server')
      const name = await node.key({ type, allow_plaintext_backup: true })
      await done(node.root.post(`transit/keys/${name}/rotate`))
      await done(client.post('transit/restore', { backup: await backup(name) }))
      expect(await hmacOf(client, name)).toBe(await hmacOf(node.root, name))
      const fields = ({ body }: { body: unknown }) => (body as { data: { keys: unknown } }).data.keys
      const path = `transit/keys/${name}`
      expect(fields(await client.get(path))).toEqual(fields(await node.root.get(path)))
    },
  )

  test('does not open material that was encrypted to another’s wrapping key', async () => {
    const ciphertext = envelopeOf(await wrappingKeyOf(node.root), randomBytes(32))
    const reply = await other?.client().post(`transit/keys/${fresh('i')}/import`, { ciphertext })
    expect(reply?.status).toBe(400)
    expect(reply?.text).toMatch(/the ciphertext cannot be unwrapped/)
  })
})

describe('strict mode', () => {
  let strict: TestServer | undefined
  const client = (): Client => {
    if (strict === undefined) throw new Error('no server')
    return strict.client()
  }
  beforeAll(async () => {
    strict = await startServer({ config: { strict: true } })
  }, 120_000)
  afterAll(() => strict?.[Symbol.asyncDispose]())
  const custodyOf = async (name: string) =>
    ((await client().get(`transit/keys/${name}`)).body as { data: { custody: Record<string, unknown> } }).data.custody

  test('imports every type that the token can keep: wrapped, or as an object of its own', async () => {
    const keys = {
      'aes256-gcm96': ['wrapped', randomBytes(32)],
      hmac: ['wrapped', randomBytes(32)],
      'ecdsa-p256': ['wrapped', pkcs8(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)],
      ed25519: ['token', pkcs8(generateKeyPairSync('ed25519').privateKey)],
    } as const
    for (const [type, [residence, key]] of Object.entries(keys)) {
      const name = fresh('i')
      await importKey(client(), name, key, { type })
      expect(await custodyOf(name)).toMatchObject({ 1: { residence, origin: 'imported', ever_plaintext: true } })
    }
  })

  test('signs with an Ed25519 key that was imported into the token', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const name = fresh('i')
    await importKey(client(), name, pkcs8(privateKey), { type: 'ed25519' })
    const reply = await done(client().post(`transit/sign/${name}`, { input: hello }))
    const signature = Buffer.from(reply.string('data.signature').split(':')[2] ?? '', 'base64')
    expect(verify(null, Buffer.from('hello'), publicKey, signature)).toBe(true)
  })

  test('refuses types that the token cannot keep, by name', async () => {
    const refused = async (type: string, key: Buffer, more: Record<string, unknown>, text: RegExp) => {
      const name = fresh('i')
      const ciphertext = envelopeOf(await wrappingKeyOf(client()), key)
      const reply = await client().post(`transit/keys/${name}/import`, { ciphertext, type, ...more })
      expect(reply.status).toBe(400)
      expect(reply.text).toMatch(text)
      expect((await client().get(`transit/keys/${name}`)).status).toBe(404)
    }
    await refused('chacha20-poly1305', randomBytes(32), {}, /CKM_CHACHA20_POLY1305/)
    const ed = pkcs8(generateKeyPairSync('ed25519').privateKey)
    await refused('ed25519', ed, { exportable: true }, /what stays in the HSM cannot be exported/)
    await refused('aes256-gcm96', randomBytes(32), { derived: true, context: hello }, /strict mode/)
  })

  test('exports and backs up only keys made for it', async () => {
    const name = fresh('k')
    await done(client().post(`transit/keys/${name}`, { type: 'ecdsa-p256' }))
    for (const more of [{ exportable: true }, { allow_plaintext_backup: true }]) {
      const text = 'strict mode: whether a key may be exported is decided when it is created'
      expectRefused(await client().post(`transit/keys/${name}/config`, more), 400, text)
    }
    const open = fresh('k')
    await done(
      client().post(`transit/keys/${open}`, { type: 'ecdsa-p256', exportable: true, allow_plaintext_backup: true }),
    )
    const pem = (await done(client().get(`transit/export/signing-key/${open}`))).string('data.keys.1')
    expect(pem).toMatch(/^-----BEGIN EC PRIVATE KEY-----/)
    const blob = (await done(client().get(`transit/backup/${open}`))).string('data.backup')
    await done(client().post(`transit/restore/${fresh('r')}`, { backup: blob }))
    await done(node.root.post(`transit/restore/${fresh('r')}`, { backup: blob }))
  })
})

test('nothing of a key is in the log or in a refusal, whether its import or restore succeeds or not', async () => {
  const keys = [randomBytes(32), randomBytes(31), randomBytes(32)]
  const [first = Buffer.alloc(0), short = Buffer.alloc(0), wrong = Buffer.alloc(0)] = keys
  const pem = await wrappingKeyOf(node.root)
  const texts: string[] = []
  const post = async (path: string, body: Record<string, unknown>) => {
    texts.push((await node.root.post(`transit/${path}`, body)).text)
  }
  const name = fresh('i')
  await importKey(node.root, name, first, { allow_plaintext_backup: true })
  await post(`keys/${fresh('i')}/import`, { ciphertext: envelopeOf(pem, short) })
  await post(`keys/${fresh('i')}/import`, { ciphertext: envelopeOf(pem, wrong), type: 'ecdsa-p256' })
  const blob = Buffer.from(await backup(name), 'base64').toString()
  for (const [from, to] of [
    ['"latest_version":1', '"latest_version":2'],
    ['"kind":"secret"', '"kind":"pair"'],
    ['{', '['],
  ] as const) {
    await post(`restore/${fresh('r')}`, { backup: Buffer.from(blob.replace(from, to)).toString('base64') })
  }
  expect(texts.every((text) => text.includes('"errors"'))).toBe(true)
  const everything = [...texts, node.server.output()].join('\n')
  for (const key of keys) {
    for (const form of ['base64', 'hex', 'base64url'] as const) expect(everything).not.toContain(key.toString(form))
  }
})
