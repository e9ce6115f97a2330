import { sign as signOnHost } from 'node:crypto'
import { digest, type Hash } from '../../crypto/hashes.ts'
import { encodePss, type SaltLength, saltBytes } from '../../crypto/pss.ts'
import { toDer } from '../../crypto/signature.ts'
import { badRequest } from '../../errors.ts'
import { CKM } from '../../hsm/constants.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { type Mechanism, mechanismName } from '../../hsm/mechanism.ts'
import type { MaybePromise } from '../../route.ts'
import type { Ec, Ed25519, Rsa } from '../algorithms.ts'
import { type Blobs, heldByToken } from '../live/blobs.ts'
import type { Handles } from '../live/handles.ts'
import { seedKey } from '../making/making.ts'
import type { Material } from '../material.ts'
import type { Approval } from './approval.ts'
import { mechanismsOf } from './hashmechanisms.ts'
import { naming } from './naming.ts'

/** How to sign. A key reads what concerns its type and ignores the rest. */
export interface Scheme {
  /** undefined is `none`: RSA PKCS#1 v1.5 over the input as it is, without DigestInfo. */
  readonly hash: Hash | undefined
  /** The input is the digest already. Ed25519 signs whole inputs only. */
  readonly prehashed: boolean
  readonly padding: 'pss' | 'pkcs1v15'
  readonly saltLength: SaltLength
  /** ECDSA: DER, or r ‖ s. */
  readonly marshaling: 'asn1' | 'jws'
}

export interface SignerOptions {
  readonly hsm: Hsm
  readonly blobs: Blobs
  readonly handles: Handles
  readonly approval: Approval
}

type SigningKey = Ec | Rsa | Ed25519

/** @throws ApiError 400 when keys of that type do not sign */
export function signing(material: Material, what: 'signing' | 'verification'): SigningKey {
  const { algorithm } = material
  if (algorithm.kind === 'ec' || algorithm.kind === 'rsa' || algorithm.kind === 'ed25519') return algorithm
  throw badRequest(`key type ${algorithm.name} does not support ${what}`)
}

/** Digests of public input are made on the host, signatures in the token. */
export class Signer {
  readonly #options: SignerOptions

  constructor(options: SignerOptions) {
    this.#options = options
  }

  /** @returns the signature's bytes @throws ApiError 400 naming what does not fit */
  sign(material: Material, input: Uint8Array, scheme: Scheme): MaybePromise<Buffer> {
    const algorithm = signing(material, 'signing')
    if (!material.complete) throw badRequest('requested version for signing does not contain a private part')
    if (algorithm.kind === 'ed25519') return this.#ed25519(material, algorithm, input)
    this.#options.approval.checkSigning(scheme.hash)
    if (algorithm.kind === 'rsa') return this.#rsa(material, algorithm, input, scheme)
    return this.#ecdsa(material, algorithm, input, scheme)
  }

  #ecdsa(material: Material, algorithm: Ec, input: Uint8Array, scheme: Scheme): MaybePromise<Buffer> {
    const { coordinateBytes } = algorithm.curve
    // FIPS 186-5 6.4.1: the leftmost bits count; tokens refuse longer digests, or empty ones, which stand for zero.
    const whole = scheme.prehashed || !scheme.hash ? input : digest(scheme.hash, input)
    const leftmost = whole.length === 0 ? Buffer.alloc(1) : whole.subarray(0, coordinateBytes)
    const signature = this.#inToken(material, { type: algorithm.mechanism }, leftmost, 2 * coordinateBytes)
    if (scheme.marshaling === 'jws') return signature
    return signature instanceof Promise ? signature.then(toDer) : toDer(signature)
  }

  #rsa(material: Material, algorithm: Rsa, input: Uint8Array, scheme: Scheme): MaybePromise<Buffer> {
    const bytes = algorithm.modulusBits / 8
    const { hash } = scheme
    if (hash === undefined) {
      if (input.length > bytes - 11) throw badRequest('crypto/rsa: message too long for RSA key size')
      return this.#inToken(material, { type: CKM.RSA_PKCS }, input, bytes)
    }
    const hashed = scheme.prehashed ? input : digest(hash, input)
    if (hashed.length !== hash.bytes) throw badRequest('crypto/rsa: input must be hashed with given hash')
    if (scheme.padding === 'pkcs1v15') {
      return this.#inToken(material, { type: CKM.RSA_PKCS }, Buffer.concat([hash.digestInfo, hashed]), bytes)
    }
    const saltLength = saltBytes(scheme.saltLength, hash, bytes)
    if (saltLength === undefined) throw badRequest(`requested salt length ${scheme.saltLength} is invalid`)
    const { capabilities } = this.#options.hsm
    // No token at hand does PSS with SHA-3: the encoding is public work around the raw operation.
    if (hash.family === 'sha3' || !capabilities.supports('rsa-pss')) {
      capabilities.require('rsa-raw')
      return this.#inToken(material, { type: CKM.RSA_X_509 }, encodePss(hashed, hash, bytes, saltLength), bytes)
    }
    const pss = { ...mechanismsOf(hash), saltLength }
    return this.#inToken(material, { type: CKM.RSA_PKCS_PSS, pss }, hashed, bytes)
  }

  #ed25519(material: Material, algorithm: Ed25519, input: Uint8Array): MaybePromise<Buffer> {
    const { hsm, blobs } = this.#options
    if (heldByToken(hsm, material)) return this.#inToken(material, { type: algorithm.mechanism }, input, 64)
    return blobs.open(material, (seed) => signOnHost(null, input, seedKey(seed)))
  }

  #inToken(material: Material, mechanism: Mechanism, message: Uint8Array, bytes: number): MaybePromise<Buffer> {
    const { hsm, handles } = this.#options
    return naming(mechanismName(mechanism.type), () =>
      handles.use(material, (key) => hsm.sign(key, mechanism, message, bytes)),
    )
  }
}
