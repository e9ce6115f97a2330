import { after } from '../../after.ts'
import { wiping } from '../../crypto/wiping.ts'
import { badRequest } from '../../errors.ts'
import type { Capabilities } from '../../hsm/capabilities.ts'
import { CKM } from '../../hsm/constants.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { MaybePromise } from '../../route.ts'
import type { Handles } from '../live/handles.ts'
import type { Material } from '../material.ts'

/** How keys are derived from contexts, by its name on the wire: RFC 5869, or SP 800-108 section 4.1 for old keys. */
export type Kdf = 'hkdf_sha256' | 'hmac-sha256-counter'

/** The source of derived keys: an HMAC key in the token, extracted from the root (extraction.ts). */
export interface Source {
  readonly prk: Material
  readonly kdf: Kdf
}

const hmac = { type: CKM.SHA256_HMAC }
/** Bytes of one HMAC. */
export const derivedBytes = 32

/** @throws ApiError 400 in strict mode: a derived key is in the server's memory while it is used */
export function refuseStrict(strict: boolean, capabilities: Pick<Capabilities, 'missing'>): void {
  if (!strict) return
  throw badRequest(
    `strict mode: derived keys would be in the server's memory, since the HSM lacks ${capabilities.missing('hkdf')}`,
  )
}

/**
 * Keys derived from a context: computed by HMACs in the token, in memory for one call and wiped. The root stays in it.
 */
export class Derivation {
  readonly #options: { hsm: Hsm; handles: Handles; strict: boolean }

  constructor(options: { hsm: Hsm; handles: Handles; strict: boolean }) {
    this.#options = options
  }

  /**
   * Derives 32 or 64 bytes, of which the first 32 are the same, lends them to `work` and wipes them.
   * @throws ApiError 400 in strict mode, and for more bytes than the KDF gives
   */
  lend<T>(
    { prk, kdf }: Source,
    context: Uint8Array,
    bytes: 32 | 64,
    work: (key: Buffer) => MaybePromise<T>,
  ): MaybePromise<T> {
    const { hsm, strict } = this.#options
    refuseStrict(strict, hsm.capabilities)
    if (kdf === 'hkdf_sha256') return this.#expand(prk, context, bytes, work)
    if (bytes > derivedBytes) throw badRequest(`could not derive key: ${kdf} gives ${derivedBytes} bytes`)
    return this.#lendMac(prk, counterInput(context), work)
  }

  /** RFC 5869 section 2.3: T(1) = HMAC(PRK, info ‖ 1), T(2) = HMAC(PRK, T(1) ‖ info ‖ 2). */
  #expand<T>(prk: Material, info: Uint8Array, bytes: 32 | 64, work: (key: Buffer) => MaybePromise<T>): MaybePromise<T> {
    return this.#lendMac(prk, Buffer.concat([info, one]), (first) => {
      if (bytes === derivedBytes) return work(first)
      const message = Buffer.concat([first, info, two])
      return wiping(message, () =>
        this.#lendMac(prk, message, (second) => {
          const both = Buffer.concat([first, second])
          return wiping(both, () => work(both))
        }),
      )
    })
  }

  #lendMac<T>(prk: Material, message: Uint8Array, work: (mac: Buffer) => MaybePromise<T>): MaybePromise<T> {
    const { hsm, handles } = this.#options
    const mac = handles.use(prk, (key) => hsm.sign(key, hmac, message, derivedBytes))
    return after(mac, (bytes) => wiping(bytes, () => work(bytes)))
  }
}

const one = Buffer.from([1])
const two = Buffer.from([2])

/** Counter (from 0 here) ‖ context ‖ length in bits, both as 32 bits: one block. */
function counterInput(context: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(8 * derivedBytes)
  return Buffer.concat([Buffer.alloc(4), context, length])
}
