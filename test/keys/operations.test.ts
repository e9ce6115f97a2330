import { execFileSync } from 'node:child_process'
import { createDecipheriv, createHash, createHmac, verify as nodeVerify } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Hash, hashes } from '../../src/crypto/hashes.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { Scheme } from '../../src/keys/algorithms/signature.ts'
import { Custody } from '../../src/keys/custody.ts'
import { Keks } from '../../src/keys/kek/keks.ts'
import { withSecret } from '../../src/keys/making/secret.ts'
import { describe as describeRow, type Material } from '../../src/keys/material.ts'
import { verify } from '../../src/keys/use/verify.ts'
import { makeKey, nobody, options, type Place, useCluster } from './support.ts'

let hsm: Hsm
let place: Place
let custody: Custody
const made = new Map<string, Material>()

useCluster('operations', (cluster) => {
  ;({ hsm, place, custody } = cluster)
})

const key = async (algorithm: string): Promise<Material> => {
  const material = made.get(algorithm) ?? (await makeKey(custody, place.database, algorithm))
  made.set(algorithm, material)
  return material
}

const hash = (name: string) => {
  const row = hashes.get(name)
  if (row === undefined) throw new Error(name)
  return row
}

const scheme = (more: Partial<Scheme> = {}): Scheme => ({
  ...{ hash: hash('sha2-256'), prehashed: false, padding: 'pss', saltLength: 'auto', marshaling: 'asn1' },
  ...more,
})

describe.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'])('%s', (algorithm) => {
  it('decrypt undoes encrypt for every plaintext and associated data', async () => {
    const material = await key(algorithm)
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 300 }),
        fc.option(fc.uint8Array({ maxLength: 50 }), { nil: undefined }),
        async (plaintext, aad) => {
          const { iv, sealed } = await custody.operations.cipher.encrypt(material, { plaintext, aad })
          expect(sealed).toHaveLength(plaintext.length + 16)
          expect(
            Buffer.from(plaintext).equals(await custody.operations.cipher.decrypt(material, { iv, sealed, aad })),
          ).toBe(true)
        },
      ),
      { numRuns: 40 },
    )
  })

  it('whatever is wrong with a ciphertext reads the same', async () => {
    const material = await key(algorithm)
    const { iv, sealed } = await custody.operations.cipher.encrypt(material, {
      plaintext: Buffer.from('hello'),
      aad: undefined,
    })
    const flipped = Buffer.from(sealed)
    flipped[0] = (flipped[0] ?? 0) ^ 1
    const wrong = [
      { iv, sealed: flipped },
      { iv, sealed, aad: Buffer.from('other') },
      { iv: Buffer.alloc(12), sealed },
      { iv, sealed: sealed.subarray(0, 10) },
      { iv: iv.subarray(0, 8), sealed },
      { iv, sealed: Buffer.alloc(0) },
    ]
    for (const input of wrong) {
      const failing = async () => custody.operations.cipher.decrypt(material, input)
      await expect(failing()).rejects.toMatchObject({
        status: 400,
        messages: [material.algorithm.aead?.failure],
      })
    }
  })

  it('no IV comes twice', async () => {
    const material = await key(algorithm)
    const ivs = new Set<string>()
    for (let count = 0; count < 1100; count += 1) {
      const { iv } = await custody.operations.cipher.encrypt(material, { plaintext: Buffer.from('x') })
      ivs.add(Buffer.from(iv).toString('hex'))
    }
    expect(ivs.size).toBe(1100)
  })
})

it('a hot encryption and a hot MAC are synchronous under the inline executor', async () => {
  const [cipher, secret] = [await key('aes256-gcm96'), await key('hmac')]
  await custody.operations.cipher.encrypt(cipher, { plaintext: Buffer.from('x') })
  await custody.operations.hmacs.mac(secret, hash('sha2-256'), Buffer.from('x'))
  expect(custody.operations.cipher.encrypt(cipher, { plaintext: Buffer.from('x') })).not.toBeInstanceOf(Promise)
  expect(custody.operations.hmacs.mac(secret, hash('sha2-256'), Buffer.from('x'))).toBeInstanceOf(Buffer)
})

