import { createCipheriv, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { base64, done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'
import { envelopeOf, importKey, wrappingKeyOf } from '../envelope.ts'

const node = useSharedNode()
const pkcs8 = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'pkcs8' })
const pem = (key: KeyObject): string => key.export({ format: 'pem', type: 'spki' }).toString()
const ec = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const post = (path: string, body: Record<string, unknown>) => node.root.post(`transit/keys/${path}`, body)
const add = async (name: string, key: Uint8Array, more: Record<string, unknown> = {}) =>
  post(`${name}/import_version`, { ciphertext: envelopeOf(await wrappingKeyOf(node.root), key), ...more })
const dataOf = async (name: string) =>
  ((await node.root.get(`transit/keys/${name}`)).body as { data: Record<string, unknown> }).data

/** A key of which only the public half was imported. */
async function publicOnly(key: KeyObject, settings: Record<string, unknown> = {}): Promise<string> {
  const name = fresh('i')
  await done(post(`${name}/import`, { public_key: pem(key), type: 'ecdsa-p256', ...settings }))
  return name
}

describe('import_version', () => {
  test('adds a version of another key, and the old one still decrypts', async () => {
    const [name, first, second] = [fresh('i'), randomBytes(32), randomBytes(32)]
    await importKey(node.root, name, first, {})
    expect((await add(name, second, { hash_function: 'sha256' })).status).toBe(204)
    expect(await dataOf(name)).toMatchObject({ latest_version: 2, imported_key: true, keys: { 1: expect.any(Number) } })
    for (const [version, key] of [
      [1, first],
      [2, second],
    ] as const) {
      const cipher = createCipheriv('aes-256-gcm', key, Buffer.alloc(12))
      const sealed = Buffer.concat([Buffer.alloc(12), cipher.update('hello'), cipher.final(), cipher.getAuthTag()])
      const ciphertext = `vault:v${version}:${base64(sealed)}`
      const reply = await node.root.post(`transit/decrypt/${name}`, { ciphertext })
      expect(reply.string('data.plaintext')).toBe(hello)
    }
  })

  test('gives a version of type hmac its own size', async () => {
    const name = fresh('i')
    await importKey(node.root, name, randomBytes(20), { type: 'hmac' })
    await done(add(name, randomBytes(70)))
    expect(await dataOf(name)).toMatchObject({ key_size: 70, latest_version: 2 })
  })

  test('from many clients at once adds each version once', async () => {
    const name = fresh('i')
    await importKey(node.root, name, randomBytes(32), {})
    const replies = await Promise.all(Array.from({ length: 4 }, () => add(name, randomBytes(32))))
    expect(replies.map(({ status }) => status)).toEqual(Array(4).fill(204))
    expect(await dataOf(name)).toMatchObject({ latest_version: 5 })
  })

  test('of a soft-deleted key is refused', async () => {
    const name = fresh('i')
    await importKey(node.root, name, randomBytes(32), {})
    await done(node.root.delete(`transit/keys/${name}/soft-delete`))
    expectRefused(await add(name, randomBytes(32)), 400, 'refusing to use soft-deleted key')
  })

  test('is refused for keys that were not imported, or were rotated since, and for missing ones', async () => {
    const made = await node.key()
    const only = 'the import_version endpoint can only be used with an imported key'
    expectRefused(await add(made, randomBytes(32)), 400, only)
    const rotated = fresh('i')
    await importKey(node.root, rotated, randomBytes(32), { allow_rotation: true })
    await done(node.root.post(`transit/keys/${rotated}/rotate`))
    expectRefused(await add(rotated, randomBytes(32)), 400, only)
    const none = fresh('i')
    const text = `no key found with name ${none}; to import a new key, use the import/ endpoint`
    expectRefused(await add(none, randomBytes(32)), 400, text)
  })

  test('of the wrong size leaves the key as it is', async () => {
    const name = fresh('i')
    await importKey(node.root, name, randomBytes(32), {})
    expectRefused(await add(name, randomBytes(16)), 400, 'invalid key size 16 bytes for key type aes256-gcm96')
    expect(await dataOf(name)).toMatchObject({ latest_version: 1 })
  })
})

describe('a version that is only a public key', () => {
  test('gets its private half, with the version named and without', async () => {
    for (const more of [{ version: 1 }, {}]) {
      const { publicKey, privateKey } = ec()
      const name = await publicOnly(publicKey)
      const signature = `vault:v1:${base64(sign('sha256', Buffer.from('hello'), privateKey))}`
      await done(add(name, pkcs8(privateKey), more))
      expect(await dataOf(name)).toMatchObject({ latest_version: 1, custody: { 1: { residence: 'wrapped' } } })
      const again = (await done(node.root.post(`transit/sign/${name}`, { input: hello }))).string('data.signature')
      for (const one of [signature, again]) {
        const reply = await node.root.post(`transit/verify/${name}`, { input: hello, signature: one })
        expect(reply.body).toMatchObject({ data: { valid: true } })
      }
    }
  })

  test('accepts no other key, and nothing more for a whole version', async () => {
    const { publicKey, privateKey } = ec()
    const name = await publicOnly(publicKey)
    const other = pkcs8(ec().privateKey)
    expectRefused(await add(name, other, { version: 1 }), 400, 'cannot import key, key pair does not match')
    expectRefused(await add(name, other, { version: 2 }), 400, 'no such key version')
    const given = { public_key: pem(publicKey), version: 1 }
    const set = 'cannot add a public key to a key version that already has a public key set'
    expectRefused(await post(`${name}/import_version`, given), 400, set)
    await done(add(name, pkcs8(privateKey), { version: 1 }))
    const whole = 'private key imported, key version cannot be updated'
    expectRefused(await add(name, pkcs8(privateKey), { version: 1 }), 400, whole)
  })

  test('is followed by a new version when another key comes without a version', async () => {
    const name = await publicOnly(ec().publicKey)
    await done(add(name, pkcs8(ec().privateKey)))
    await done(post(`${name}/import_version`, { public_key: pem(ec().publicKey) }))
    expect(await dataOf(name)).toMatchObject({
      latest_version: 3,
      custody: { 1: { residence: 'public' }, 2: { residence: 'wrapped' }, 3: { residence: 'public' } },
    })
  })

  test('is nothing for secret keys', async () => {
    const name = fresh('i')
    await importKey(node.root, name, randomBytes(32), {})
    const text = 'provided type does not support importing key versions'
    expectRefused(await add(name, randomBytes(32), { version: 1 }), 400, text)
  })

  test('encrypts where it is RSA, and decrypts nothing', async () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const name = await publicOnly(publicKey, { type: 'rsa-2048' })
    const reply = await done(node.root.post(`transit/encrypt/${name}`, { plaintext: hello }))
    expectRefused(
      await node.root.post(`transit/decrypt/${name}`, { ciphertext: reply.string('data.ciphertext') }),
      400,
      'cannot decrypt ciphertext, key version does not have a private counterpart',
    )
  })
})
