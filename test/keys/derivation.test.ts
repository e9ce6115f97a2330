import { createHmac, hkdfSync, randomBytes, randomUUID, verify } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { Aead } from '../../src/keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../src/keys/algorithms.ts'
import type { Custody } from '../../src/keys/custody.ts'
import { Keks } from '../../src/keys/kek/keks.ts'
import { withSecret, wrapSecret } from '../../src/keys/making/secret.ts'
import type { Material } from '../../src/keys/material.ts'
import type { Draft, Specification } from '../../src/keys/materials/draft.ts'
import { Derivation, type Kdf, type Source } from '../../src/keys/use/derivation.ts'
import type { Convergence } from '../../src/keys/use/derived.ts'
import { createTestedToken } from '../support/template/keys.ts'
import type { TestToken } from '../support/token.ts'
import { openCluster, openHsm, Place, reopen } from './support.ts'

let token: TestToken
let hsm: Hsm
let place: Place
let custody: Custody
let derivation: Derivation

beforeAll(async () => {
  token = await createTestedToken('derivation')
  hsm = await openHsm(token)
  place = await Place.fresh()
  custody = await openCluster(hsm, place)
  derivation = new Derivation({ hsm, handles: custody.objects.handles, strict: false })
}, 60_000)

afterAll(async () => {
  custody.close()
  await place[Symbol.asyncDispose]()
  await hsm[Symbol.asyncDispose]()
})

const specification = (algorithm: string, more: Partial<Specification> = {}): Specification => ({
  ...{ algorithm, exportable: false, part: 'key', derived: true, createdBy: 'me' },
  ...more,
})

/** A root whose bytes the test knows: made, then its blob replaced by one of those bytes under the same KEK. */
async function knownRoot(algorithm: string, secret: Uint8Array, more: Partial<Specification> = {}): Promise<Draft> {
  const draft = await custody.materials.prepare(specification(algorithm, more))
  const kek = await new Keks(hsm, place.database, false).get(draft.fields.kek ?? '')
  return { ...draft, fields: { ...draft.fields, blob: await wrapSecret(hsm, kek, secret) } }
}

interface Stored extends Source {
  readonly root: Material
}

async function stored(draft: Draft, kdf: Kdf = 'hkdf_sha256'): Promise<Stored> {
  const extracted = await custody.materials.extract(draft, kdf)
  const owner = { mount: '', key: randomUUID(), version: 1 }
  const [root, prk] = await place.database.transaction(async (tx) => [
    await custody.materials.insert(tx, draft, owner),
    await custody.materials.insert(tx, extracted, owner),
  ])
  return { root: await custody.materials.fetch(root.id), prk: await custody.materials.fetch(prk.id), kdf }
}

const derive = async (source: Source, context: Uint8Array, bytes: 32 | 64): Promise<Buffer> =>
  derivation.lend(source, context, bytes, (key) => Buffer.from(key))

const hkdf = (key: Uint8Array, context: Uint8Array, bytes: number): Buffer =>
  Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), context, bytes))

const aead = (name: string): Aead => algorithmOf(name).aead as Aead

/** 00 01 02 … 1f and the rest of the wire document's vectors (B10). */
const sequence = Buffer.from(Array.from({ length: 32 }, (_, index) => index))
const ctx = Buffer.from('ctx')
const hello = Buffer.from('hello')
const vectors = [
  {
    algorithm: 'aes256-gcm96',
    okm: '08f959277c527020901da82beafed559872e8b0b770de26673f4b41ce55e38854df200443872b49a79764812a57c64e4fbb55e5c3bf025ce5b0ee546ae433980',
    nonce: '9562925dd99b55245fbe78ce',
    payload: 'lWKSXdmbVSRfvnjOQq3bSZxF/6PpMLWQhccjS5lezPYT',
  },
  {
    algorithm: 'aes128-gcm96',
    okm: 'b619465888505574e05675193a546fa289c34c1794b25201c72dfecd5bc4647ddbde3e5b954bd51a6d2ef0ea8884bb37',
    nonce: 'fe5b99bac382e1a4a64361da',
    payload: '/luZusOC4aSmQ2HaRH71vSmXQwMAJO+4nyhwxfJfE2Ni',
  },
]

describe.each(vectors)('the reference’s bytes for $algorithm', ({ algorithm, okm, nonce, payload }) => {
  it('come out of HKDF, convergent nonce and cipher', async () => {
    const source = await stored(await knownRoot(algorithm, sequence.subarray(0, aead(algorithm).secretBytes)))
    const bytes = await derive(source, ctx, 64)
    expect(bytes.toString('hex').startsWith(okm)).toBe(true)
    const plain = { plaintext: hello, context: ctx, convergence: 3 } as const
    const { iv, sealed } = await custody.operations.derived.encrypt(source.root.id, source, aead(algorithm), plain)
    expect(Buffer.from(iv).toString('hex')).toBe(nonce)
    expect(Buffer.concat([iv, sealed]).toString('base64')).toBe(payload)
    expect(await custody.operations.derived.decrypt(source, aead(algorithm), ctx, { iv, sealed })).toEqual(hello)
  })
})

