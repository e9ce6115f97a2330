import { createPublicKey } from 'node:crypto'
import { badRequest } from '../../errors.ts'
import { CKK } from '../../hsm/constants.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate, Usage } from '../../hsm/template.ts'
import type { Algorithm, PairAlgorithm, Secret } from '../algorithms/algorithm.ts'
import { seedKey } from '../algorithms/ed25519.ts'
import type { Kek } from '../kek/keks.ts'
import { encodePublicKey, readSpkiOf } from '../publickey.ts'
import type { Part } from '../tables.ts'
import { pad, shortestOf } from './padding.ts'
import { wrapSecret } from './secret.ts'

/** A new key, as its row will describe it. Nothing of it is left in the token, unless it lives there. */
export interface Made {
  /** Wrapped by the KEK that was given; undefined for a token object. */
  readonly blob: Buffer | undefined
  /** SubjectPublicKeyInfo, DER; undefined for a secret key. */
  readonly spki: Buffer | undefined
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

/** A key that was in memory while it was made, however briefly. */
export const plaintextHistory: History = {
  local: false,
  neverExtractable: false,
  alwaysSensitive: false,
  everPlaintext: true,
}

/** The history of a key from the moment that it is opened in the server's memory. */
export const opened = (history: History): History => ({ ...history, everPlaintext: true })

/** The private key's template, also used to unwrap it. */
export function privateTemplate(algorithm: PairAlgorithm, part: string = 'key' satisfies Part): KeyTemplate {
  return { class: 'private', keyType: algorithm.keyType, usages: usagesOf(algorithm, part) }
}

/** The key that imports are encrypted to cannot sign, and a key that signs certificates cannot decrypt. */
function usagesOf({ usages }: PairAlgorithm, part: string): readonly Usage[] {
  if (part === ('wrapping' satisfies Part)) return ['decrypt']
  return part === ('authority' satisfies Part) ? ['sign'] : usages
}

/** The template of the public half of a pair that the token makes. */
export const publicTemplate = (algorithm: PairAlgorithm): KeyTemplate => ({
  class: 'public',
  keyType: algorithm.keyType,
  usages: [],
  ...algorithm.publicKey.parameters,
})

/** A secret key generated and wrapped in the token; an HMAC secret too short for SHA-256 there is padded in memory. */
export async function makeSecret(hsm: Hsm, algorithm: Secret, sizeBytes: number, kek: Kek): Promise<Made> {
  if (algorithm.mac && sizeBytes < shortestOf(hsm.capabilities)) return makePadded(hsm, sizeBytes, kek)
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
    return { blob: await kek.wrap(key), spki: undefined, history: await historyOf(hsm, key) }
  } finally {
    await hsm.destroy(key)
  }
}

/** The secret's one moment in memory: token randomness, padded with zeros, put into the token, wiped. */
async function makePadded(hsm: Hsm, sizeBytes: number, kek: Kek): Promise<Made> {
  const secret = await hsm.random(sizeBytes)
  const padded = pad(secret)
  try {
    return { blob: await wrapSecret(hsm, kek, padded), spki: undefined, history: plaintextHistory }
  } finally {
    secret.fill(0)
    padded.fill(0)
  }
}

/** A pair generated in the token, its private key extractable only to be wrapped, wrapped there. */
export async function makePair(hsm: Hsm, algorithm: PairAlgorithm, kek: Kek, part: Part): Promise<Made> {
  return withPair(hsm, algorithm, { ...privateTemplate(algorithm, part), extractable: true }, async (key, spki) => ({
    blob: await kek.wrap(key),
    spki,
    history: await historyOf(hsm, key),
  }))
}

/** A pair that the token makes and cannot wrap: its seed is read, put back as a generic secret, wrapped, wiped. */
export async function makeSeed(hsm: Hsm, algorithm: PairAlgorithm, kek: Kek): Promise<Made> {
  if (!hsm.capabilities.supports(algorithm.using)) return makeSeedOnHost(hsm, kek)
  const template = { ...privateTemplate(algorithm), sensitive: false, extractable: true }
  return withPair(hsm, algorithm, template, async (key, spki) => {
    const { value: seed } = await hsm.attributes(key, ['value'])
    if (seed === undefined) throw new Error('the token does not show the seed of a key made readable')
    try {
      const history = await historyOf(hsm, key)
      return { blob: await wrapSecret(hsm, kek, seed), spki, history: opened(history) }
    } finally {
      seed.fill(0)
    }
  })
}

async function makeSeedOnHost(hsm: Hsm, kek: Kek): Promise<Made> {
  const seed = await hsm.random(32)
  try {
    const spki = encodePublicKey(createPublicKey(seedKey(seed)))
    return { blob: await wrapSecret(hsm, kek, seed), spki, history: plaintextHistory }
  } finally {
    seed.fill(0)
  }
}

/** The private key of a pair that stays in the token. */
export const residentTemplate = (algorithm: PairAlgorithm, id: Buffer, part: Part): KeyTemplate => ({
  ...privateTemplate(algorithm, part),
  token: true,
  id,
  label: `strongroom ${algorithm.name}`,
})

/** A pair that stays in the token, found again by its CKA_ID. */
export async function makeResident(hsm: Hsm, algorithm: PairAlgorithm, id: Buffer, part: Part): Promise<Made> {
  const template = residentTemplate(algorithm, id, part)
  const { publicKey, privateKey } = await hsm.generateKeyPair(algorithm.generation, publicTemplate(algorithm), template)
  try {
    return {
      blob: undefined,
      spki: (await readSpkiOf(hsm, publicKey, algorithm)).spki,
      history: await historyOf(hsm, privateKey),
    }
  } finally {
    // After a failure the sweep destroys the private half, whose id the caller has recorded.
    await hsm.destroy(publicKey)
  }
}

/** Lends a new pair, which is destroyed afterwards. */
async function withPair<T>(
  hsm: Hsm,
  algorithm: PairAlgorithm,
  template: KeyTemplate,
  work: (privateKey: Handle, spki: Buffer) => Promise<T>,
): Promise<T> {
  const pair = await hsm.generateKeyPair(algorithm.generation, publicTemplate(algorithm), template)
  try {
    const { spki } = await readSpkiOf(hsm, pair.publicKey, algorithm)
    return await work(pair.privateKey, spki)
  } finally {
    await hsm.destroy(pair.privateKey)
    await hsm.destroy(pair.publicKey)
  }
}

/** An attribute that the token does not show counts as the weaker claim. */
export async function historyOf(hsm: Hsm, key: Handle): Promise<History> {
  const shown = await hsm.attributes(key, ['local', 'neverExtractable', 'alwaysSensitive'])
  return {
    local: shown.local ?? false,
    neverExtractable: shown.neverExtractable ?? false,
    alwaysSensitive: shown.alwaysSensitive ?? false,
    everPlaintext: false,
  }
}

/** @throws ApiError 400 for a type whose keys are only imported */
export function checkMade(algorithm: Algorithm): void {
  if (algorithm.class === 'secret' || algorithm.made) return
  throw badRequest(`${algorithm.name} keys are imported and never made`)
}

/** The size that the row of a new key records. @throws ApiError 400 for an HMAC secret that is too short or too long */
export function sizeOf({ mac, sizeBytes }: Algorithm, wanted: number | undefined): number {
  if (mac === undefined || wanted === undefined || wanted === 0) return sizeBytes
  const { minimumBytes, maximumBytes } = mac
  if (wanted >= minimumBytes && wanted <= maximumBytes) return wanted
  throw badRequest(`invalid key_size ${wanted}: must be between ${minimumBytes} and ${maximumBytes}`)
}