describe('signatures', () => {
  const digests = [...hashes.values()]

  it.each(['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521'])(
    '%s verify under node:crypto for every hash',
    async (algorithm) => {
      const material = await key(algorithm)
      for (const one of digests) {
        const input = Buffer.from(`input ${one.name}`)
        const der = await custody.operations.signer.sign(material, input, scheme({ hash: one }))
        expect(nodeVerify(one.node, input, material.publicKey, der)).toBe(true)
        expect(verify(material, input, der, scheme({ hash: one }))).toBe(true)
        expect(verify(material, Buffer.from('other'), der, scheme({ hash: one }))).toBe(false)

        const prehashed = scheme({ hash: one, prehashed: true, marshaling: 'jws' })
        const bare = await custody.operations.signer.sign(
          material,
          createHash(one.node).update(input).digest(),
          prehashed,
        )
        expect(nodeVerify(one.node, input, { key: material.publicKey, dsaEncoding: 'ieee-p1363' }, bare)).toBe(true)
        expect(verify(material, input, bare, scheme({ hash: one, marshaling: 'jws' }))).toBe(true)
      }
    },
  )

  it('ECDSA takes a digest of any length, none included', async () => {
    for (const algorithm of ['ecdsa-p256', 'ecdsa-p521']) {
      const material = await key(algorithm)
      for (const length of [0, 1, 20, 32, 33, 64, 65, 66, 67, 100]) {
        const input = Buffer.alloc(length, 0xa5)
        const signature = await custody.operations.signer.sign(material, input, scheme({ prehashed: true }))
        expect(verify(material, input, signature, scheme({ prehashed: true }))).toBe(true)
        expect(verify(material, Buffer.alloc(length + 1, 0x5a), signature, scheme({ prehashed: true }))).toBe(false)
      }
    }
  })

  it('rsa-2048 verify under node:crypto for every hash, padding and salt', async () => {
    const material = await key('rsa-2048')
    for (const one of digests) {
      const input = Buffer.from(one.name)
      const pkcs1 = scheme({ hash: one, padding: 'pkcs1v15' })
      const signature = await custody.operations.signer.sign(material, input, pkcs1)
      expect(nodeVerify(one.node, input, material.publicKey, signature)).toBe(true)
      expect(verify(material, input, signature, pkcs1)).toBe(true)
      expect(verify(material, Buffer.from('x'), signature, pkcs1)).toBe(false)
      for (const saltLength of ['auto', 'hash', 0, 17] as const) {
        const pss = scheme({ hash: one, saltLength })
        const signed = await custody.operations.signer.sign(material, input, pss)
        const length = saltLength === 'auto' ? 256 - one.bytes - 2 : saltLength === 'hash' ? one.bytes : saltLength
        expect(nodeVerify(one.node, input, { key: material.publicKey, padding: 6, saltLength: length }, signed)).toBe(
          true,
        )
        expect(verify(material, input, signed, pss)).toBe(true)
        expect(verify(material, input, signed, scheme({ hash: one }))).toBe(true)
        expect(verify(material, input, signed, scheme({ hash: one, saltLength: 3 }))).toBe(false)
      }
    }
  }, 60_000)

  it('RSA without a hash signs the bytes as they are, as far as they fit', async () => {
    const material = await key('rsa-2048')
    const bare = scheme({ hash: undefined, prehashed: true, padding: 'pkcs1v15' })
    const signature = await custody.operations.signer.sign(material, Buffer.from('anything'), bare)
    expect(verify(material, Buffer.from('anything'), signature, bare)).toBe(true)
    expect(verify(material, Buffer.from('anything else'), signature, bare)).toBe(false)
    await expect(async () => custody.operations.signer.sign(material, Buffer.alloc(246), bare)).rejects.toThrow(
      'too long',
    )
  })

  it('RSA names what does not fit: the digest, the salt', async () => {
    const material = await key('rsa-2048')
    const sign = (input: Buffer, more: Partial<Scheme>) => async () =>
      custody.operations.signer.sign(material, input, scheme(more))
    await expect(sign(Buffer.alloc(31), { prehashed: true })).rejects.toThrow('hashed with given hash')
    await expect(sign(Buffer.from('x'), { saltLength: 9999 })).rejects.toThrow('requested salt length 9999 is invalid')
  })

  it('ed25519 verify under node:crypto and the openssl command', async () => {
    const material = await key('ed25519')
    expect(material.row.residence).toBe('enveloped')
    const input = Buffer.from('hello')
    const signature = await custody.operations.signer.sign(material, input, scheme())
    expect(nodeVerify(null, input, material.publicKey, signature)).toBe(true)
    expect(verify(material, input, signature, scheme())).toBe(true)
    expect(verify(material, Buffer.from('hullo'), signature, scheme())).toBe(false)
    openssl(material, input, signature, ['-rawin'])
  })

  it('ecdsa and rsa verify under the openssl command', async () => {
    const input = Buffer.from('hello')
    for (const [algorithm, flags] of [
      ['ecdsa-p384', []],
      ['rsa-2048', ['-pkeyopt', 'rsa_padding_mode:pss', '-pkeyopt', 'rsa_pss_saltlen:auto']],
    ] as const) {
      const material = await key(algorithm)
      const signature = await custody.operations.signer.sign(material, input, scheme())
      openssl(material, input, signature, ['-rawin', '-digest', 'sha256', ...flags])
    }
  })

  it('a key that cannot sign or encrypt says so', async () => {
    const [cipher, signer] = [await key('aes256-gcm96'), await key('ecdsa-p256')]
    expect(() => custody.operations.signer.sign(cipher, Buffer.from('x'), scheme())).toThrow(
      'aes256-gcm96 does not support signing',
    )
    expect(() => custody.operations.cipher.encrypt(signer, { plaintext: Buffer.from('x') })).toThrow(
      'not supported for key type',
    )
  })

  function openssl(material: Material, input: Buffer, signature: Buffer, flags: readonly string[]): void {
    const directory = mkdtempSync(join(tmpdir(), 'sr-openssl-'))
    const [pem, data, sig] = ['key.pem', 'data', 'sig'].map((name) => join(directory, name)) as [string, string, string]
    writeFileSync(pem, material.publicKey.export({ format: 'pem', type: 'spki' }))
    writeFileSync(data, input)
    writeFileSync(sig, signature)
    const said = execFileSync('openssl', [
      'pkeyutl',
      '-verify',
      '-pubin',
      '-inkey',
      pem,
      '-in',
      data,
      '-sigfile',
      sig,
      ...flags,
    ])
    expect(said.toString()).toContain('Verified Successfully')
  }
})

