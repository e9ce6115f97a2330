import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { decrypt as decryptWith } from '../../src/engines/transit/ciphers/decrypt.ts'
import { encrypt as encryptWith, readEncryptionInput } from '../../src/engines/transit/ciphers/encrypt.ts'
import type { TransitContext } from '../../src/engines/transit/context.ts'
import { convergenceOfNew, newKey } from '../../src/engines/transit/ring/newkey.ts'
import type { Ring } from '../../src/engines/transit/ring/readring.ts'
import type { Custody } from '../../src/keys/custody.ts'
import type { Kdf } from '../../src/keys/use/derivation.ts'
import { type Place, useCluster } from '../keys/support.ts'

/**
 * Keys as restored from old servers, of convergent versions 1 and 2: no request makes them, so these tests build the
 * ring themselves.
 */
let place: Place
let custody: Custody
let context: TransitContext

useCluster('oldkeys', (cluster) => {
  ;({ place, custody } = cluster)
  context = { ...custody.operations } as TransitContext
})

async function oldRing(convergentVersion: number, kdf: Kdf = 'hkdf_sha256', type = 'aes256-gcm96'): Promise<Ring> {
  const mount = { uuid: '', path: 'transit/', type: 'transit', config: {} }
  const key = {
    ...newKey(mount, { name: 'old', type, derived: true, convergent: convergentVersion > 0 }, 0),
    ...{ id: randomUUID(), namespace: '', rev: 1, epoch: 0, backupInfo: null, restoreInfo: null },
    ...{ convergentVersion, kdf },
  } as Ring['key']
  const part = { exportable: true, createdBy: 'me', derived: true }
  const root = await custody.materials.prepare({ ...part, algorithm: type, part: 'key' })
  const prk = await custody.materials.extract(root, kdf)
  const owner = { mount: '', key: key.id, version: 1 }
  return place.database.transaction(async (tx) => {
    const { id: material } = await custody.materials.insert(tx, root, owner)
    const { id: prkMaterial } = await custody.materials.insert(tx, prk, owner)
    const version = { version: 1, material, prkMaterial, hmacMaterial: null, convergentVersion, createdAt: 0 }
    return { key, versions: new Map([[1, version]]) } as unknown as Ring
  })
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const warnings: string[] = []
beforeEach(() => void warnings.splice(0))
const warn = (text: string) => void warnings.push(text)
type Fields = Record<'plaintext' | 'ciphertext' | 'context' | 'nonce' | 'associated_data', string>
const encrypt = async (ring: Ring, input: Partial<Fields>) =>
  String((await encryptWith({ context, ring, warn }, readEncryptionInput(input))).ciphertext)
const decrypt = async (ring: Ring, input: Partial<Fields>) => decryptWith({ context, ring, warn }, input)
const hello = base64(Buffer.from('hello'))
const ctx = base64(Buffer.from('ctx'))

describe('a key of convergent version 1', () => {
  test('encrypts with the caller’s nonce, which the ciphertext does not hold', async () => {
    const ring = await oldRing(1)
    await fc.assert(
      fc.asyncProperty(
        ...([fc.uint8Array({ maxLength: 100 }), fc.uint8Array({ minLength: 12, maxLength: 12 })] as const),
        async (plaintext, bytes) => {
          const [nonce, given] = [base64(bytes), { plaintext: base64(plaintext), context: ctx }]
          const ciphertext = await encrypt(ring, { ...given, nonce })
          expect(Buffer.from(ciphertext.split(':')[2] ?? '', 'base64')).toHaveLength(plaintext.length + 16)
          expect(await encrypt(ring, { ...given, nonce })).toBe(ciphertext)
          expect((await decrypt(ring, { ciphertext, context: ctx, nonce })).equals(plaintext)).toBe(true)
        },
      ),
      { numRuns: 20 },
    )
    expect(warnings).toEqual([])
  })

  test('decrypts with no other nonce', async () => {
    const ring = await oldRing(1)
    const ciphertext = await encrypt(ring, { plaintext: hello, context: ctx, nonce: base64(Buffer.alloc(12)) })
    const wrong = decrypt(ring, { ciphertext, context: ctx, nonce: base64(Buffer.alloc(12, 1)) })
    await expect(wrong).rejects.toThrow('cipher: message authentication failed')
  })

  const short = 'base64-decoded nonce must be 12 bytes long when using convergent encryption with this key'
  test.each([undefined, '', base64(Buffer.alloc(11)), base64(Buffer.alloc(13))])(
    'refuses the nonce %j',
    async (nonce) => {
      const ring = await oldRing(1)
      const fields = nonce === undefined ? {} : { nonce }
      await expect(encrypt(ring, { plaintext: hello, context: ctx, ...fields })).rejects.toThrow(short)
      const opening = decrypt(ring, { ciphertext: `vault:v1:${base64(Buffer.alloc(21))}`, context: ctx, ...fields })
      await expect(opening).rejects.toThrow(nonce ? short : 'invalid convergent nonce supplied')
    },
  )

  test('reads a ciphertext shorter than a nonce as one that does not fit', async () => {
    const ring = await oldRing(1)
    const nonce = base64(Buffer.alloc(12))
    const opening = decrypt(ring, { ciphertext: 'vault:v1:AAAA', context: ctx, nonce })
    await expect(opening).rejects.toThrow('cipher: message authentication failed')
  })

  test('needs its context nevertheless', async () => {
    const ring = await oldRing(1)
    const sealing = encrypt(ring, { plaintext: hello, nonce: base64(Buffer.alloc(12)) })
    await expect(sealing).rejects.toThrow("missing 'context' for key derivation")
  })
})

describe('a key of convergent version 2', () => {
  test.each<Kdf>(['hkdf_sha256', 'hmac-sha256-counter'])(
    'takes its nonce from the plaintext and the context (%s)',
    async (kdf) => {
      const ring = await oldRing(2, kdf)
      const ciphertext = await encrypt(ring, { plaintext: hello, context: ctx })
      const nonce = createHmac('sha256', 'ctx').update('hello').digest().subarray(0, 12)
      expect(Buffer.from(ciphertext.split(':')[2] ?? '', 'base64').subarray(0, 12)).toEqual(nonce)
      expect(await encrypt(ring, { plaintext: hello, context: ctx })).toBe(ciphertext)
      expect(String(await decrypt(ring, { ciphertext, context: ctx }))).toBe('hello')
    },
  )

  test('ignores a caller’s nonce with a warning', async () => {
    const ring = await oldRing(2)
    const plain = await encrypt(ring, { plaintext: hello, context: ctx })
    expect(await encrypt(ring, { plaintext: hello, context: ctx, nonce: base64(randomBytes(12)) })).toBe(plain)
    expect(warnings).toEqual(['the nonce was not used: this key makes its own'])
  })
})

test.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'])(
  'a key of type %s with the counter KDF encrypts and decrypts',
  async (type) => {
    const ring = await oldRing(0, 'hmac-sha256-counter', type)
    const ciphertext = await encrypt(ring, { plaintext: hello, context: ctx })
    expect(String(await decrypt(ring, { ciphertext, context: ctx }))).toBe('hello')
  },
)

describe('a version that rotation adds', () => {
  test.each([
    [{ convergent: false, convergentVersion: 0, kdf: 'hkdf_sha256' }, 0],
    [{ convergent: true, convergentVersion: -1, kdf: 'hkdf_sha256' }, 3],
    [{ convergent: true, convergentVersion: 2, kdf: 'hkdf_sha256' }, 3],
    [{ convergent: true, convergentVersion: 2, kdf: 'hmac-sha256-counter' }, 2],
    [{ convergent: true, convergentVersion: 1, kdf: 'hkdf_sha256' }, 1],
  ])('to %j is of convergent version %i', (key, version) => {
    expect(convergenceOfNew(key)).toBe(version)
  })
})