describe('HKDF', () => {
  it.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'])(
    'of %s gives what RFC 5869 gives, for every key and context',
    async (algorithm) => {
      const secret = randomBytes(aead(algorithm).secretBytes)
      const source = await stored(await knownRoot(algorithm, secret))
      await fc.assert(
        fc.asyncProperty(
          fc.uint8Array({ minLength: 1, maxLength: 2000 }),
          fc.constantFrom<32 | 64>(32, 64),
          async (context, bytes) => {
            expect(await derive(source, context, bytes)).toEqual(hkdf(secret, context, bytes))
          },
        ),
        { numRuns: 30 },
      )
    },
  )

  it.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'])(
    'of a key of type %s never shows the root, which is born in the token and stays there',
    async (algorithm) => {
      const draft = await custody.materials.prepare(specification(algorithm))
      const keks = new Keks(hsm, place.database, false)
      expect((await keks.get(draft.fields.kek ?? '')).row.purpose).toBe('use')
      const extracted = await custody.materials.extract(draft, 'hkdf_sha256')
      expect(draft.fields).toMatchObject({ residence: 'wrapped', everPlaintext: false, local: true })
      expect(extracted.fields).toMatchObject({
        ...{
          part: 'prk',
          algorithm: 'hmac',
          sizeBytes: 32,
          residence: 'wrapped',
          exportable: false,
          everPlaintext: true,
        },
      })
    },
  )

  it('keeps the extracted key under the use KEK, also of an exportable root', async () => {
    const draft = await custody.materials.prepare(specification('aes256-gcm96', { exportable: true }))
    const { fields } = await custody.materials.extract(draft, 'hkdf_sha256')
    const keks = new Keks(hsm, place.database, false)
    const kek = await keks.get(fields.kek ?? '')
    expect(kek.row.purpose).toBe('use')
    await expect(withSecret(hsm, kek, fields.blob ?? Buffer.alloc(0), () => 0)).rejects.toThrow('never opened')
  })

  it('wipes what it lent, whether the work succeeds or not', async () => {
    const source = await stored(await custody.materials.prepare(specification('aes256-gcm96')))
    const lent: Buffer[] = []
    await derivation.lend(source, ctx, 64, (key) => void lent.push(key))
    const failing = async () =>
      derivation.lend(source, ctx, 32, (key) => {
        lent.push(key)
        throw new Error('work failed')
      })
    await expect(failing()).rejects.toThrow('work failed')
    expect(lent.map((key) => key.every((byte) => byte === 0))).toEqual([true, true])
  })
})

/** SP 800-108 as the reference has it: 32-bit counter from 0, the context, the length in bits. */
const counterKdf = (key: Uint8Array, context: Uint8Array): Buffer =>
  createHmac('sha256', key)
    .update(Buffer.alloc(4))
    .update(context)
    .update(Buffer.from([0, 0, 1, 0]))
    .digest()

describe('the counter KDF of old keys', () => {
  it.each([
    ['aes256-gcm96', 32, false],
    ['aes256-gcm96', 32, true],
    ['chacha20-poly1305', 32, false],
    ['aes128-gcm96', 16, true],
  ])('of %s uses the root as an HMAC key', async (algorithm, bytes, exportable) => {
    const secret = randomBytes(bytes)
    const source = await stored(await knownRoot(algorithm, secret, { exportable }), 'hmac-sha256-counter')
    for (const context of [ctx, randomBytes(500)]) {
      expect(await derive(source, context, 32)).toEqual(counterKdf(secret, context))
    }
    await expect((async () => derive(source, ctx, 64))()).rejects.toThrow('could not derive key')
  })

  it('of a root that the token copied keeps the root’s history', async () => {
    const draft = await custody.materials.prepare(specification('aes256-gcm96'))
    const { fields } = await custody.materials.extract(draft, 'hmac-sha256-counter')
    expect(fields).toMatchObject({ everPlaintext: false, alwaysSensitive: true, part: 'prk' })
  })

  it('of a root of 128 bits that may not leave is refused, with the reason', async () => {
    const draft = await custody.materials.prepare(specification('aes128-gcm96'))
    await expect(custody.materials.extract(draft, 'hmac-sha256-counter')).rejects.toThrow(
      'a key of 128 bits with the counter KDF must be exportable',
    )
  })
})

