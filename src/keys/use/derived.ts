import { createHmac, createPublicKey, sign as signOnHost, verify as verifyOnHost } from 'node:crypto'
import { after } from '../../after.ts'
import { pointOf } from '../../crypto/edwards.ts'
import { withoutStackTraces } from '../../crypto/stacktraces.ts'
import type { MaybePromise } from '../../route.ts'
import type { Aead } from '../algorithms/algorithm.ts'
import { seedKey } from '../algorithms/ed25519.ts'
import type { Cipher, Plain, Sealed } from './cipher.ts'
import { type Derivation, derivedBytes, type Source } from './derivation.ts'
import { checkSealing, ivBytes, openOnHost, type Sealing, sealOnHost } from './hostcipher.ts'
import { freshIv } from './iv.ts'

/**
 * Where the nonce of a derived key's message comes from. 0: random. 1: the caller. 2: HMAC of the plaintext under the
 * context. 3: HMAC of the plaintext under a key that is derived too. All but 0 give equal ciphertexts for equal
 * plaintexts.
 */
export type Convergence = 0 | 1 | 2 | 3

/** A plaintext and the context whose key encrypts it; `iv` only under convergence 1. */
export interface DerivedPlain extends Plain {
  readonly context: Uint8Array
  readonly convergence: Convergence
}

/** Work with keys that are derived from a context: on the host, since they are in memory anyway (derivation.ts). */
export class Derived {
  readonly #derivation: Derivation
  readonly #cipher: Pick<Cipher, 'count'>

  /** @param cipher counts encryptions, those of all derived keys of a version together */
  constructor(derivation: Derivation, cipher: Pick<Cipher, 'count'>) {
    this.#derivation = derivation
    this.#cipher = cipher
  }

  /** @param root id of the material whose encryptions are counted @throws ApiError 400 in strict mode */
  encrypt(root: string, source: Source, aead: Aead, plain: DerivedPlain): MaybePromise<Sealed> {
    const { context, convergence } = plain
    return after(this.#cipher.count(root), (warning) =>
      this.#derivation.lend(source, context, convergence === 3 ? 64 : 32, (key) => {
        const iv = nonceOf(plain, key, aead)
        return { iv, sealed: sealOnHost(aead, key.subarray(0, aead.secretBytes), iv, plain), warning }
      }),
    )
  }

  /** @throws ApiError 400 with the type's one text; in strict mode */
  decrypt(source: Source, aead: Aead, context: Uint8Array, sealing: Sealing): MaybePromise<Buffer> {
    checkSealing(aead, sealing)
    return this.#derivation.lend(source, context, 32, (key) =>
      openOnHost(aead, key.subarray(0, aead.secretBytes), sealing),
    )
  }

  /** Pure Ed25519 with the key whose seed is derived (RFC 8032). @throws ApiError 400 in strict mode */
  sign(source: Source, context: Uint8Array, input: Uint8Array): MaybePromise<{ signature: Buffer; point: Buffer }> {
    return this.#derivation.lend(source, context, 32, (seed) => {
      const key = seedKey(seed)
      return { signature: signOnHost(null, input, key), point: pointOf(createPublicKey(key)) }
    })
  }

  /** A wrong signature is false. @throws ApiError 400 in strict mode */
  verify(source: Source, context: Uint8Array, input: Uint8Array, signature: Uint8Array): MaybePromise<boolean> {
    return this.#derivation.lend(source, context, 32, (seed) =>
      verifyOnHost(null, input, createPublicKey(seedKey(seed)), signature),
    )
  }

  /** 32 bytes: the public half of the Ed25519 key that the context gives. @throws ApiError 400 in strict mode */
  publicKey(source: Source, context: Uint8Array): MaybePromise<Buffer> {
    return this.#derivation.lend(source, context, 32, (seed) => pointOf(createPublicKey(seedKey(seed))))
  }
}

function nonceOf({ iv, context, convergence, plaintext }: DerivedPlain, key: Buffer, aead: Aead): Uint8Array {
  const macOf = (secret: Uint8Array) =>
    withoutStackTraces(() => createHmac('sha256', secret).update(plaintext).digest()).subarray(0, ivBytes)
  if (convergence === 0) return freshIv()
  if (convergence === 2) return macOf(context)
  // The reference reads one stream: the cipher's key, which may be shorter than 32 bytes, then the MAC's 32 bytes.
  if (convergence === 3) return macOf(key.subarray(aead.secretBytes, aead.secretBytes + derivedBytes))
  if (iv === undefined) throw new Error('convergent version 1 without a nonce')
  return iv
}
