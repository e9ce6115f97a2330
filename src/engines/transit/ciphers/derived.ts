import { after } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import type { Algorithm } from '../../../keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import { aeadOf } from '../../../keys/use/cipher.ts'
import type { Kdf, Source } from '../../../keys/use/derivation.ts'
import type { Convergence } from '../../../keys/use/derived.ts'
import { ivBytes } from '../../../keys/use/hostcipher.ts'
import type { MaybePromise } from '../../../route.ts'
import { ignoreNonce, requireNonce } from '../input/nonce.ts'
import type { VersionOperation } from './operation.ts'
import type { CipherParameters } from './parameters.ts'

type DerivedParameters = Pick<CipherParameters, 'derivation' | 'nonce' | 'aad'>

/** @returns the payload of the ciphertext @throws ApiError 400 naming a missing input */
export function encryptDerived(
  operation: VersionOperation,
  input: DerivedParameters & { readonly plaintext: Buffer },
): MaybePromise<Buffer> {
  const { derived } = operation.context
  const algorithm = aeadOf(approved(operation), 'encryption')
  const context = contextOf(input.derivation)
  const convergence = operation.version.convergentVersion as Convergence
  if (convergence !== 1) ignoreNonce(input.nonce, operation.warn)
  if (convergence > 1 && input.aad && input.aad.length > 0) operation.warn(sharedNonce)
  const iv = convergence === 1 ? requireNonce(input.nonce) : undefined
  const plain = { plaintext: input.plaintext, aad: input.aad, iv, context, convergence }
  return after(sourceOf(operation), (source) =>
    after(derived.encrypt(operation.version.material, source, algorithm, plain), ({ iv, sealed, warning }) => {
      if (warning) operation.warn(warning)
      return convergence === 1 ? sealed : Buffer.concat([iv, sealed])
    }),
  )
}

/** Two tags under one nonce may give the key of GHASH away (Joux 2006). */
const sharedNonce =
  'associated_data is not part of the nonce of a convergent key: messages of one context that differ in it alone share a nonce'

/** @throws ApiError 400 naming a missing input, or with one text for every ciphertext that does not decrypt */
export function decryptDerived(
  operation: VersionOperation,
  input: DerivedParameters & { readonly payload: Buffer },
): MaybePromise<Buffer> {
  const { derived } = operation.context
  const { payload, nonce, aad } = input
  const algorithm = aeadOf(approved(operation), 'decryption')
  const context = contextOf(input.derivation)
  const callersNonce = operation.version.convergentVersion === 1
  if (callersNonce && nonce === undefined) throw badRequest('invalid convergent nonce supplied')
  if (!callersNonce) ignoreNonce(nonce, operation.warn)
  if (!callersNonce && payload.length < ivBytes) throw badRequest('invalid ciphertext length')
  const iv = callersNonce ? requireNonce(nonce) : payload.subarray(0, ivBytes)
  const sealed = callersNonce ? payload : payload.subarray(ivBytes)
  return after(sourceOf(operation), (source) => derived.decrypt(source, algorithm, context, { iv, sealed, aad }))
}

/** Signs with the Ed25519 key derived from the context. @returns `point`: its public key, 32 bytes */
export function signDerived(
  operation: VersionOperation,
  derivation: Buffer | undefined,
  input: Buffer,
): MaybePromise<{ readonly signature: Buffer; readonly point: Buffer }> {
  requireSigning(operation, 'signing')
  const context = contextOf(derivation)
  return after(sourceOf(operation), (source) => operation.context.derived.sign(source, context, input))
}

/** Whether the Ed25519 key derived from the context made the signature. */
export function verifyDerived(
  operation: VersionOperation,
  derivation: Buffer | undefined,
  input: Buffer,
  signature: Buffer,
): MaybePromise<boolean> {
  requireSigning(operation, 'verification')
  const context = contextOf(derivation)
  return after(sourceOf(operation), (source) => operation.context.derived.verify(source, context, input, signature))
}

/** The public key of the Ed25519 key derived from the context, 32 bytes. */
export const derivedPoint = (operation: Omit<VersionOperation, 'warn'>, derivation: Buffer): MaybePromise<Buffer> =>
  after(sourceOf(operation), (source) => operation.context.derived.publicKey(source, derivation))

/** @throws ApiError 400 when the context is missing */
function contextOf(derivation: Buffer | undefined): Buffer {
  if (derivation !== undefined && derivation.length > 0) return derivation
  throw badRequest(
    "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key",
  )
}

function requireSigning(operation: VersionOperation, what: 'signing' | 'verification'): void {
  const { signature, name } = approved(operation)
  if (signature === undefined) throw badRequest(`key type ${name} does not support ${what}`)
}

function sourceOf({ context, ring, version }: Omit<VersionOperation, 'warn'>): MaybePromise<Source> {
  if (version.prkMaterial === null) throw new Error(`version ${version.version} of key ${ring.key.id} has no PRK`)
  return after(context.material(version.prkMaterial), (prk) => ({ prk, kdf: ring.key.kdf as Kdf }))
}

/** The key's type, with a warning if FIPS mode does not approve it. */
function approved({ context, ring, warn }: VersionOperation): Algorithm {
  const algorithm = algorithmOf(ring.key.type)
  context.approval.warn(warn, algorithm)
  return algorithm
}
