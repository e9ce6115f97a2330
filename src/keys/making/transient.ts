import type { KeyObject } from 'node:crypto'
import { badRequest } from '../../errors.ts'
import type { PairAlgorithm } from '../algorithms/algorithm.ts'
import { ed25519Pair } from '../algorithms/ed25519.ts'
import { pairAlgorithm } from '../algorithms.ts'
import { decodePublicKey, encodePublicKey } from '../publickey.ts'
import type { Approval } from '../use/approval.ts'
import { checkMade } from './making.ts'
import { writePkcs8 } from './pair.ts'
import { destroyPair, generateReadable, readTokenPair } from './readable.ts'
import { PairStock, type PairStockOptions } from './stock.ts'

/** A key pair that was made to be handed out, and is stored nowhere. */
export interface TransientPair {
  /** The key type. */
  readonly algorithm: string
  /** PrivateKeyInfo (RFC 5208), DER; the caller wipes it. */
  readonly pkcs8: Buffer
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer
  /** Decoded when it is first asked for. */
  readonly publicKey: KeyObject
}

export interface TransientPairsOptions extends PairStockOptions {
  readonly approval: Approval
  readonly strict: boolean
}

/** Pairs for leaf certificates: made in the token, read once, destroyed there. No row names them. */
export class TransientPairs implements Disposable {
  /** Of types that take long to make. */
  readonly stock: PairStock
  readonly #options: TransientPairsOptions

  constructor(options: TransientPairsOptions) {
    this.#options = options
    this.stock = new PairStock(options)
  }

  /**
   * @param type of the table of algorithms, a pair's
   * @throws ApiError 400 for another type, or naming what the HSM lacks; 503 while it is away
   */
  async make(type: string): Promise<TransientPair> {
    const { approval, strict, capabilities } = this.#options
    const algorithm = pairAlgorithm(type)
    if (algorithm === undefined) throw badRequest(`unknown key type ${type}`)
    checkMade(algorithm)
    approval.checkNew(algorithm)
    if (!strict && algorithm.hostable && !capabilities.supports(algorithm.using)) return this.#onHost(algorithm)
    const { hsm } = this.#options
    const pair = await (algorithm.slow ? this.stock.take(algorithm) : generateReadable(this.#options, algorithm))
    try {
      const { inner, spki } = await readTokenPair(this.#options, algorithm, pair)
      return transient(algorithm, inner, spki)
    } finally {
      await destroyPair(hsm, pair)
    }
  }

  /** Destroys the pairs kept ready. */
  [Symbol.dispose](): void {
    this.stock[Symbol.dispose]()
  }

  /** Makes the pair from a seed of the token's randomness, where it lacks the algorithm. */
  async #onHost(algorithm: PairAlgorithm): Promise<TransientPair> {
    const pair = ed25519Pair(await this.#options.hsm.random(algorithm.sizeBytes))
    return transient(algorithm, pair.inner, encodePublicKey(pair.publicKey))
  }
}

/** Owns and wipes `inner`. */
function transient(algorithm: PairAlgorithm, inner: Buffer, spki: Buffer): TransientPair {
  const pkcs8 = writePkcs8({ algorithm, inner })
  inner.fill(0)
  let publicKey: KeyObject | undefined
  return {
    algorithm: algorithm.name,
    pkcs8,
    spki,
    get publicKey() {
      publicKey ??= decodePublicKey(spki)
      return publicKey
    },
  }
}
