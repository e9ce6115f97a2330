import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { asn1, expect as element, readAll, readNumber, readOne } from '../../../src/crypto/der.ts'
import { traditionalForm } from '../../../src/crypto/privatekey.ts'
import type { Secrets } from './work.ts'

export interface Key {
  /** As it is imported: the bytes of a secret, PKCS#8 of a pair. */
  readonly bytes: Buffer
  readonly secrets: Secrets
}

const secretBytes = { 'aes256-gcm96': 32, 'chacha20-poly1305': 32, hmac: 48 } as const
const ec = (namedCurve: string) => () => generateKeyPairSync('ec', { namedCurve }).privateKey
const pairs = {
  'rsa-2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  'ecdsa-p256': ec('P-256'),
  'ecdsa-p384': ec('P-384'),
  'ecdsa-p521': ec('P-521'),
  ed25519: () => generateKeyPairSync('ed25519').privateKey,
} as const
export type PairType = keyof typeof pairs
export type Type = keyof typeof secretBytes | PairType
export const pairTypes = Object.keys(pairs) as readonly PairType[]
export const types = [...Object.keys(secretBytes), ...pairTypes] as readonly Type[]
export const isPair = (type: Type): type is PairType => type in pairs

export function newKey(type: Type): Key {
  if (!isPair(type)) {
    const bytes = randomBytes(secretBytes[type])
    return { bytes, secrets: { secret: bytes } }
  }
  const key: KeyObject = pairs[type]()
  const bytes = key.export({ format: 'der', type: 'pkcs8' })
  return { bytes, secrets: numbersOf(bytes) }
}

/** The secret numbers of a private key. */
export function numbersOf(pkcs8: Buffer): Secrets {
  const { label, der } = traditionalForm(pkcs8)
  if (label === 'PRIVATE KEY') return { seed: pkcs8.subarray(-32) }
  const parts = readAll(readOne(der, asn1.sequence))
  if (label === 'EC PRIVATE KEY') return { scalar: element(parts[1], asn1.octetString) }
  const names = ['d', 'p', 'q', 'd mod p-1', 'd mod q-1', 'coefficient']
  return Object.fromEntries(names.map((name, index) => [name, readNumber(parts[3 + index])]))
}

export const numbersOfPem = (pem: string): Secrets =>
  numbersOf(createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' }))

/** The same secrets under names that begin with `word`, so that those of several keys are told apart. */
export const named = (word: string | number, secrets: Secrets): Secrets =>
  Object.fromEntries(Object.entries(secrets).map(([name, bytes]) => [`${word}: ${name}`, bytes]))
