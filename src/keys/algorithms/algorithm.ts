import type { KeyObject } from 'node:crypto'
import type { Curve } from '../../crypto/ecdsa.ts'
import type { Ability } from '../../hsm/capabilities.ts'
import type { KeyTemplate, Usage } from '../../hsm/template.ts'
import type { Signature } from './signature.ts'

/**
 * A key type: one row of the table (../algorithms.ts). `class` (CKA_CLASS of the object that is kept) tells secrets
 * from pairs; `kind` is for code that has a form of its own for each.
 */
export type Algorithm = Secret | PairAlgorithm
export type Secret = AeadSecret | HmacSecret
export type PairAlgorithm = Ec | Rsa | Ed25519

interface Common {
  /** The `type` on the wire. */
  readonly name: string
  readonly keyType: number
  /** The token's mechanism that makes keys, and the one that uses them. */
  readonly generation: number
  readonly mechanism: number
  /** Abilities that a token must have proven to use such keys, and to wrap and unwrap them. */
  readonly using: Ability
  readonly wrapping: Ability
  readonly abilities: Abilities
  /** Usages of the secret or private object. */
  readonly usages: readonly Usage[]
  /** The size recorded in its row: the length of a secret (HMAC: by default), RSA modulus, EC coordinate or seed. */
  readonly sizeBytes: number
  /** Whether the host can do the key's work with the secret, opened for one call, where the token cannot. */
  readonly hostable: boolean
  /** `name` of a version's entry in key read; undefined: the entry is the creation time. */
  readonly entry?: string
  /** The forms that `export` gives, by its key type on the wire. */
  readonly exports: Partial<Record<'encryption-key' | 'signing-key' | 'public-key', ExportForm>>
  /** Whether FIPS mode lets such keys be created. */
  readonly fips: boolean
  /** Authenticated encryption. */
  readonly aead?: Aead
  /** Encryption by RSA-OAEP. */
  readonly oaep?: Oaep
  /** HMAC. */
  readonly mac?: Mac
  readonly signature?: Signature
  /** Whether a token object with these attributes is such a key. */
  matches(shown: ShownAttributes): boolean
}

export interface Abilities {
  readonly encrypt: boolean
  readonly sign: boolean
  readonly derive: boolean
}

/**
 * raw: base64 of the bytes; pkcs1, sec1, spki: PEM; `seed`: base64 of seed and public key; `point`: base64 of 32 bytes.
 */
export type ExportForm = 'raw' | 'pkcs1' | 'sec1' | 'spki' | 'seed' | 'point'

export interface ShownAttributes {
  readonly valueLength?: number | undefined
  readonly modulus?: Buffer | undefined
  readonly ecParameters?: Buffer | undefined
}

export interface Aead {
  readonly secretBytes: number
  /** node:crypto's name, for the host when the token lacks the mechanism. */
  readonly host: 'aes-128-gcm' | 'aes-256-gcm' | 'chacha20-poly1305'
  /** The text of every failed decryption. */
  readonly failure: string
}

export interface Oaep {
  readonly modulusBytes: number
}

/** HMAC secrets may have any length between two. */
export interface Mac {
  readonly minimumBytes: number
  readonly maximumBytes: number
}

export interface AeadSecret extends Common {
  readonly kind: 'aead'
  readonly class: 'secret'
  readonly aead: Aead
}

export interface HmacSecret extends Common {
  readonly kind: 'hmac'
  readonly class: 'secret'
  readonly mac: Mac
}

interface PairCommon extends Common {
  readonly class: 'private'
  /** Pairs take long to make, so some are made ahead (making/stock.ts). */
  readonly slow: boolean
  /** Under 112 bits of strength (SP 800-131A): it may sign, with a warning. Such keys are imported and never made. */
  readonly weak: boolean
  /** Whether such keys are made here; the others are only imported. */
  readonly made: boolean
  readonly publicKey: PublicKeyForm
  readonly privateKey: PrivateKeyForm
  readonly signature: Signature
}

