import {
  createCipheriv,
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  verify,
} from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'
import { bytesOf } from '../../signing.ts'
import { envelopeOf, hashFunctions, importKey, keyWrap, oaep, wrappingKeyOf } from '../envelope.ts'

const node = useSharedNode()
const pkcs8 = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'pkcs8' })
const post = (path: string, body: Record<string, unknown>) => node.root.post(`transit/keys/${path}`, body)

describe('the wrapping key', () => {
  test('is an RSA-4096 public key, the same at every read, and in no listing', async () => {
    const all = await Promise.all([wrappingKeyOf(node.root), wrappingKeyOf(node.root)])
    expect(new Set([...all, await wrappingKeyOf(node.root)]).size).toBe(1)
    expect(all[0]).toMatch(/^-----BEGIN PUBLIC KEY-----\n[\s\S]+-----END PUBLIC KEY-----\n$/)
    expect(createPublicKey(all[0] ?? '').asymmetricKeyDetails?.modulusLength).toBe(4096)
    await node.key()
    const { keys } = ((await node.root.list('transit/keys')).body as { data: { keys: string[] } }).data
    expect(keys.filter((name) => /import|wrap/.test(name))).toEqual([])
  })

  test('is another in another mount', async () => {
    const mount = await node.mount()
    expect(await wrappingKeyOf(node.root, mount)).not.toBe(await wrappingKeyOf(node.root))
  })
})

describe('an imported key', () => {
  test.each(hashFunctions)('comes in with %s', async (name, hash) => {
    const key = randomBytes(32)
    const ciphertext = envelopeOf(await wrappingKeyOf(node.root), key, hash)
    const imported = fresh('i')
    const reply = await post(`${imported}/import`, {
      ciphertext,
      type: 'AES256-GCM96',
      hash_function: name.toLowerCase(),
    })
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' })
    const cipher = createCipheriv('aes-256-gcm', key, Buffer.alloc(12, 7))
    const sealed = Buffer.concat([Buffer.alloc(12, 7), cipher.update('hello'), cipher.final(), cipher.getAuthTag()])
    const opened = await node.root.post(`transit/decrypt/${imported}`, { ciphertext: `vault:v1:${base64(sealed)}` })
    expect(opened.string('data.plaintext')).toBe(hello)
  })

  test('shows where it came from', async () => {
    const name = fresh('i')
    await importKey(node.root, name, randomBytes(16), { type: 'aes128-gcm96' })
    const { body } = await node.root.get(`transit/keys/${name}`)
    const history = {
      origin: 'imported',
      residence: 'wrapped',
      local: false,
      ever_plaintext: true,
      always_sensitive: false,
    }
    expect(body).toMatchObject({
      data: {
        type: 'aes128-gcm96',
        imported_key: true,
        imported_key_allow_rotation: false,
        min_decryption_version: 1,
        custody: { 1: { ...history, hmac: { origin: 'generated' } } },
      },
    })
  })

  test.each([
    ['aes128-gcm96', 'aes-128-gcm', 16],
    ['aes256-gcm96', 'aes-256-gcm', 32],
    ['chacha20-poly1305', 'chacha20-poly1305', 32],
  ] as const)('decrypts ciphertexts made with it elsewhere: %s', async (type, node_, bytes) => {
    const [name, key, iv] = [fresh('i'), randomBytes(bytes), randomBytes(12)]
    await importKey(node.root, name, key, { type })
    const cipher = createCipheriv(node_ as 'aes-256-gcm', key, iv, { authTagLength: 16 })
    const sealed = Buffer.concat([iv, cipher.update('hello'), cipher.final(), cipher.getAuthTag()])
    const opened = await node.root.post(`transit/decrypt/${name}`, { ciphertext: `vault:v1:${base64(sealed)}` })
    expect(opened.string('data.plaintext')).toBe(hello)
  })

  test.each([
    ['ecdsa-p256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' }), 'sha256'],
    ['ecdsa-p384', () => generateKeyPairSync('ec', { namedCurve: 'P-384' }), 'sha256'],
    ['ecdsa-p521', () => generateKeyPairSync('ec', { namedCurve: 'P-521' }), 'sha256'],
    ['ed25519', () => generateKeyPairSync('ed25519'), null],
    ['rsa-2048', () => generateKeyPairSync('rsa', { modulusLength: 2048 }), 'sha256'],
    ['rsa-3072', () => generateKeyPairSync('rsa', { modulusLength: 3072 }), 'sha256'],
  ] as const)('signs as it did elsewhere: %s', async (type, make, hash) => {
    const { privateKey, publicKey } = make()
    const name = fresh('i')
    await importKey(node.root, name, pkcs8(privateKey), { type })
    const reply = await done(node.root.post(`transit/sign/${name}`, { input: hello, signature_algorithm: 'pkcs1v15' }))
    expect(verify(hash, Buffer.from('hello'), publicKey, bytesOf(reply.string('data.signature')))).toBe(true)
  })

  test.each([16, 20, 32, 33, 63, 64, 65, 100, 512])('of type hmac has %i bytes', async (bytes) => {
    const [name, key] = [fresh('i'), randomBytes(bytes)]
    await importKey(node.root, name, key, { type: 'hmac' })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { key_size: bytes } })
    for (const [algorithm, hash] of [
      ['sha2-256', 'sha256'],
      ['sha2-512', 'sha512'],
      ['sha3-256', 'sha3-256'],
    ]) {
      const reply = await node.root.post(`transit/hmac/${name}/${algorithm}`, { input: hello })
      const expected = createHmac(hash ?? '', key)
        .update('hello')
        .digest('base64')
      expect(reply.string('data.hmac')).toBe(`vault:v1:${expected}`)
    }
  })

  test('is aes256-gcm96 without a type, which is warned of', async () => {
    const name = fresh('i')
    const ciphertext = envelopeOf(await wrappingKeyOf(node.root), randomBytes(32))
    expectData(await post(`${name}/import`, { ciphertext }), null, [
      'type is not given: the key is imported as aes256-gcm96',
    ])
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { type: 'aes256-gcm96' } })
  })
})

