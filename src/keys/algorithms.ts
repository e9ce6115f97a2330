import type { Curve } from '../crypto/ecdsa.ts'
import type { Ability } from '../hsm/capabilities.ts'
import { CKK, CKM } from '../hsm/constants.ts'
import type { Usage } from '../hsm/template.ts'

/**
 * THE table: what a key type is. Below it nothing names an algorithm; code asks for a kind, an ability or a number.
 * A new algorithm of a known kind is one row here and its test vectors.
 */
export type Algorithm = Aead | Ec | Rsa | Ed25519 | Hmac

interface Common {
  /** The `type` on the wire. */
  readonly name: string
  readonly keyType: number
  /** The token's mechanism that makes keys, and the one that uses them. */
  readonly generation: number
  readonly mechanism: number
  /** What a token must have proven to use such keys, and to wrap and unwrap them. */
  readonly using: Ability
  readonly wrapping: Ability
  readonly abilities: Abilities
  /** Usages of the secret or private object. */
  readonly usages: readonly Usage[]
  /** `name` of a version's entry in key read; undefined: the entry is the creation time. */
  readonly entry?: string
  /** What `export` gives, by its key type on the wire. */
  readonly exports: Partial<Record<'encryption-key' | 'signing-key' | 'public-key', ExportForm>>
  /** Whether FIPS mode lets such keys be created. */
  readonly fips: boolean
}

export interface Abilities {
  readonly encrypt: boolean
  readonly decrypt: boolean
  readonly sign: boolean
  readonly derive: boolean
}

/** raw: base64 of the bytes; pkcs1, sec1, spki: PEM; `seed`: base64 of seed and public key; `point`: base64 of 32 bytes. */
export type ExportForm = 'raw' | 'pkcs1' | 'sec1' | 'spki' | 'seed' | 'point'

export interface Aead extends Common {
  readonly kind: 'aead'
  readonly secretBytes: number
  /** node:crypto's name, for the host when the token lacks the mechanism. */
  readonly host: 'aes-128-gcm' | 'aes-256-gcm' | 'chacha20-poly1305'
  /** The one text of every failed decryption. */
  readonly failure: string
}
export interface Ec extends Common {
  readonly kind: 'ec'
  readonly curve: Curve
  /** DER of the curve's OID: CKA_EC_PARAMS. */
  readonly ecParameters: Buffer
  readonly jwk: string
}
export interface Rsa extends Common {
  readonly kind: 'rsa'
  readonly modulusBits: number
}
export interface Ed25519 extends Common {
  readonly kind: 'ed25519'
  readonly ecParameters: Buffer
  readonly jwk: string
}
export interface Hmac extends Common {
  readonly kind: 'hmac'
  readonly secretBytes: number
  readonly minimumBytes: number
  readonly maximumBytes: number
}

/** CKA_PUBLIC_EXPONENT of every RSA key made here: 65537. */
export const publicExponent = Buffer.from([1, 0, 1])

const encryption = { encrypt: true, decrypt: true, sign: false, derive: true }
const signing = { encrypt: false, decrypt: false, sign: true, derive: false }

const aesGcm = (bits: 128 | 256): Aead => ({
  name: `aes${bits}-gcm96`,
  kind: 'aead',
  secretBytes: bits / 8,
  host: `aes-${bits}-gcm`,
  failure: 'cipher: message authentication failed',
  keyType: CKK.AES,
  generation: CKM.AES_KEY_GEN,
  mechanism: CKM.AES_GCM,
  using: 'aes-gcm',
  wrapping: 'wrap-aes',
  abilities: encryption,
  usages: ['encrypt', 'decrypt'],
  exports: { 'encryption-key': 'raw' },
  fips: true,
})

