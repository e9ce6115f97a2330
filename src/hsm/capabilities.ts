import { badRequest } from '../errors.ts'
import { CKM } from './constants.ts'
import type { Dialect } from './template.ts'

/**
 * Abilities that a token may lack, with the mechanism's name for refusals. `wrap-x`: a sensitive key can be wrapped
 * (RFC 5649) and comes back sensitive and usable. `create-x`: a key can be created from its bytes. `read-x`: a pair
 * made as not sensitive shows its private key.
 */
const abilities = {
  'aes-gcm': 'CKM_AES_GCM',
  'hmac-sha256': 'CKM_SHA256_HMAC',
  'digest-key': 'C_DigestKey',
  'ecdsa-p224': 'CKM_ECDSA on P-224',
  'ecdsa-p256': 'CKM_ECDSA on P-256',
  'ecdsa-p384': 'CKM_ECDSA on P-384',
  'ecdsa-p521': 'CKM_ECDSA on P-521',
  eddsa: 'CKM_EDDSA',
  'create-ed25519': 'C_CreateObject of an Ed25519 key',
  'rsa-pkcs1': 'CKM_RSA_PKCS',
  'rsa-pss': 'CKM_RSA_PKCS_PSS',
  'rsa-raw': 'CKM_RSA_X_509',
  'oaep-sha256': 'CKM_RSA_PKCS_OAEP with SHA-256',
  'wrap-aes': 'CKM_AES_KEY_WRAP_KWP of AES keys',
  'wrap-generic': 'CKM_AES_KEY_WRAP_KWP of generic secrets',
  // SoftHSM 2.6.1 fills up with zeros to a multiple of 8 before it wraps; a MAC key longer than its block is then
  // another.
  'wrap-exact-length': 'CKM_AES_KEY_WRAP_KWP of secrets over 64 bytes whose length is no multiple of 8',
  'wrap-p224': 'CKM_AES_KEY_WRAP_KWP of P-224 keys',
  'wrap-p256': 'CKM_AES_KEY_WRAP_KWP of P-256 keys',
  'wrap-p384': 'CKM_AES_KEY_WRAP_KWP of P-384 keys',
  'wrap-p521': 'CKM_AES_KEY_WRAP_KWP of P-521 keys',
  'wrap-ed25519': 'CKM_AES_KEY_WRAP_KWP of Ed25519 keys',
  'wrap-rsa': 'CKM_AES_KEY_WRAP_KWP of RSA keys',
  'data-object': 'private CKO_DATA token objects',
  'read-rsa': 'RSA private keys that it shows',
  'read-ec': 'EC private keys that it shows',
  'read-ed25519': 'Ed25519 private keys that it shows',
  // pkcs11js 2.1.7 has no parameter structure for these two, so no token can be asked.
  hkdf: 'CKM_HKDF_DERIVE with info',
  'chacha20-poly1305': 'CKM_CHACHA20_POLY1305',
} as const

export type Ability = keyof typeof abilities

/** The results of the self-test; plain JSON, kept between starts. */
export interface Findings {
  /** The mechanism number of RFC 5649. */
  readonly kwp: number
  readonly proven: readonly Ability[]
  readonly maxSecretBytes: number
  /**
   * The shortest key in bytes that each HMAC mechanism takes, by its number; without an entry if the token lacks it.
   */
  readonly hmacKeys: Readonly<Record<number, number>>
  /** The CKR code of a forged GCM tag, if the session stays usable after it. */
  readonly forgedTag?: number | undefined
  readonly dialect: Dialect
}

/**
 * Assumed of a token with other people's keys: it may not allow objects to be made, so nothing is tested beforehand,
 * and it refuses by itself any mechanism that it lacks.
 */
export const assumed: Findings = {
  kwp: CKM.AES_KEY_WRAP_KWP,
  proven: Object.keys(abilities) as Ability[],
  maxSecretBytes: 0,
  hmacKeys: {},
  dialect: { modifiableOnUnwrap: true, copyableOnToken: true, pointOnUnwrap: false },
}

/** The abilities that the token has proven in the self-test. */
export class Capabilities {
  /** The mechanism number of AES key wrap with padding as in RFC 5649; store it with every blob. */
  readonly kwp: number
  /** The longest generic secret that can be wrapped and unwrapped, up to 512. */
  readonly maxSecretBytes: number
  /** The CKR code of a forged GCM tag, if the session stays usable after it; else undefined. */
  readonly forgedTag: number | undefined
  readonly dialect: Dialect
  readonly #proven: ReadonlySet<Ability>
  readonly #hmacKeys: ReadonlyMap<number, number>

  constructor(findings: Findings) {
    this.kwp = findings.kwp
    this.maxSecretBytes = findings.maxSecretBytes
    this.forgedTag = findings.forgedTag
    this.dialect = findings.dialect
    this.#proven = new Set(findings.proven)
    this.#hmacKeys = new Map(Object.entries(findings.hmacKeys).map(([type, bytes]) => [Number(type), bytes]))
  }

  supports(ability: Ability): boolean {
    return this.#proven.has(ability)
  }

  /**
   * Bytes of the shortest key that the HMAC mechanism takes; undefined if the token lacks it. @param type a CKM number
   */
  shortestHmacKey(type: number): number | undefined {
    return this.#hmacKeys.get(type)
  }

  /** The mechanism's name, for a refusal. */
  missing(ability: Ability): string {
    return abilities[ability]
  }

  /** @throws ApiError 400 that names the missing mechanism */
  require(ability: Ability): void {
    if (!this.supports(ability)) throw badRequest(`the HSM lacks ${abilities[ability]}`)
  }
}
