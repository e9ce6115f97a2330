import { createHmac } from 'node:crypto'
import { badRequest } from '../errors.ts'
import type { Hsm } from '../hsm/hsm.ts'
import type { MaybePromise } from '../route.ts'
import type { Blobs } from './blobs.ts'
import type { Handles } from './handles.ts'
import type { Hash } from './hashes.ts'
import type { Material } from './material.ts'
import { naming } from './naming.ts'
import { ClosedSecret } from './secret.ts'

export interface HmacOptions {
  readonly hsm: Hsm
  readonly blobs: Blobs
  readonly handles: Handles
  readonly strict: boolean
}

/** HMACs with a material's secret: in the token, or on the host for SHA-3 where the token lacks it. */
export class Hmacs {
  readonly #options: HmacOptions

  constructor(options: HmacOptions) {
    this.#options = options
  }

  /** @returns `hash.bytes` bytes @throws ApiError 400 naming the mechanism that strict mode would need in the token */
  mac(material: Material, hash: Hash, input: Uint8Array): MaybePromise<Buffer> {
    const { hsm, handles, strict } = this.#options
    if (material.algorithm.kind !== 'hmac') throw new Error(`material ${material.id} is no HMAC secret`)
    if (hash.family !== 'sha3' || hsm.capabilities.supports('sha3')) {
      const mechanism = { type: hash.hmac.mechanism }
      return naming(hash.hmac.name, () => handles.use(material, (key) => hsm.sign(key, mechanism, input, hash.bytes)))
    }
    if (strict) throw badRequest(`strict mode: the HSM lacks ${hash.hmac.name}`)
    return this.#onHost(material, hash, input)
  }

  async #onHost(material: Material, hash: Hash, input: Uint8Array): Promise<Buffer> {
    try {
      return await this.#options.blobs.open(material, (secret) => createHmac(hash.node, secret).update(input).digest())
    } catch (error) {
      // Made on a token that had the mechanism: such a secret may never leave.
      throw error instanceof ClosedSecret ? badRequest(`the HSM lacks ${hash.hmac.name}`, { cause: error }) : error
    }
  }
}
