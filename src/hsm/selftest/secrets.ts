import { createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { wrapKey } from '../../crypto/keywrap.ts'
import type { Ability } from '../capabilities.ts'
import { CKK, CKM } from '../constants.ts'
import type { KeyTemplate, Usage } from '../template.ts'
import { type Bench, firstOf } from './bench.ts'

const message = Buffer.from('strongroom self-test')

/** A template of an AES key. @param more attributes, in place of the usual ones */
export const aes = (usages: readonly Usage[], more: Partial<KeyTemplate> = {}): KeyTemplate => ({
  class: 'secret',
  keyType: CKK.AES,
  usages,
  ...more,
})
const secret = (more: Partial<KeyTemplate> = {}): KeyTemplate => ({
  class: 'secret',
  keyType: CKK.GENERIC_SECRET,
  usages: ['sign', 'verify'],
  ...more,
})

/** Whether a key in the token makes the HMAC that node:crypto makes of the value it should have. */
async function sameHmac(bench: Bench, key: Buffer, value: Buffer, type: number, hash: string): Promise<boolean> {
  const expected = createHmac(hash, value).update(message).digest()
  return expected.equals(await bench.run('sign', key, { type }, message, expected.length))
}

/** RFC 5649 section 6: a 192-bit KEK, 20 bytes of key data. */
const vector = {
  kek: Buffer.from('5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8', 'hex'),
  value: Buffer.from('c37b7e6492584340bed12207808941155068f738', 'hex'),
  blob: Buffer.from('138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a', 'hex'),
}

/** The same with a 256-bit KEK, for tokens that take no 192-bit keys; OpenSSL's wrap stands for the RFC. */
function longVector(): Record<keyof typeof vector, Buffer> {
  const kek = randomBytes(32)
  return { kek, value: vector.value, blob: wrapKey(kek, vector.value) }
}

/**
 * The token's mechanism number of RFC 5649: the one that unwraps a known blob to the known key. It is 0x210A on SoftHSM
 * 2.6.1, which is another padding on NSS. Also settles whether C_UnwrapKey takes CKA_MODIFIABLE.
 * @returns undefined when neither number is it
 */
export async function findKwp(bench: Bench): Promise<number | undefined> {
  const ways = [vector, longVector()].flatMap((known) =>
    [CKM.AES_KEY_WRAP_KWP, CKM.AES_KEY_WRAP_PAD].flatMap((kwp) =>
      [true, false].map((modifiableOnUnwrap) => ({ known, kwp, modifiableOnUnwrap })),
    ),
  )
  const way = await firstOf(ways, async ({ known, kwp, modifiableOnUnwrap }) => {
    bench.dialect = { ...bench.dialect, modifiableOnUnwrap }
    const kek = await bench.create(aes(['unwrap'], { value: known.kek }))
    const key = await bench.unwrap(kek, kwp, known.blob, secret())
    // SHA-1, because the vector's 20 bytes are too short a key for SoftHSM's HMAC-SHA-256.
    return sameHmac(bench, key, known.value, CKM.SHA_1_HMAC, 'sha1')
  })
  return way?.kwp
}

/** AES-GCM against node:crypto, with and without plaintext. */
async function gcm(bench: Bench): Promise<boolean> {
  const value = randomBytes(32)
  const key = await bench.create(aes(['encrypt', 'decrypt'], { value }))
  for (const plaintext of [message, Buffer.alloc(0)]) {
    const iv = randomBytes(12)
    const mechanism = { type: CKM.AES_GCM, gcm: { iv, aad: message, tagBits: 128 } }
    const sealed = await bench.run('encrypt', key, mechanism, plaintext)
    const decipher = createDecipheriv('aes-256-gcm', value, iv).setAAD(message).setAuthTag(sealed.subarray(-16))
    if (!decipher.update(sealed.subarray(0, -16)).equals(plaintext)) return false
    decipher.final()
    if (!plaintext.equals(await bench.run('decrypt', key, mechanism, sealed))) return false
  }
  return true
}

/** The code of a forged tag, if the session still decrypts afterwards. */
export async function findForgedTag(bench: Bench): Promise<number | undefined> {
  const key = await bench.generate(CKM.AES_KEY_GEN, aes(['encrypt', 'decrypt'], { valueLength: 32 }))
  const mechanism = { type: CKM.AES_GCM, gcm: { iv: randomBytes(12), tagBits: 128 } }
  const good = await bench.run('encrypt', key, mechanism, message)
  const forged = Buffer.from(good)
  forged.writeUInt8(forged.readUInt8(forged.length - 1) ^ 1, forged.length - 1)
  return bench.run('forge', key, mechanism, forged, good)
}

const hmac = (type: number, hash: string, bytes: number) => async (bench: Bench) => {
  const value = randomBytes(bytes)
  return sameHmac(bench, await bench.create(secret({ value })), value, type, hash)
}

const hmacs = [
  [CKM.SHA_1_HMAC, 'sha1'],
  [CKM.SHA224_HMAC, 'sha224'],
  [CKM.SHA256_HMAC, 'sha256'],
  [CKM.SHA384_HMAC, 'sha384'],
  [CKM.SHA512_HMAC, 'sha512'],
  [CKM.SHA3_224_HMAC, 'sha3-224'],
  [CKM.SHA3_256_HMAC, 'sha3-256'],
  [CKM.SHA3_384_HMAC, 'sha3-384'],
  [CKM.SHA3_512_HMAC, 'sha3-512'],
] as const

/** 16 is the shortest key there is here; the others are lengths of hashes, below which SoftHSM refuses keys. */
const hmacKeyBytes = [16, 20, 28, 32, 48, 64]

/** The shortest key of each HMAC mechanism that the token has. */
export async function findHmacKeys(bench: Bench): Promise<Record<number, number>> {
  const shortest: Record<number, number> = {}
  for (const [type, hash] of hmacs) {
    const bytes = await firstOf(hmacKeyBytes, (length) => hmac(type, hash, length)(bench))
    if (bytes !== undefined) shortest[type] = bytes
    await bench.clear()
  }
  return shortest
}

/** C_DigestKey, as the inner hash of HMAC(0, key) needs it. */
async function digestKey(bench: Bench): Promise<boolean> {
  const value = randomBytes(32)
  const prefix = Buffer.alloc(64, 0x36)
  const key = await bench.create(secret({ value }))
  const digest = await bench.run('digestKey', CKM.SHA256, prefix, key, Buffer.alloc(0), 32)
  return createHash('sha256').update(prefix).update(value).digest().equals(digest)
}

/** An AES key goes through a wrap, comes back as sensitive, and is the same key. */
const wrapAes = (kwp: number) => async (bench: Bench) => {
  const kek = await bench.generate(CKM.AES_KEY_GEN, aes(['wrap', 'unwrap'], { valueLength: 32 }))
  const original = await bench.generate(CKM.AES_KEY_GEN, aes(['encrypt'], { valueLength: 32, extractable: true }))
  const blob = await bench.run('wrap', kek, kwp, original)
  const copy = await bench.unwrap(kek, kwp, blob, aes(['decrypt']))
  const mechanism = { type: CKM.AES_GCM, gcm: { iv: randomBytes(12), tagBits: 128 } }
  const sealed = await bench.run('encrypt', original, mechanism, message)
  return message.equals(await bench.run('decrypt', copy, mechanism, sealed))
}

/**
 * Whether a long secret whose length is not a multiple of 8 comes back as the same HMAC key: one padded with zeros is
 * another key once it is longer than the block.
 */
const wrapExactLength = (kwp: number) => async (bench: Bench) => {
  const value = randomBytes(65)
  const kek = await bench.generate(CKM.AES_KEY_GEN, aes(['wrap', 'unwrap'], { valueLength: 32 }))
  const blob = await bench.run('wrap', kek, kwp, await bench.create(secret({ value, extractable: true })))
  return sameHmac(bench, await bench.unwrap(kek, kwp, blob, secret()), value, CKM.SHA256_HMAC, 'sha256')
}

/** The longest generic secret, of those that HMAC keys come in, that survives wrapping. */
export async function findMaxSecretBytes(bench: Bench, kwp: number): Promise<number> {
  const kek = await bench.generate(CKM.AES_KEY_GEN, aes(['wrap', 'unwrap'], { valueLength: 32 }))
  const longest = await firstOf([512, 256, 128, 64, 32], async (bytes) => {
    const value = randomBytes(bytes)
    const blob = await bench.run('wrap', kek, kwp, await bench.create(secret({ value, extractable: true })))
    return sameHmac(bench, await bench.unwrap(kek, kwp, blob, secret()), value, CKM.SHA256_HMAC, 'sha256')
  })
  return longest ?? 0
}

/** Whether a private data object can be kept in the token; it is removed at once. */
async function dataObject(bench: Bench): Promise<boolean> {
  await bench.create({ class: 'data', label: 'strongroom self-test', token: true, usages: [], value: message })
  return true
}

/** Settles which attributes a token object takes; it is removed at once. */
export async function learnTokenObjects(bench: Bench): Promise<void> {
  const template = aes(['wrap', 'unwrap'], { valueLength: 32, token: true, label: 'strongroom self-test' })
  const copyable = await firstOf([true, false], async (copyableOnToken) => {
    bench.dialect = { ...bench.dialect, copyableOnToken }
    await bench.generate(CKM.AES_KEY_GEN, template)
    return true
  })
  if (copyable === undefined) throw new Error('the token takes no AES key as a token object')
}

/** A probe for each thing that secret keys are used for. */
export const secretProbes = (kwp: number): readonly (readonly [Ability, (bench: Bench) => Promise<boolean>])[] => [
  ['aes-gcm', gcm],
  ['hmac-sha256', hmac(CKM.SHA256_HMAC, 'sha256', 64)],
  ['digest-key', digestKey],
  ['wrap-aes', wrapAes(kwp)],
  ['wrap-exact-length', wrapExactLength(kwp)],
  ['data-object', dataObject],
]