describe('derived Ed25519 keys', () => {
  it('have the HKDF of seed and public key as their seed', async () => {
    const draft = await custody.materials.prepare(specification('ed25519'))
    const kek = await new Keks(hsm, place.database, false).get(draft.fields.kek ?? '')
    const pair = await withSecret(hsm, kek, draft.fields.blob ?? Buffer.alloc(0), (seed) =>
      Buffer.concat([seed.subarray(0, 32), draft.fields.publicKey?.subarray(-32) ?? Buffer.alloc(0)]),
    )
    const source = await stored(draft)
    expect(await derive(source, ctx, 32)).toEqual(hkdf(pair, ctx, 32))
    const { signature, point } = await custody.operations.derived.sign(source, ctx, hello)
    const key = { key: { kty: 'OKP', crv: 'Ed25519', x: point.toString('base64url') }, format: 'jwk' } as const
    expect(verify(null, hello, key as never, signature)).toBe(true)
    expect(await custody.operations.derived.publicKey(source, ctx)).toEqual(point)
    expect(await custody.operations.derived.verify(source, ctx, hello, signature)).toBe(true)
    expect(await custody.operations.derived.verify(source, hello, hello, signature)).toBe(false)
    expect((await custody.operations.derived.sign(source, ctx, hello)).signature).toEqual(signature)
  })
})

describe.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'])('derived %s', (algorithm) => {
  const anyBytes = fc.uint8Array({ maxLength: 200 })
  const context = fc.uint8Array({ minLength: 1, maxLength: 100 })

  it('decrypts what it encrypted, under every way of convergence, and under no other context', async () => {
    const source = await stored(await custody.materials.prepare(specification(algorithm)))
    await fc.assert(
      fc.asyncProperty(
        ...([anyBytes, anyBytes, context, fc.constantFrom<Convergence>(0, 1, 2, 3)] as const),
        async (plaintext, aad, context, convergence) => {
          const given = { plaintext, aad, context, convergence, iv: convergence === 1 ? randomBytes(12) : undefined }
          const { iv, sealed } = await custody.operations.derived.encrypt(
            source.root.id,
            source,
            aead(algorithm),
            given,
          )
          const opened = await custody.operations.derived.decrypt(source, aead(algorithm), context, { iv, sealed, aad })
          expect(opened.equals(plaintext)).toBe(true)
          const other = Buffer.concat([context, Buffer.from('x')])
          const wrong = async () =>
            custody.operations.derived.decrypt(source, aead(algorithm), other, { iv, sealed, aad })
          await expect(wrong()).rejects.toThrow(aead(algorithm).failure)
        },
      ),
      { numRuns: 25 },
    )
  })

  it('is convergent in plaintext and context together, and random otherwise', async () => {
    const source = await stored(await custody.materials.prepare(specification(algorithm)))
    const seal = async (plaintext: Uint8Array, context: Uint8Array, convergence: Convergence) => {
      const plain = { plaintext, context, convergence }
      const { iv, sealed } = await custody.operations.derived.encrypt(source.root.id, source, aead(algorithm), plain)
      return Buffer.concat([iv, sealed]).toString('hex')
    }
    await fc.assert(
      fc.asyncProperty(anyBytes, anyBytes, context, context, async (a, b, c, d) => {
        for (const convergence of [2, 3] as const) {
          const same = Buffer.from(a).equals(b) && Buffer.from(c).equals(d)
          expect((await seal(a, c, convergence)) === (await seal(b, d, convergence))).toBe(same)
          expect(await seal(a, c, convergence)).toBe(await seal(a, c, convergence))
        }
        expect(await seal(a, c, 0)).not.toBe(await seal(a, c, 0))
      }),
      { numRuns: 15 },
    )
  })
})

describe('convergent version 2', () => {
  it('takes its nonce from an HMAC of the plaintext under the context', async () => {
    const source = await stored(await custody.materials.prepare(specification('aes256-gcm96')))
    const plain = { plaintext: hello, context: ctx, convergence: 2 } as const
    const { iv } = await custody.operations.derived.encrypt(source.root.id, source, aead('aes256-gcm96'), plain)
    expect(Buffer.from(iv)).toEqual(createHmac('sha256', ctx).update(hello).digest().subarray(0, 12))
  })
})

it('under the threads executor gives the same bytes, and wipes them too', async () => {
  const source = await stored(await custody.materials.prepare(specification('aes256-gcm96')))
  await using threaded = await openHsm(token, 'threads')
  await using second = await Place.at(place.url)
  const other = await reopen(threaded, second)
  const elsewhere = new Derivation({ hsm: threaded, handles: other.objects.handles, strict: false })
  const lent: Buffer[] = []
  const bytes = await elsewhere.lend(source, ctx, 64, async (key) => {
    lent.push(key)
    return Buffer.from(key)
  })
  expect(bytes).toEqual(await derive(source, ctx, 64))
  expect(lent).toEqual([Buffer.alloc(64)])
  other.close()
})

describe('strict mode', () => {
  it('uses no derived key, not even one that was made before', async () => {
    const source = await stored(await custody.materials.prepare(specification('aes256-gcm96')))
    const strict = new Derivation({ hsm, handles: custody.objects.handles, strict: true })
    expect(() => strict.lend(source, ctx, 32, () => 0)).toThrow(
      "strict mode: derived keys would be in the server's memory, since the HSM lacks CKM_HKDF_DERIVE with info",
    )
  })
})