/** As Transit makes them: in the token, or with a secret that is opened. */
async function hmacOf({ id }: Material, one: Hash, input: Buffer): Promise<Buffer> {
  const { hmacs } = custody.operations
  const material = await custody.materials.fetch(id)
  return hmacs.native(material, one) ? hmacs.mac(material, one, input) : hmacs.macOpened(material, one, input, nobody)
}

describe('HMAC', () => {
  it('is node:crypto’s for every hash and every length from 16 to 512', async () => {
    const keks = new Keks(hsm, place.database, false)
    const input = Buffer.from('input')
    for (let sizeBytes = 16; sizeBytes <= 512; sizeBytes += sizeBytes < 140 ? 1 : 31) {
      const material = await makeKey(custody, place.database, 'hmac', { sizeBytes, exportable: true })
      const { kek, blob } = material.row
      if (kek === null || blob === null) throw new Error('no blob')
      const secret = await withSecret(hsm, await keks.get(kek), blob, (opened) =>
        Buffer.from(opened.subarray(0, sizeBytes)),
      )
      for (const one of hashes.values()) {
        const expected = createHmac(one.node, secret).update(input).digest()
        expect({
          sizeBytes,
          hash: one.name,
          mac: (await hmacOf(material, one, input)).toString('hex'),
        }).toEqual({ sizeBytes, hash: one.name, mac: expected.toString('hex') })
      }
    }
  }, 60_000)

  it('sizes out of range are refused', async () => {
    for (const sizeBytes of [15, 513]) {
      await expect(makeKey(custody, place.database, 'hmac', { sizeBytes })).rejects.toThrow('invalid key_size')
    }
  })

  it('the empty input has a MAC', async () => {
    expect(await custody.operations.hmacs.mac(await key('hmac'), hash('sha2-256'), Buffer.alloc(0))).toHaveLength(32)
  })
})