export interface Ec extends PairCommon {
  readonly kind: 'ec'
  readonly curve: Curve
  /** DER of the curve's OID: CKA_EC_PARAMS. */
  readonly ecParameters: Buffer
  readonly jwk: string
}

export interface Rsa extends PairCommon {
  readonly kind: 'rsa'
  readonly modulusBits: number
  readonly oaep: Oaep
}

export interface Ed25519 extends PairCommon {
  readonly kind: 'ed25519'
  readonly ecParameters: Buffer
  readonly jwk: string
}

/** Public halves, in the token and outside. */
export interface PublicKeyForm {
  /** node:crypto's asymmetricKeyType. */
  readonly type: 'rsa' | 'ec' | 'ed25519'
  /** Attributes of the public object from which a pair is made. */
  readonly parameters: Pick<KeyTemplate, 'modulusBits' | 'publicExponent' | 'ecParameters'>
  /** Attributes of the object that hold the public key. */
  readonly attributes: readonly (keyof PublicAttributes)[]
  /** Whether the private object shows them too. */
  readonly onPrivate: boolean
  /** The contents of subjectPublicKey (RFC 5280 4.1.2.7); undefined if the attributes are not such a key. */
  bits(attributes: PublicAttributes): Buffer | undefined
  /** @throws ApiError 400 saying in what way the key is not of the type */
  check(key: KeyObject): void
}

export interface PublicAttributes {
  readonly modulus?: Buffer | undefined
  readonly publicExponent?: Buffer | undefined
  readonly ecPoint?: Buffer | undefined
}

export interface PrivateAttributes {
  readonly value?: Buffer | undefined
  readonly modulus?: Buffer | undefined
  readonly publicExponent?: Buffer | undefined
  readonly privateExponent?: Buffer | undefined
  readonly prime1?: Buffer | undefined
  readonly prime2?: Buffer | undefined
  readonly exponent1?: Buffer | undefined
  readonly exponent2?: Buffer | undefined
  readonly coefficient?: Buffer | undefined
}

/** How to read a private key that the token made readable. */
export interface ReadableForm {
  readonly ability: Ability
  readonly attributes: readonly (keyof PrivateAttributes)[]
  /** @param bits of the public key @returns a buffer that the caller wipes; undefined if they are not such a key */
  inner(shown: PrivateAttributes, bits: Buffer): Buffer | undefined
  /** The same from the PKCS#8 in which the token wraps the key. @throws NotDer */
  copy(inner: Buffer, bits: Buffer): Buffer
}

/** Private keys in PKCS#8 (RFC 5208). */
export interface PrivateKeyForm {
  readonly family: Family
  /** The contents of AlgorithmIdentifier. */
  readonly identifier: Buffer
  /** @param curve OID in hexadecimal @returns a pair that the caller wipes @throws ApiError 400; NotDer */
  read(inner: Buffer, curve: string): Pair
  /** The checks that take time, for keys from outside. @throws ApiError 400 */
  check?(inner: Buffer): Promise<void>
  readonly readable: ReadableForm
  /** The contents of the OCTET STRING: `inner` itself, or a buffer of its own. */
  write(inner: Buffer): Buffer
  /** Attributes that some tokens need to unwrap one. */
  unwrapping?(publicKey: KeyObject): Pick<KeyTemplate, 'ecPoint'>
  /** How an object is created from the bytes of the key, where a token can do that. */
  readonly creation?: { readonly ability: Ability; readonly attributes: Pick<KeyTemplate, 'ecParameters'> }
}

/** A family of key types, as refusals name it. */
export type Family = 'rsa' | 'ecdsa' | 'ed25519'

/** A private key outside the token. */
export interface Pair {
  readonly algorithm: PairAlgorithm
  /** RSAPrivateKey, ECPrivateKey with curve and public key, or the 32 bytes of an Ed25519 seed. */
  readonly inner: Buffer
  readonly publicKey: KeyObject
}
