import { after } from '../../after.ts'
import { badRequest } from '../../errors.ts'
import { HsmRefusal } from '../../hsm/faults.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Counter } from '../../metrics.ts'
import type { MaybePromise } from '../../route.ts'
import type { Aead, Algorithm } from '../algorithms/algorithm.ts'
import type { Blobs } from '../live/blobs.ts'
import type { Handles } from '../live/handles.ts'
import type { Material } from '../material.ts'
import { checkSealing, openOnHost, type Sealing, sealOnHost, tagBytes } from './hostcipher.ts'
import { freshIv } from './iv.ts'
import { type Usage, usageLimit, usageWarning } from './usage.ts'

const tagBits = 8 * tagBytes

export interface Plain {
  readonly plaintext: Uint8Array
  readonly aad?: Uint8Array | undefined
  /** 12 bytes, if the caller's rules derive it (convergent encryption); otherwise random. */
  readonly iv?: Uint8Array | undefined
}

/** iv ‖ sealed is the payload on the wire; 12 bytes are 16 base64 digits, so that each may be encoded by itself. */
export interface Sealed {
  readonly iv: Uint8Array
  /** Ciphertext with the tag at its end. */
  readonly sealed: Buffer
  /** The key version has been used so often that it should be rotated. */
  readonly warning: string | undefined
}

export interface CipherOptions {
  readonly hsm: Hsm
  readonly blobs: Blobs
  readonly handles: Handles
  readonly usage: Usage
  readonly strict: boolean
  /** Encryptions that were answered with a warning. */
  readonly overused: Counter
}

/**
 * Authenticated encryption with a material: in the token, or by the host's OpenSSL where the token lacks the algorithm.
 */
export class Cipher {
  readonly #options: CipherOptions

  constructor(options: CipherOptions) {
    this.#options = options
  }

  /**
   * @throws ApiError 400 when the key's type cannot encrypt, or in strict mode after 2^32 encryptions
   */
  encrypt(material: Material, plain: Plain): MaybePromise<Sealed> {
    const aead = aeadOf(material.algorithm, 'encryption')
    return after(this.count(material.id), (warning) => this.#encrypt(material, aead, plain, warning))
  }

  /** @throws ApiError 400 with the type's one text for any failure */
  decrypt(material: Material, sealing: Sealing): MaybePromise<Buffer> {
    const { algorithm } = material
    const aead = aeadOf(algorithm, 'decryption')
    checkSealing(aead, sealing)
    const { hsm, handles, blobs } = this.#options
    if (!hsm.capabilities.supports(algorithm.using))
      return blobs.open(material, (key) => openOnHost(aead, key, sealing))
    const mechanism = { type: algorithm.mechanism, gcm: { iv: sealing.iv, aad: sealing.aad, tagBits } }
    let plaintext: MaybePromise<Buffer>
    try {
      plaintext = handles.use(material, (key) => hsm.decrypt(key, mechanism, sealing.sealed))
    } catch (error) {
      throw uniform(error, aead)
    }
    if (!(plaintext instanceof Promise)) return plaintext
    return plaintext.catch((error) => {
      throw uniform(error, aead)
    })
  }

  /**
   * Counts an encryption under the material. @param counter where several materials are one key @returns a warning when
   * there were too many
   * @throws ApiError 400 in strict mode after 2^32
   */
  count(material: string, counter: string = material): MaybePromise<string | undefined> {
    const { usage, strict, overused } = this.#options
    return after(usage.take(material, counter), (number) => {
      if (strict && number > usageLimit) {
        throw badRequest('this key version has encrypted 2^32 times, as often as SP 800-38D allows: rotate the key')
      }
      if (number <= usageWarning) return undefined
      overused.value++
      return 'this key version has encrypted more than 2^31 times: rotate the key'
    })
  }

  #encrypt(material: Material, aead: Aead, plain: Plain, warning: string | undefined): MaybePromise<Sealed> {
    const { hsm, handles, blobs } = this.#options
    const { algorithm } = material
    const iv = plain.iv ?? freshIv()
    const mechanism = { type: algorithm.mechanism, gcm: { iv, aad: plain.aad, tagBits } }
    const sealed = hsm.capabilities.supports(algorithm.using)
      ? handles.use(material, (key) => hsm.encrypt(key, mechanism, plain.plaintext))
      : blobs.open(material, (key) => sealOnHost(aead, key, iv, plain))
    return sealed instanceof Promise
      ? sealed.then((value) => ({ iv, sealed: value, warning }))
      : { iv, sealed, warning }
  }
}

/** @throws ApiError 400 when keys of the type do not encrypt */
export function aeadOf({ aead, name }: Algorithm, what: 'encryption' | 'decryption'): Aead {
  if (aead !== undefined) return aead
  throw badRequest(`message ${what} not supported for key type ${name}`)
}

/** A wrong tag gives the same text with every token and on the host. */
const uniform = (error: unknown, { failure }: Aead): unknown =>
  error instanceof HsmRefusal ? badRequest(failure, { cause: error }) : error