it('random comes from the host, the token, or both', async () => {
  for (const source of ['platform', 'seal', 'all'] as const) {
    const [one, two] = [await custody.operations.random(source, 100), await custody.operations.random(source, 100)]
    expect(one).toHaveLength(100)
    expect(one.equals(two)).toBe(false)
  }
})

it('history tells what the token said at creation', async () => {
  expect(describeRow((await key('aes256-gcm96')).row)).toMatchObject({
    ...{ residence: 'wrapped', local: true, always_sensitive: true, never_extractable: false, ever_plaintext: false },
    ...{ origin: 'generated', created_by: 'me', state: 'active', fingerprint: null },
  })
  expect(describeRow((await key('ecdsa-p256')).row)).toMatchObject({
    local: true,
    always_sensitive: true,
    ever_plaintext: false,
  })
  expect(describeRow((await key('ed25519')).row)).toMatchObject({ residence: 'enveloped', ever_plaintext: true })
  expect(describeRow((await key('hmac')).row)).toMatchObject({
    residence: 'wrapped',
    local: true,
    always_sensitive: true,
    ever_plaintext: false,
  })
  const { row, publicKey } = await key('ecdsa-p256')
  const spki = publicKey.export({ format: 'der', type: 'spki' })
  expect(row.fingerprint?.toString('hex')).toBe(createHash('sha256').update(spki).digest('hex'))
})

it('the handle cache stays within its limit and every key still works', async () => {
  const small = await Custody.open(options(hsm, place.database, { handleLimit: 3 }))
  const materials = await Promise.all(Array.from({ length: 8 }, () => makeKey(custody, place.database, 'aes256-gcm96')))
  const sealed = await Promise.all(
    materials.map((one) => small.operations.cipher.encrypt(one, { plaintext: Buffer.from(one.id) })),
  )
  expect(small.objects.handles.size).toBeLessThanOrEqual(3)
  for (const [index, one] of materials.entries()) {
    const input = sealed[index]
    if (input === undefined) throw new Error('lost')
    expect((await custody.operations.cipher.decrypt(one, input)).toString()).toBe(one.id)
  }
  small.close()
})

it('a hundred uses at once of a key that is not loaded unwrap it once', async () => {
  const fresh = await Custody.open(options(hsm, place.database))
  const material = await makeKey(custody, place.database, 'aes256-gcm96')
  const before = (await hsm.find({ class: 'secret', token: false })).length
  const use = async () => fresh.operations.cipher.encrypt(material, { plaintext: Buffer.from('x') })
  await Promise.all(Array.from({ length: 100 }, use))
  expect((await hsm.find({ class: 'secret', token: false })).length).toBe(before + 1)
  fresh.close()
})

it('plaintext under a key opened by OpenSSL from its bytes is the same AES-GCM', async () => {
  const material = await makeKey(custody, place.database, 'aes256-gcm96', { exportable: true })
  const keks = new Keks(hsm, place.database, false)
  const { iv, sealed } = await custody.operations.cipher.encrypt(material, {
    plaintext: Buffer.from('hello'),
    aad: Buffer.from('aad'),
  })
  const { kek, blob } = material.row
  if (kek === null || blob === null) throw new Error('no blob')
  const opened = await withSecret(hsm, await keks.get(kek), blob, (secret) => {
    const decipher = createDecipheriv('aes-256-gcm', secret, iv)
    decipher.setAAD(Buffer.from('aad'))
    decipher.setAuthTag(sealed.subarray(-16))
    return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]).toString()
  })
  expect(opened).toBe('hello')
})
