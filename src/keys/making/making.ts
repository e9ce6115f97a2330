import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { badRequest } from '../../errors.ts'
import { CKK } from '../../hsm/constants.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import { type Aead, type Algorithm, type Ec, type Ed25519, type Hmac, publicExponent, type Rsa } from '../algorithms.ts'
import type { Kek } from '../kek/keks.ts'
import { readPublicKey } from '../publickey.ts'
import { pad, paddedBytes } from './padding.ts'
import { wrapSecret } from './secret.ts'

/** A key as it was made: what its row says of it. Nothing of it is left in the token, unless it lives there. */
export interface Made {
  /** Wrapped by the KEK that was given; undefined for a token object. */
  readonly blob: Buffer | undefined
  readonly publicKey: KeyObject | undefined
  readonly history: History
}

/** The token's attributes at creation; an unwrapped object shows none of them. */
export interface History {
  readonly local: boolean
  readonly neverExtractable: boolean
  readonly alwaysSensitive: boolean
  /** Whether it ever was in clear outside the token. */
  readonly everPlaintext: boolean
}

type Pair = Ec | Rsa | Ed25519

/** A key that was in memory while it was made, however briefly. */
export const seen: History = { local: false, neverExtractable: false, alwaysSensitive: false, everPlaintext: true }

/** Private and public template of a pair; the private key's is also what it is unwrapped as. */
export function privateTemplate(algorithm: Pair): KeyTemplate {
  return { class: 'private', keyType: algorithm.keyType, usages: algorithm.usages }
}

const publicTemplate = (algorithm: Pair): KeyTemplate => ({
  class: 'public',
  keyType: algorithm.keyType,
  usages: [],
  ...(algorithm.kind === 'rsa'
    ? { modulusBits: algorithm.modulusBits, publicExponent }
    : { ecParameters: algorithm.ecParameters }),
})

/** A secret key born in the token, wrapped there; an HMAC secret under 64 bytes is filled up in memory instead. */
export async function makeSecret(hsm: Hsm, algorithm: Aead | Hmac, sizeBytes: number, kek: Kek): Promise<Made> {
  if (algorithm.kind === 'hmac' && sizeBytes < paddedBytes) return makePadded(hsm, sizeBytes, kek)
  if (algorithm.keyType === CKK.GENERIC_SECRET && sizeBytes > hsm.capabilities.maxSecretBytes) {
    throw badRequest(
      `the HSM holds secrets of ${hsm.capabilities.maxSecretBytes} bytes at most, asked for ${sizeBytes}`,
    )
  }
  const key = await hsm.generateKey(algorithm.generation, {
    class: 'secret',
    keyType: algorithm.keyType,
    valueLength: sizeBytes,
    extractable: true,
    usages: algorithm.usages,
  })
  try {
    return { blob: await kek.wrap(key), publicKey: undefined, history: await historyOf(hsm, key) }
  } finally {
    await hsm.destroy(key)
  }
}

/** The secret's one moment in memory: token randomness, filled with zeros, put into the token, wiped. */
async function makePadded(hsm: Hsm, sizeBytes: number, kek: Kek): Promise<Made> {
  const secret = await hsm.random(sizeBytes)
  const padded = pad(secret)
  try {
    return { blob: await wrapSecret(hsm, kek, padded), publicKey: undefined, history: seen }
  } finally {
    secret.fill(0)
    padded.fill(0)
  }
}

/** A pair born in the token, its private key extractable only to be wrapped, wrapped there. */
export async function makePair(hsm: Hsm, algorithm: Pair, kek: Kek): Promise<Made> {
  return withPair(hsm, algorithm, { ...privateTemplate(algorithm), extractable: true }, async (key, publicKey) => ({
    blob: await kek.wrap(key),
    publicKey,
    history: await historyOf(hsm, key),
  }))
}

