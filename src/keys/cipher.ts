import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto'
import { badRequest } from '../errors.ts'
import { HsmRefusal } from '../hsm/faults.ts'
import type { Hsm } from '../hsm/hsm.ts'
import type { Counter } from '../metrics.ts'
import type { MaybePromise } from '../route.ts'
import type { Aead } from './algorithms.ts'
import type { Blobs } from './blobs.ts'
import type { Handles } from './handles.ts'
import type { Material } from './material.ts'
import { type Usage, usageLimit, usageWarning } from './usage.ts'

export const ivBytes = 12
export const tagBytes = 16
const tagBits = 8 * tagBytes

export interface Plain {
  readonly plaintext: Uint8Array
  readonly aad?: Uint8Array | undefined
  /** Only where the caller's rules derive it (convergent encryption): 12 bytes; otherwise random. */
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

/** Authenticated encryption with a material: in the token, or by the host's OpenSSL where the token lacks the algorithm. */
export class Cipher {
  readonly #options: CipherOptions

  constructor(options: CipherOptions) {
    this.#options = options
  }

  /**
   * @throws ApiError 400 when the key's type cannot encrypt, or in strict mode after 2^32 encryptions
   */
  encrypt(material: Material, plain: Plain): MaybePromise<Sealed> {
    const algorithm = aead(material, 'encryption')
    const count = this.#options.usage.take(material.id)
    return count instanceof Promise
      ? count.then((number) => this.#encrypt(material, algorithm, plain, number))
      : this.#encrypt(material, algorithm, plain, count)
  }

  /** @throws ApiError 400 with the type's one text, whatever was wrong */
  decrypt(
    material: Material,
    input: { iv: Uint8Array; sealed: Uint8Array; aad?: Uint8Array | undefined },
  ): MaybePromise<Buffer> {
    const algorithm = aead(material, 'decryption')
    if (input.iv.length !== ivBytes || input.sealed.length < tagBytes) throw badRequest(algorithm.failure)
    const { hsm, handles, blobs } = this.#options
    if (!hsm.capabilities.supports(algorithm.using)) return blobs.open(material, (key) => open(algorithm, key, input))
    const mechanism = { type: algorithm.mechanism, gcm: { iv: input.iv, aad: input.aad, tagBits } }
    let plaintext: MaybePromise<Buffer>
    try {
      plaintext = handles.use(material, (key) => hsm.decrypt(key, mechanism, input.sealed))
    } catch (error) {
      throw uniform(error, algorithm)
    }
    if (!(plaintext instanceof Promise)) return plaintext
    return plaintext.catch((error) => {
      throw uniform(error, algorithm)
    })
  }

  #encrypt(material: Material, algorithm: Aead, plain: Plain, count: number): MaybePromise<Sealed> {
    const { hsm, handles, blobs, strict } = this.#options
    if (strict && count > usageLimit) {
      throw badRequest('this key version has encrypted 2^32 times, as often as SP 800-38D allows: rotate the key')
    }
    const warning =
      count > usageWarning ? 'this key version has encrypted more than 2^31 times: rotate the key' : undefined
    if (warning !== undefined) this.#options.overused.value++
    const iv = plain.iv ?? freshIv()
    const mechanism = { type: algorithm.mechanism, gcm: { iv, aad: plain.aad, tagBits } }
    const sealed = hsm.capabilities.supports(algorithm.using)
      ? handles.use(material, (key) => hsm.encrypt(key, mechanism, plain.plaintext))
      : blobs.open(material, (key) => close(algorithm, key, iv, plain))
    return sealed instanceof Promise
      ? sealed.then((value) => ({ iv, sealed: value, warning }))
      : { iv, sealed, warning }
  }
}

function aead(material: Material, what: 'encryption' | 'decryption'): Aead {
  const { algorithm } = material
  if (algorithm.kind === 'aead') return algorithm
  throw badRequest(`message ${what} not supported for key type ${algorithm.name}`)
}

/** A tag that does not fit reads the same on every token and on the host. */
const uniform = (error: unknown, algorithm: Aead): unknown =>
  error instanceof HsmRefusal ? badRequest(algorithm.failure, { cause: error }) : error

function close(algorithm: Aead, key: Buffer, iv: Uint8Array, plain: Plain): Buffer {
  // The one type for OpenSSL's three names: node:crypto's declarations know each name as another kind of cipher.
  const cipher = createCipheriv(algorithm.host as 'aes-256-gcm', key, iv, { authTagLength: tagBytes })
  if (plain.aad) cipher.setAAD(plain.aad)
  return Buffer.concat([cipher.update(plain.plaintext), cipher.final(), cipher.getAuthTag()])
}

function open(
  algorithm: Aead,
  key: Buffer,
  input: { iv: Uint8Array; sealed: Uint8Array; aad?: Uint8Array | undefined },
): Buffer {
  const { iv, sealed, aad } = input
  const decipher = createDecipheriv(algorithm.host as 'aes-256-gcm', key, iv, { authTagLength: tagBytes })
  if (aad) decipher.setAAD(aad)
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes))
  const head = decipher.update(sealed.subarray(0, sealed.length - tagBytes))
  try {
    return Buffer.concat([head, decipher.final()])
  } catch (error) {
    throw badRequest(algorithm.failure, { cause: error })
  }
}

const pool = Buffer.alloc(ivBytes * 512)
let taken = pool.length

/**
 * 96 random bits from the process's own CSPRNG (OpenSSL's, seeded by the kernel after the process was spawned, so that no two
 * workers share a state), 512 at a time: 0.1 µs, where C_GenerateRandom is a call into the token, and over a network a
 * round trip, for every message. An IV is public; it must only never repeat.
 */
function freshIv(): Buffer {
  if (taken === pool.length) {
    randomFillSync(pool)
    taken = 0
  }
  const iv = Buffer.from(pool.subarray(taken, taken + ivBytes))
  taken += ivBytes
  return iv
}
