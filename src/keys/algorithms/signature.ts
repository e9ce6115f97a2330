import type { KeyObject } from 'node:crypto'
import { type Hash, hashOf } from '../../crypto/hashes.ts'
import type { SaltLength } from '../../crypto/pss.ts'
import type { Capabilities } from '../../hsm/capabilities.ts'
import type { Mechanism } from '../../hsm/mechanism.ts'

/** How to sign. A key reads the members for its type and ignores the rest. */
export interface Scheme {
  /** undefined is `none`: RSA PKCS#1 v1.5 over the input as it is, without DigestInfo. */
  readonly hash: Hash | undefined
  /** The input is the digest already. Ed25519 signs whole inputs only. */
  readonly prehashed: boolean
  /** RSA: pss or pkcs1v15, as requested; only RSA keys check it. */
  readonly padding: string
  readonly saltLength: SaltLength
  /** ECDSA: DER, or r ‖ s. */
  readonly marshaling: 'asn1' | 'jws'
}

/** How keys of a type sign. */
export interface Signature {
  /** Whether a hash takes part; otherwise the input is signed whole. */
  readonly hashes: boolean
  /** How it signs certification requests. */
  readonly certification: Certification
  /** The request to the token. @throws ApiError 400 naming the problem */
  request(input: Uint8Array, scheme: Scheme, capabilities: Capabilities): SignRequest
  /** Signs on the host with the key's opened secret; undefined if every token can hold such keys. */
  onHost?(secret: Buffer, input: Uint8Array): Buffer
  /** By OpenSSL. A wrong signature is false. @throws ApiError 400 for a malformed DER signature */
  verify(key: KeyObject, input: Uint8Array, signature: Uint8Array, scheme: Scheme): boolean
}

/** One call of C_Sign. */
export interface SignRequest {
  readonly mechanism: Mechanism
  readonly message: Uint8Array
  /** Of the signature. */
  readonly bytes: number
  /** Converts the token's signature to the requested form. */
  readonly encode?: (signature: Buffer) => Buffer
}

/** The AlgorithmIdentifier (DER) and the scheme that makes such a signature. */
export interface Certification {
  readonly algorithm: Buffer
  readonly scheme: Scheme
}

/** The scheme of certification requests: PKCS#1 v1.5 for RSA. */
export const certificationScheme = (hash: 'sha2-256' | 'sha2-384' | 'sha2-512'): Scheme => ({
  hash: hashOf(hash),
  prehashed: false,
  padding: 'pkcs1v15',
  saltLength: 'hash',
  marshaling: 'asn1',
})