describe('a bad ciphertext', () => {
  const text = /^the ciphertext cannot be unwrapped: it must be a 256-bit AES key/
  const refused = async (type: string, bytes: Buffer) => {
    const name = fresh('i')
    const reply = await post(`${name}/import`, { type, ciphertext: base64(bytes) })
    const { errors } = reply.body as { errors: string[] }
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
    return { status: reply.status, errors }
  }

  test.each([
    ['aes256-gcm96', () => randomBytes(32)],
    ['hmac', () => randomBytes(40)],
    ['ecdsa-p256', () => pkcs8(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)],
  ] as const)('is refused with one text whichever step fails: %s', async (type, make) => {
    const pem = await wrappingKeyOf(node.root)
    const transport = randomBytes(32)
    const [head, tail] = [oaep(pem, transport, 'sha256'), keyWrap(transport, make())]
    const flipped = (bytes: Buffer, at: number) => {
      const copy = Buffer.from(bytes)
      copy[at] = (copy[at] ?? 0) ^ 1
      return copy
    }
    const bad = {
      'bad OAEP': Buffer.concat([flipped(head, 100), tail]),
      'OAEP of another hash': Buffer.concat([oaep(pem, transport, 'sha1'), tail]),
      'a number beyond the modulus': Buffer.concat([Buffer.alloc(512, 255), tail]),
      zero: Buffer.concat([Buffer.alloc(512), tail]),
      'an AES-128 key': Buffer.concat([oaep(pem, randomBytes(16), 'sha256'), tail]),
      'bad KWP': Buffer.concat([head, flipped(tail, 3)]),
      'KWP cut short': Buffer.concat([head, tail.subarray(0, -8)]),
      'KWP of no length that there is': Buffer.concat([head, tail.subarray(0, -1)]),
      'KWP of one byte': Buffer.concat([head, Buffer.alloc(1)]),
    }
    const seen = new Set<string>()
    for (const [what, bytes] of Object.entries(bad)) {
      const { status, errors } = await refused(type, bytes)
      expect({ what, status }).toEqual({ what, status: 400 })
      expect(errors[0], what).toMatch(text)
      seen.add(JSON.stringify(errors))
    }
    expect(seen.size).toBe(1)
  })

  test('of 512 bytes or fewer is too short, and invalid base64 is named', async () => {
    expectRefused(
      await post(`${fresh('i')}/import`, { ciphertext: base64(Buffer.alloc(512)) }),
      400,
      'provided ciphertext is too short',
    )
    const reply = await post(`${fresh('i')}/import`, { ciphertext: '!' })
    expectRefused(reply, 400, 'failed to base64-decode ciphertext: illegal base64 data at input byte 0')
  })
})

test.each([
  ['aes128-gcm96', 32],
  ['aes256-gcm96', 16],
  // SoftHSM would fill these up with zeros.
  ['aes256-gcm96', 31],
  ['aes128-gcm96', 12],
  ['chacha20-poly1305', 25],
  ['hmac', 15],
  ['hmac', 513],
] as const)('a %s key of %i bytes is refused', async (type, bytes) => {
  const ciphertext = envelopeOf(await wrappingKeyOf(node.root), randomBytes(bytes))
  const reply = await post(`${fresh('i')}/import`, { type, ciphertext })
  expect(reply.status).toBe(400)
  expect(reply.text).toMatch(new RegExp(`invalid key size( ${bytes} bytes)? for key type ${type}`))
})

test('open: a captured ciphertext is imported again, under another name and as exportable', async () => {
  const [first, again, key] = [fresh('i'), fresh('i'), randomBytes(32)]
  const ciphertext = envelopeOf(await wrappingKeyOf(node.root), key)
  await done(node.root.post(`transit/keys/${first}/import`, { ciphertext, type: 'aes256-gcm96' }))
  await done(node.root.post(`transit/keys/${again}/import`, { ciphertext, type: 'aes256-gcm96', exportable: true }))
  expect((await node.root.get(`transit/export/encryption-key/${first}`)).status).toBe(400)
  const exported = await done(node.root.get(`transit/export/encryption-key/${again}`))
  expect(exported.string('data.keys.1')).toBe(base64(key))
  // Another mount has another wrapping key.
  const mount = await node.mount()
  const elsewhere = { ciphertext, type: 'aes256-gcm96', exportable: true }
  expect((await node.root.post(`${mount}/keys/${again}/import`, elsewhere)).status).toBe(400)
})
