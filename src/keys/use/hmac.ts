import { createHmac } from 'node:crypto'
import type { Hash } from '../../crypto/hashes.ts'
import { badRequest } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { mechanismName } from '../../hsm/mechanism.ts'
import type { MaybePromise } from '../../route.ts'
import { mechanismsOf } from '../algorithms/hashmechanisms.ts'
import type { Blobs } from '../live/blobs.ts'
import type { Handles } from '../live/handles.ts'
import { ClosedSecret } from '../making/secret.ts'
import type { Material } from '../material.ts'
import { nameRefusal } from './refusal.ts'

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
    if (material.algorithm.mac === undefined) throw new Error(`material ${material.id} is no HMAC secret`)
    const { hmac } = mechanismsOf(hash)
    const name = mechanismName(hmac.type)
    if (hash.family !== 'sha3' || hsm.capabilities.supports('sha3')) {
      return nameRefusal(name, () => handles.use(material, (key) => hsm.sign(key, hmac, input, hash.bytes)))
    }
    if (strict) throw badRequest(`strict mode: the HSM lacks ${name}`)
    return this.#onHost(material, hash, input, name)
  }

  async #onHost(material: Material, hash: Hash, input: Uint8Array, name: string): Promise<Buffer> {
    try {
      return await this.#options.blobs.open(material, (secret) => createHmac(hash.node, secret).update(input).digest())
    } catch (error) {
      // Made on a token that had the mechanism: such a secret may never leave.
      if (!(error instanceof ClosedSecret)) throw error
      throw badRequest(`the HSM lacks ${name}`, { cause: error })
    }
  }
}
