import { after } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import { type Algorithm, algorithmOf } from '../../../keys/algorithms.ts'
import { aeadOf } from '../../../keys/use/cipher.ts'
import type { Kdf, Source } from '../../../keys/use/derivation.ts'
import type { Convergence } from '../../../keys/use/derived.ts'
import { ivBytes } from '../../../keys/use/hostcipher.ts'
import type { MaybePromise } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { ignoreNonce, requireNonce } from '../input/nonce.ts'
import type { Ring } from '../ring/readring.ts'
import type { Version } from '../ring/ring.ts'

/** A version of a derived key, whose keys are made from contexts. */
export interface Root {
  readonly context: TransitContext
  readonly ring: Ring
  readonly version: Version
  warn(text: string): void
}

/** What every use of a derived key brings along. */
interface Given {
  /** The derivation context, decoded. */
  readonly derivation: Buffer | undefined
  readonly nonce: Buffer | undefined
  readonly aad: Buffer | undefined
}

/** @returns the payload of the ciphertext @throws ApiError 400 naming what is missing */
export function encryptDerived(root: Root, given: Given & { readonly plaintext: Buffer }): MaybePromise<Buffer> {
  const { derived } = root.context
  const algorithm = aeadOf(approved(root), 'encryption')
  const context = contextOf(given.derivation)
  const convergence = root.version.convergentVersion as Convergence
  if (convergence !== 1) ignoreNonce(given.nonce, root.warn)
  const iv = convergence === 1 ? requireNonce(given.nonce) : undefined
  const plain = { plaintext: given.plaintext, aad: given.aad, iv, context, convergence }
  return after(sourceOf(root), (source) =>
    after(derived.encrypt(root.version.material, source, algorithm, plain), ({ iv, sealed, warning }) => {
      if (warning) root.warn(warning)
      return convergence === 1 ? sealed : Buffer.concat([iv, sealed])
    }),
  )
}

/** @throws ApiError 400 naming what is missing, or with the one text of a ciphertext that does not fit */
export function decryptDerived(root: Root, given: Given & { readonly payload: Buffer }): MaybePromise<Buffer> {
  const { derived } = root.context
  const { payload, nonce, aad } = given
  const algorithm = aeadOf(approved(root), 'decryption')
  const context = contextOf(given.derivation)
  const callers = root.version.convergentVersion === 1
  if (callers && nonce === undefined) throw badRequest('invalid convergent nonce supplied')
  if (!callers) ignoreNonce(nonce, root.warn)
  if (!callers && payload.length < ivBytes) throw badRequest('invalid ciphertext length')
  const iv = callers ? requireNonce(nonce) : payload.subarray(0, ivBytes)
  const sealed = callers ? payload : payload.subarray(ivBytes)
  return after(sourceOf(root), (source) => derived.decrypt(source, algorithm, context, { iv, sealed, aad }))
}

/** With the Ed25519 key that the context gives. @returns `point`: its public key, 32 bytes */
export function signDerived(
  root: Root,
  derivation: Buffer | undefined,
  input: Buffer,
): MaybePromise<{ readonly signature: Buffer; readonly point: Buffer }> {
  requireSigning(root, 'signing')
  const context = contextOf(derivation)
  return after(sourceOf(root), (source) => root.context.derived.sign(source, context, input))
}

/** Whether the signature is that of the Ed25519 key that the context gives. */
export function verifyDerived(
  root: Root,
  derivation: Buffer | undefined,
  input: Buffer,
  signature: Buffer,
): MaybePromise<boolean> {
  requireSigning(root, 'verification')
  const context = contextOf(derivation)
  return after(sourceOf(root), (source) => root.context.derived.verify(source, context, input, signature))
}

/** 32 bytes: the public half of the Ed25519 key that the context gives. */
export const derivedPoint = (root: Omit<Root, 'warn'>, derivation: Buffer): MaybePromise<Buffer> =>
  after(sourceOf(root), (source) => root.context.derived.publicKey(source, derivation))

/** @throws ApiError 400 when there is none */
function contextOf(derivation: Buffer | undefined): Buffer {
  if (derivation !== undefined && derivation.length > 0) return derivation
  throw badRequest(
    "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key",
  )
}

function requireSigning(root: Root, what: 'signing' | 'verification'): void {
  const { kind, name } = approved(root)
  if (kind !== 'ed25519') throw badRequest(`key type ${name} does not support ${what}`)
}

function sourceOf({ context, ring, version }: Omit<Root, 'warn'>): MaybePromise<Source> {
  if (version.prkMaterial === null) throw new Error(`version ${version.version} of key ${ring.key.id} has no PRK`)
  return after(context.material(version.prkMaterial), (prk) => ({ prk, kdf: ring.key.kdf as Kdf }))
}

/** The key's type, with a warning where FIPS mode does not approve it. */
function approved({ context, ring, warn }: Root): Algorithm {
  const algorithm = algorithmOf(ring.key.type)
  context.approval.warn(warn, algorithm)
  return algorithm
}
