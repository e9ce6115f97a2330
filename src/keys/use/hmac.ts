import { createHmac } from 'node:crypto'
import type { Hash } from '../../crypto/hashes.ts'
import { badRequest } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { mechanismName } from '../../hsm/mechanism.ts'
import type { MaybePromise } from '../../route.ts'
import { mechanismsOf } from '../algorithms/hashmechanisms.ts'
import type { Blobs } from '../live/blobs.ts'
import type { Handles } from '../live/handles.ts'
import { inexact, isFilledUp, paddedBytes, takes } from '../making/padding.ts'
import type { Material } from '../material.ts'
import { heldBytes, type Opening, type SecretOwner } from '../materials/opening.ts'
import { nameRefusal } from './refusal.ts'

export interface HmacOptions {
  readonly hsm: Hsm
  readonly blobs: Blobs
  readonly handles: Handles
  readonly opening: Opening
  readonly strict: boolean
}

/** Why a secret must be opened in memory for an HMAC that the token cannot make with it as it is. */
export interface Obstacle {
  /** In words, naming the length or the mechanism. */
  readonly why: string
  /** A remedy, if there is one. */
  readonly remedy: string
  /** once: the secret is padded, and the token serves it from then on; always: it is opened for each HMAC. */
  readonly opened: 'once' | 'always'
}

/** HMACs with a material's secret: in the token, or with a secret that is opened where the token cannot. */
export class Hmacs {
  readonly #options: HmacOptions

  constructor(options: HmacOptions) {
    this.#options = options
  }

  /** Whether the token makes such HMACs with the secret as it lies there. */
  native({ algorithm, row, id }: Material, hash: Hash): boolean {
    if (algorithm.mac === undefined) throw new Error(`material ${id} is no HMAC secret`)
    const shortest = this.#options.hsm.capabilities.shortestHmacKey(mechanismsOf(hash).hmac.type)
    return shortest !== undefined && heldBytes(row) >= shortest
  }

  /**
   * An HMAC made in the token. @returns `hash.bytes` bytes @throws ApiError 400 naming the mechanism that the token
   * refuses
   */
  mac(material: Material, hash: Hash, input: Uint8Array): MaybePromise<Buffer> {
    const { hsm, handles } = this.#options
    const { hmac } = mechanismsOf(hash)
    return nameRefusal(mechanismName(hmac.type), () =>
      handles.use(material, (key) => hsm.sign(key, hmac, input, hash.bytes)),
    )
  }

  /**
   * An HMAC that the token cannot make with the secret as it is, which is opened at the first one.
   * @param owner the key that the secret belongs to, used in the transaction that records it
   * @throws ApiError 400 in strict mode, saying what the token lacks
   */
  async macOpened(material: Material, hash: Hash, input: Uint8Array, owner: SecretOwner): Promise<Buffer> {
    const { strict, opening, blobs } = this.#options
    if (strict) throw this.refusal('strict mode', material, hash)
    const open = await opening.open(material, owner)
    if (this.native(open, hash)) return this.mac(open, hash, input)
    return blobs.open(open, (secret) => createHmac(hash.node, secret).update(input).digest())
  }

  /** Why the token cannot make such an HMAC with the secret kept out of memory; undefined where it can. */
  obstacle({ row }: Material, hash: Hash): Obstacle | undefined {
    const { capabilities } = this.#options.hsm
    const { type } = mechanismsOf(hash).hmac
    const shortest = capabilities.shortestHmacKey(type)
    const always = { remedy: '', opened: 'always' } as const
    if (shortest === undefined) return { why: `the HSM lacks ${mechanismName(type)}`, ...always }
    if (isFilledUp(capabilities, row.sizeBytes)) return { why: inexact, ...always }
    if (heldBytes(row) >= shortest) return undefined
    const why = `${takes(type, shortest)}, and that of version ${row.version} has ${row.sizeBytes}`
    return { why, remedy: `: key_size ${paddedBytes} serves every SHA-2`, opened: 'once' }
  }

  /** @param rule that forbids it @returns ApiError 400 naming a remedy */
  refusal(rule: string, material: Material, hash: Hash): Error {
    const { why, remedy } = this.obstacle(material, hash) ?? { why: 'the HSM makes this HMAC', remedy: '' }
    return badRequest(`${rule}: ${why}${remedy}`)
  }
}