/** A pair that the token makes and cannot wrap: its seed is read, put back as a generic secret, wrapped, wiped. */
export async function makeSeed(hsm: Hsm, algorithm: Ed25519, kek: Kek): Promise<Made> {
  if (!hsm.capabilities.supports(algorithm.using)) return makeSeedOnHost(hsm, kek)
  const template = { ...privateTemplate(algorithm), sensitive: false, extractable: true }
  return withPair(hsm, algorithm, template, async (key, publicKey) => {
    const { value: seed } = await hsm.attributes(key, ['value'])
    if (seed === undefined) throw new Error('the token does not show the seed of a key made readable')
    try {
      const history = await historyOf(hsm, key)
      return { blob: await wrapSecret(hsm, kek, seed), publicKey, history: { ...history, everPlaintext: true } }
    } finally {
      seed.fill(0)
    }
  })
}

async function makeSeedOnHost(hsm: Hsm, kek: Kek): Promise<Made> {
  const seed = await hsm.random(32)
  try {
    const publicKey = createPublicKey(seedKey(seed))
    return { blob: await wrapSecret(hsm, kek, seed), publicKey, history: seen }
  } finally {
    seed.fill(0)
  }
}

/** node:crypto's form of an Ed25519 seed (PKCS#8, RFC 8410 section 7); the intermediate bytes are wiped. */
export function seedKey(seed: Uint8Array): KeyObject {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  } finally {
    der.fill(0)
  }
}

/** The private key of a pair that stays in the token. */
export const residentTemplate = (algorithm: Pair, id: Buffer): KeyTemplate => ({
  ...privateTemplate(algorithm),
  token: true,
  id,
  label: `strongroom ${algorithm.name}`,
})

/** A pair that stays in the token, found again by its CKA_ID. */
export async function makeResident(hsm: Hsm, algorithm: Pair, id: Buffer): Promise<Made> {
  const template = residentTemplate(algorithm, id)
  const { publicKey, privateKey } = await hsm.generateKeyPair(algorithm.generation, publicTemplate(algorithm), template)
  const made = {
    blob: undefined,
    publicKey: await readPublicKey(hsm, publicKey, algorithm),
    history: await historyOf(hsm, privateKey),
  }
  await hsm.destroy(publicKey)
  return made
}

async function withPair<T>(
  hsm: Hsm,
  algorithm: Pair,
  template: KeyTemplate,
  work: (privateKey: Handle, publicKey: KeyObject) => Promise<T>,
): Promise<T> {
  const pair = await hsm.generateKeyPair(algorithm.generation, publicTemplate(algorithm), template)
  try {
    return await work(pair.privateKey, await readPublicKey(hsm, pair.publicKey, algorithm))
  } finally {
    await hsm.destroy(pair.privateKey)
    await hsm.destroy(pair.publicKey)
  }
}

/** What the token does not show counts as the weaker claim. */
async function historyOf(hsm: Hsm, key: Handle): Promise<History> {
  const shown = await hsm.attributes(key, ['local', 'neverExtractable', 'alwaysSensitive'])
  return {
    local: shown.local ?? false,
    neverExtractable: shown.neverExtractable ?? false,
    alwaysSensitive: shown.alwaysSensitive ?? false,
    everPlaintext: false,
  }
}

/** The size its row records: a secret's true length, an RSA modulus, an EC coordinate, a seed. In bytes. */
export function sizeOf(algorithm: Algorithm, wanted: number | undefined): number {
  if (algorithm.kind === 'rsa') return algorithm.modulusBits / 8
  if (algorithm.kind === 'ec') return algorithm.curve.coordinateBytes
  if (algorithm.kind === 'ed25519') return 32
  if (algorithm.kind === 'aead' || wanted === undefined || wanted === 0) return algorithm.secretBytes
  if (wanted >= algorithm.minimumBytes && wanted <= algorithm.maximumBytes) return wanted
  throw badRequest(
    `invalid key_size ${wanted}: must be between ${algorithm.minimumBytes} and ${algorithm.maximumBytes}`,
  )
}
