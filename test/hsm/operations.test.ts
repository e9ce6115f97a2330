import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPublicKey,
  randomBytes,
  verify,
} from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CKK, CKM } from '../../src/hsm/constants.ts'
import { HsmRefusal } from '../../src/hsm/faults.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import {
  aesTemplate,
  executors,
  gcm,
  hmac256,
  macTemplate,
  newAes,
  newP256,
  newRsa,
  type OpenHsm,
  openHsm,
} from './support/open.ts'

describe.each(executors)('under the %s executor', (executor) => {
  let open: OpenHsm
  let hsm: Hsm
  beforeAll(async () => {
    open = await openHsm({ executor, threads: 3 })
    hsm = open.hsm
  })
  afterAll(() => open[Symbol.asyncDispose]())

  test('AES-GCM is the AES-GCM of node:crypto, for every length, nothing included', async () => {
    const value = randomBytes(32)
    const key = await hsm.create(aesTemplate(['encrypt', 'decrypt'], { value }))
    const bytes = fc.uint8Array({ maxLength: 300 })
    const law = fc.asyncProperty(bytes, bytes, async (plaintext, aad) => {
      const iv = randomBytes(12)
      const sealed = await hsm.encrypt(key, gcm(iv, aad), plaintext)
      const cipher = createCipheriv('aes-256-gcm', value, iv).setAAD(aad)
      expect(sealed).toEqual(Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]))
      expect(await hsm.decrypt(key, gcm(iv, aad), sealed)).toEqual(Buffer.from(plaintext))
    })
    await fc.assert(law, { numRuns: 50, examples: [[new Uint8Array(0), new Uint8Array(0)]] })
  })

  test('a payload of several MiB comes back whole', async () => {
    const key = await newAes(hsm, ['encrypt', 'decrypt'])
    const plaintext = randomBytes(3 << 20)
    const iv = randomBytes(12)
    const sealed = await hsm.encrypt(key, gcm(iv), plaintext)
    expect(plaintext.equals(await hsm.decrypt(key, gcm(iv), sealed))).toBe(true)
  })

  test('a MAC over nothing is a MAC', async () => {
    const value = randomBytes(64)
    const key = await hsm.create(macTemplate({ value }))
    for (const message of [Buffer.alloc(0), new Uint8Array(0), Buffer.from('x')]) {
      expect(await hsm.sign(key, hmac256, message, 32)).toEqual(createHmac('sha256', value).update(message).digest())
    }
  })

  test('outputs are exact and share no memory with each other', async () => {
    const key = await hsm.create(macTemplate({ value: randomBytes(64) }))
    const first = await hsm.sign(key, hmac256, Buffer.from('first'), 32)
    const copy = Buffer.from(first)
    const others = await Promise.all(Array.from({ length: 50 }, (_, i) => hsm.sign(key, hmac256, Buffer.from([i]), 32)))
    const kek = await newAes(hsm, ['wrap', 'unwrap'])
    const blobs = [await hsm.wrap(kek, hsm.capabilities.kwp, await newAes(hsm, ['encrypt'], { extractable: true }))]
    const kept = blobs.map((blob) => Buffer.from(blob))
    blobs.push(await hsm.wrap(kek, hsm.capabilities.kwp, await newAes(hsm, ['encrypt'], { extractable: true })))
    for (const other of others) other.fill(0)
    expect(first).toEqual(copy)
    expect(first).toHaveLength(32)
    expect(blobs[0]).toEqual(kept[0])
    expect(blobs[0]).toHaveLength(40)
  })

  test('a caller may overwrite its buffers as soon as the call has returned', async () => {
    const value = randomBytes(32)
    const key = await hsm.create(aesTemplate(['encrypt'], { value }))
    const [iv, aad, plaintext] = [randomBytes(12), randomBytes(20), randomBytes(100)]
    const [nonce, extra, message] = [iv, aad, plaintext].map((bytes) => Buffer.from(bytes))
    const calls = Array.from({ length: 20 }, () => hsm.encrypt(key, gcm(iv, aad), plaintext))
    for (const bytes of [iv, aad, plaintext]) bytes.fill(0xee)
    for (const sealed of await Promise.all(calls)) {
      const decipher = createDecipheriv('aes-256-gcm', value, nonce ?? '').setAAD(extra ?? Buffer.alloc(0))
      decipher.setAuthTag(sealed.subarray(-16))
      expect(Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()])).toEqual(message)
    }
  })

  test('what is wrapped comes back as a key that signs the same and cannot be read', async () => {
    const { kwp } = hsm.capabilities
    const kek = await newAes(hsm, ['wrap', 'unwrap'])
    const value = randomBytes(64)
    const original = await hsm.create(macTemplate({ value, extractable: true }))
    const blob = await hsm.wrap(kek, kwp, original)
    const copy = await hsm.unwrap(kek, kwp, blob, macTemplate())
    expect(await hsm.sign(copy, hmac256, Buffer.from('m'), 32)).toEqual(
      createHmac('sha256', value).update('m').digest(),
    )
    const seen = await hsm.attributes(copy, ['sensitive', 'extractable', 'local', 'neverExtractable', 'value'])
    expect(seen).toEqual({
      sensitive: true,
      extractable: false,
      local: false,
      neverExtractable: false,
      value: undefined,
    })
  })

  test('EC keys sign under the point that the token shows, before and after a wrap', async () => {
    const { publicKey, privateKey } = await newP256(hsm)
    const { ecPoint = Buffer.alloc(0), ecParameters } = await hsm.attributes(publicKey, ['ecPoint', 'ecParameters'])
    expect(ecPoint).toHaveLength(65)
    expect(ecParameters).toHaveLength(10)
    const [x, y] = [ecPoint.subarray(1, 33), ecPoint.subarray(33)].map((half) => half.toString('base64url'))
    const jwk = { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' }
    const open = createPublicKey({ format: 'jwk', key: jwk })
    const kek = await newAes(hsm, ['wrap', 'unwrap'])
    const { kwp } = hsm.capabilities
    const blob = await hsm.wrap(kek, kwp, privateKey)
    const template = { class: 'private', keyType: CKK.EC, usages: ['sign'], ecPoint } as const
    for (const key of [privateKey, await hsm.unwrap(kek, kwp, blob, template)]) {
      const digest = createHash('sha256').update('m').digest()
      const signature = await hsm.sign(key, { type: CKM.ECDSA }, digest, 64)
      expect(verify('sha256', Buffer.from('m'), { key: open, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true)
    }
  })

  test('RSA signatures come from a thread and verify', async () => {
    const { publicKey, privateKey } = await newRsa(hsm)
    const { modulus, publicExponent } = await hsm.attributes(publicKey, ['modulus', 'publicExponent'])
    const jwk = { kty: 'RSA', n: modulus?.toString('base64url') ?? '', e: publicExponent?.toString('base64url') ?? '' }
    const digestInfo = Buffer.from('3031300d060960864801650304020105000420', 'hex')
    const input = Buffer.concat([digestInfo, createHash('sha256').update('m').digest()])
    const signature = hsm.sign(privateKey, { type: CKM.RSA_PKCS }, input, 256)
    expect(signature).toBeInstanceOf(Promise)
    const open = createPublicKey({ format: 'jwk', key: jwk })
    expect(verify('sha256', Buffer.from('m'), open, await signature)).toBe(true)
  })

  test('the digest over a key is that over its value', async () => {
    hsm.capabilities.require('digest-key')
    const value = randomBytes(32)
    const key = await hsm.create(macTemplate({ value }))
    const [prefix, suffix] = [Buffer.alloc(64, 0x36), Buffer.from('suffix')]
    const expected = createHash('sha256').update(prefix).update(value).update(suffix).digest()
    expect(await hsm.digestKey(CKM.SHA256, prefix, key, 32, suffix)).toEqual(expected)
    const bare = createHash('sha256').update(value).digest()
    expect(await hsm.digestKey(CKM.SHA256, Buffer.alloc(0), key, 32)).toEqual(bare)
  })

  test('random bytes are as many as asked and never the same', async () => {
    const [a, b] = [await hsm.random(32), await hsm.random(32)]
    expect(a).toHaveLength(32)
    expect(a.equals(b)).toBe(false)
    expect(await hsm.random(1)).toHaveLength(1)
  })

  test('a token object is found by its id, in more than one piece, and gone when destroyed', async () => {
    const id = randomBytes(16)
    const template = aesTemplate(['wrap', 'unwrap'], { token: true, id, label: 'kek', valueLength: 32 })
    const made = await hsm.generateKey(CKM.AES_KEY_GEN, template)
    const [found, ...more] = await hsm.find({ class: 'secret', id, token: true })
    expect(more).toEqual([])
    if (found === undefined) throw new Error('not found')
    const names = ['label', 'id', 'token', 'wrap', 'unwrap', 'encrypt', 'decrypt', 'modifiable', 'valueLength'] as const
    expect(await hsm.attributes(found, names)).toEqual({
      label: 'kek',
      id,
      token: true,
      wrap: true,
      unwrap: true,
      encrypt: false,
      decrypt: false,
      modifiable: false,
      valueLength: 32,
    })
    await hsm.destroy(made)
    expect(await hsm.find({ class: 'secret', id, token: true })).toEqual([])
    const many = randomBytes(4)
    for (let i = 0; i < 120; i++) await newAes(hsm, ['encrypt'], { id: many })
    const all = await hsm.find({ id: many, token: false })
    expect(new Set(all.map((handle) => handle.value.toString('hex'))).size).toBe(120)
    for (const handle of all) await hsm.destroy(handle)
  })

  test('what a key is not for is refused, whoever asks', async () => {
    const kek = await newAes(hsm, ['wrap', 'unwrap'])
    const call = async () => hsm.encrypt(kek, gcm(randomBytes(12)), Buffer.from('x'))
    await expect(call()).rejects.toBeInstanceOf(HsmRefusal)
    const mac = await hsm.create(macTemplate({ value: randomBytes(32), usages: [] }))
    await expect((async () => hsm.sign(mac, hmac256, Buffer.from('x'), 32))()).rejects.toBeInstanceOf(HsmRefusal)
  })

  test('many callers at once each get their own answer', async () => {
    const keys = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const value = randomBytes(64)
        return { value, key: await hsm.create(macTemplate({ value })) }
      }),
    )
    const one = async (index: number): Promise<boolean> => {
      const { key, value } = keys[index % keys.length] ?? { key: undefined, value: Buffer.alloc(0) }
      if (key === undefined) return false
      await new Promise((resolve) => setImmediate(resolve))
      const message = randomBytes(index % 50)
      const mac = await hsm.sign(key, hmac256, message, 32)
      return mac.equals(createHmac('sha256', value).update(message).digest())
    }
    const results = await Promise.all(Array.from({ length: 400 }, (_, index) => one(index)))
    expect(results.every(Boolean)).toBe(true)
  })
})

test('cheap operations are plain values inline and promises in threads; RSA and pairs are never inline', async () => {
  await using inline = await openHsm({ executor: 'inline' })
  const key = await inline.hsm.create(macTemplate({ value: randomBytes(32) }))
  expect(Buffer.isBuffer(inline.hsm.sign(key, hmac256, Buffer.from('m'), 32))).toBe(true)
  await using threads = await openHsm({ executor: 'threads' })
  const other = await threads.hsm.create(macTemplate({ value: randomBytes(32) }))
  const signing = threads.hsm.sign(other, hmac256, Buffer.from('m'), 32)
  expect(signing).toBeInstanceOf(Promise)
  // A token that is closed meanwhile would refuse it.
  await signing
})

test('a handle of another Hsm is refused, though it is on the same token', async () => {
  await using one = await openHsm()
  await using two = await openHsm()
  const key = await one.hsm.create(macTemplate({ value: randomBytes(32) }))
  expect(() => two.hsm.sign(key, hmac256, Buffer.from('m'), 32)).toThrow('loaded again')
})