const ecdsa = (bits: 256 | 384 | 521, openssl: string, oid: string, prime: bigint, order: bigint): Ec => ({
  name: `ecdsa-p${bits}`,
  kind: 'ec',
  curve: { openssl, coordinateBytes: Math.ceil(bits / 8), prime, order },
  ecParameters: Buffer.from(oid, 'hex'),
  jwk: `P-${bits}`,
  keyType: CKK.EC,
  generation: CKM.EC_KEY_PAIR_GEN,
  mechanism: CKM.ECDSA,
  using: `ecdsa-p${bits}`,
  wrapping: `wrap-p${bits}`,
  abilities: signing,
  usages: ['sign'],
  entry: `P-${bits}`,
  exports: { 'signing-key': 'sec1', 'public-key': 'spki' },
  fips: true,
})

const rsa = (modulusBits: number): Rsa => ({
  name: `rsa-${modulusBits}`,
  kind: 'rsa',
  modulusBits,
  keyType: CKK.RSA,
  generation: CKM.RSA_PKCS_KEY_PAIR_GEN,
  mechanism: CKM.RSA_PKCS,
  using: 'rsa-pkcs1',
  wrapping: 'wrap-rsa',
  abilities: { encrypt: true, decrypt: true, sign: true, derive: false },
  usages: ['sign', 'decrypt'],
  entry: `rsa-${modulusBits}`,
  exports: { 'encryption-key': 'pkcs1', 'signing-key': 'pkcs1', 'public-key': 'spki' },
  fips: true,
})

const rows: readonly Algorithm[] = [
  aesGcm(128),
  aesGcm(256),
  {
    ...aesGcm(256),
    name: 'chacha20-poly1305',
    host: 'chacha20-poly1305',
    failure: 'chacha20poly1305: message authentication failed',
    keyType: CKK.GENERIC_SECRET,
    generation: CKM.GENERIC_SECRET_KEY_GEN,
    mechanism: CKM.CHACHA20_POLY1305,
    using: 'chacha20-poly1305',
    wrapping: 'wrap-generic',
    usages: [],
    fips: false,
  },
  // FIPS 186-5 / SP 800-186 domain parameters.
  ecdsa(
    256,
    'prime256v1',
    '06082a8648ce3d030107',
    0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn,
    0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  ),
  ecdsa(
    384,
    'secp384r1',
    '06052b81040022',
    2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
    0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  ),
  ecdsa(
    521,
    'secp521r1',
    '06052b81040023',
    2n ** 521n - 1n,
    0x1fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409n,
  ),
  {
    name: 'ed25519',
    kind: 'ed25519',
    ecParameters: Buffer.from('06032b6570', 'hex'),
    jwk: 'Ed25519',
    keyType: CKK.EC_EDWARDS,
    generation: CKM.EC_EDWARDS_KEY_PAIR_GEN,
    mechanism: CKM.EDDSA,
    using: 'eddsa',
    wrapping: 'wrap-ed25519',
    abilities: { ...signing, derive: true },
    usages: ['sign'],
    entry: 'ed25519',
    exports: { 'signing-key': 'seed', 'public-key': 'point' },
    fips: false,
  },
  rsa(2048),
  rsa(3072),
  rsa(4096),
  {
    name: 'hmac',
    kind: 'hmac',
    secretBytes: 32,
    minimumBytes: 16,
    maximumBytes: 512,
    keyType: CKK.GENERIC_SECRET,
    generation: CKM.GENERIC_SECRET_KEY_GEN,
    mechanism: CKM.SHA256_HMAC,
    using: 'hmac-sha256',
    wrapping: 'wrap-generic',
    abilities: { encrypt: false, decrypt: false, sign: false, derive: false },
    usages: ['sign'],
    exports: {},
    fips: true,
  },
]

/** Every key type that keys/ makes, by its name on the wire. */
export const algorithms: ReadonlyMap<string, Algorithm> = new Map(rows.map((row) => [row.name, row]))

/** The row of a type that the database names: it is there, or the row is damaged. */
export function algorithmOf(name: string): Algorithm {
  const algorithm = algorithms.get(name)
  if (algorithm === undefined) throw new Error(`no algorithm ${name}`)
  return algorithm
}
