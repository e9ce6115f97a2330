import type { KeyObject } from 'node:crypto'
import { after } from '../../after.ts'
import { saltBytes } from '../../crypto/pss.ts'
import {
  type SignatureAlgorithm,
  type SignatureName,
  signatureAlgorithmOf,
  signatureAlgorithms,
} from '../../crypto/signaturealgorithm.ts'
import { badRequest } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import type { MaybePromise } from '../../route.ts'
import type { PairAlgorithm } from '../algorithms/algorithm.ts'
import type { Scheme } from '../algorithms/signature.ts'
import type { Handles } from '../live/handles.ts'
import type { Material } from '../material.ts'
import type { Signer } from './signer.ts'
import { verify } from './verify.ts'

/** A key that signs certificates, requests, CRLs and OCSP answers, wherever it lies. */
export interface CertificationSigner {
  readonly publicKey: KeyObject
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer
  /** Whether its type is weak: signatures by it deserve a warning. */
  readonly weak: boolean
  /**
   * The algorithms it can sign with; the first is the usual one of its type (by the curve for ECDSA, SHA-256 for RSA).
   */
  readonly algorithms: readonly SignatureName[]
  /**
   * Signs exactly these bytes. The result has been verified with the public key.
   * @throws ApiError 400 for an algorithm that is not among `algorithms`, or that the token lacks; FaultySignature
   */
  sign(name: SignatureName, message: Uint8Array): MaybePromise<CertificateSignature>
  /**
   * As `sign`, of a message that the caller has hashed by the algorithm's hash: for one that is too large to hold.
   * @throws ApiError 400 for Ed25519 too, which signs messages whole; TypeError for a digest of another length
   */
  signDigest(name: SignatureName, digest: Uint8Array): MaybePromise<CertificateSignature>
}

export interface CertificateSignature {
  /** AlgorithmIdentifier, DER. */
  readonly algorithm: Buffer
  /** As the BIT STRING of X.509 holds it: ECDSA as a DER SEQUENCE. */
  readonly signature: Buffer
}

/** The token gave a wrong signature: from one such RSA signature anybody can compute the key. A 500. */
export class FaultySignature extends Error {}

/** A key and its way of signing. */
interface SigningKey {
  readonly material: Material
  /** RSA: the only padding it makes. */
  readonly padding?: Scheme['padding'] | undefined
  sign(input: Uint8Array, scheme: Scheme): MaybePromise<Buffer>
}

/**
 * Signatures on certificates. Each is verified before it is released: a fault in the token's RSA-CRT, or a handle of
 * another key, must not reach anybody (Boneh, DeMillo, Lipton 1997).
 */
export class Certification {
  readonly #options: { signer: Signer; handles: Handles; log: Logger }
  readonly #signers = new WeakMap<Material, CertificationSigner>()

  constructor(options: { signer: Signer; handles: Handles; log: Logger }) {
    this.#options = options
  }

  /** A key of our own. @throws ApiError 400 when keys of its type do not sign, or its private half is not here */
  of(material: Material): CertificationSigner {
    const { signer } = this.#options
    const known = this.#signers.get(material)
    if (known !== undefined) return known
    if (!material.complete) throw badRequest('this key has no private part here and signs nothing')
    const made = this.over({ material, sign: (input, scheme) => signer.sign(material, input, scheme) })
    this.#signers.set(material, made)
    return made
  }

  /** A key that signs in a way of its own. @throws ApiError 400 when keys of its type do not sign */
  over(key: SigningKey): CertificationSigner {
    const { algorithm, row } = key.material
    if (algorithm.class === 'secret' || row.publicKey === null) {
      throw badRequest(`key type ${algorithm.name} does not support signing`)
    }
    const { publicKey } = key.material
    const algorithms = namesOf(algorithm, key.padding)
    const wanted = (name: SignatureName): SignatureAlgorithm => {
      if (algorithms.includes(name)) return signatureAlgorithmOf(name)
      throw badRequest(`a key of type ${algorithm.name} does not sign by ${name}, only by ${algorithms.join(', ')}`)
    }
    return {
      publicKey,
      spki: row.publicKey,
      weak: algorithm.weak,
      algorithms,
      sign: (name, message) => this.#sign(key, wanted(name), message, false),
      signDigest: (name, digest) => {
        const { hash } = wanted(name)
        if (hash === undefined) throw badRequest(`${name} signs messages whole, not digests`)
        if (digest.length !== hash.bytes) throw new TypeError(`not a digest by ${hash.name}`)
        return this.#sign(key, wanted(name), digest, true)
      },
    }
  }

  #sign(
    key: SigningKey,
    wanted: SignatureAlgorithm,
    input: Uint8Array,
    prehashed: boolean,
  ): MaybePromise<CertificateSignature> {
    const scheme = schemeOf(wanted, prehashed)
    return after(key.sign(input, scheme), (signature) => {
      if (!isGood(key.material, input, signature, scheme)) throw this.#faulty(key.material, wanted.name)
      return { algorithm: wanted.identifier, signature }
    })
  }

  /** The object in the token is not trusted any longer: the next use loads the key again. */
  #faulty({ id, algorithm }: Material, name: SignatureName): FaultySignature {
    const { handles, log } = this.#options
    handles.drop(id)
    log.error(
      { material: id, type: algorithm.name, algorithm: name },
      'the HSM made a signature that its public key does not verify; it was not released',
    )
    return new FaultySignature(`the signature by key ${id} does not verify`)
  }
}

/** Malformed bytes count as a wrong signature. */
function isGood(material: Material, input: Uint8Array, signature: Buffer, scheme: Scheme): boolean {
  try {
    return verify(material, input, signature, scheme)
  } catch {
    return false
  }
}

const schemeOf = ({ hash, pss }: SignatureAlgorithm, prehashed: boolean): Scheme => ({
  hash,
  prehashed,
  padding: pss ? 'pss' : 'pkcs1v15',
  saltLength: 'hash',
  marshaling: 'asn1',
})

/** The algorithms that a key of the type can sign with, the usual one first. */
function namesOf(algorithm: PairAlgorithm, padding: Scheme['padding'] | undefined): SignatureName[] {
  const usual = algorithm.signature.certification.scheme.hash
  const can = [...signatureAlgorithms.values()].filter(
    (one) =>
      one.family === algorithm.privateKey.family &&
      (padding === undefined || (padding === 'pss') === one.pss) &&
      fits(one, algorithm.sizeBytes),
  )
  const rank = ({ pss, hash }: SignatureAlgorithm): number => (pss ? 2 : 0) + (hash === usual ? 0 : 1)
  return can.toSorted((a, b) => rank(a) - rank(b)).map(({ name }) => name)
}

/** A small RSA modulus has no room for the salt of a large hash. */
const fits = ({ hash, pss }: SignatureAlgorithm, modulusBytes: number): boolean =>
  !pss || hash === undefined || saltBytes('hash', hash, modulusBytes) !== undefined
