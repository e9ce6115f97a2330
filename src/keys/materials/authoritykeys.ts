import { badRequest } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { PairAlgorithm } from '../algorithms/algorithm.ts'
import { pairAlgorithm } from '../algorithms.ts'
import { incomingPair, incomingReadable } from '../making/incomingkey.ts'
import { checkMade } from '../making/making.ts'
import { identifyPair, readPair, wipePair, writePkcs8 } from '../making/pair.ts'
import { destroyPair, generateReadable, readTokenPair } from '../making/readable.ts'
import type { Draft, Specification } from './draft.ts'
import type { Materials } from './materials.ts'

/** An authority's key that is to be made. */
export interface WantedKey {
  /** A pair's type. */
  readonly algorithm: string
  /** Where it is to live; by default as chooseResidence decides. */
  readonly residence?: 'wrapped' | 'token' | undefined
  readonly createdBy: string
}

/** A key whose private half was handed out. */
export interface ExportedKey {
  readonly draft: Draft
  /** PrivateKeyInfo (RFC 5208), DER; the caller wipes it. */
  readonly pkcs8: Buffer
}

/**
 * Keys of certificate authorities: they only sign, in the token too, and are never under a KEK that lets keys out. Each
 * method returns a draft, which `Materials.insert` stores with its owner.
 */
export class AuthorityKeys {
  readonly #hsm: Hsm
  readonly #materials: Materials

  constructor({ hsm, materials }: { hsm: Hsm; materials: Materials }) {
    this.#hsm = hsm
    this.#materials = materials
  }

  /** A new key whose private half is never handed out. @throws ApiError 400 naming the rule, or what the HSM lacks */
  prepare({ algorithm, residence, createdBy }: WantedKey): Promise<Draft> {
    return this.#materials.prepare({ ...specify(madeType(algorithm), createdBy), residence })
  }

  /**
   * A new key that is read once, for the caller, and wrapped so that it never leaves again.
   * @throws ApiError 400 as `prepare`, and for residence `token`
   */
  async prepareExported({ algorithm: type, residence, createdBy }: WantedKey): Promise<ExportedKey> {
    if (residence === 'token')
      throw badRequest('a key that lives in the HSM alone cannot be handed out: residence is token')
    const algorithm = madeType(type)
    const source = { hsm: this.#hsm, capabilities: this.#hsm.capabilities }
    const pair = await generateReadable(source, algorithm)
    try {
      const { inner, spki } = await readTokenPair(source, algorithm, pair)
      try {
        const given = incomingReadable({ key: pair.privateKey, inner, spki })
        const draft = await this.#materials.prepare({ ...specify(algorithm, createdBy), given })
        return { draft, pkcs8: writePkcs8({ algorithm, inner }) }
      } finally {
        inner.fill(0)
      }
    } finally {
      await destroyPair(this.#hsm, pair)
    }
  }

  /**
   * A key from outside.
   * @param pkcs8 wiped by the caller
   * @throws ApiError 400 saying what is wrong with it, never its value
   */
  async prepareImported(pkcs8: Buffer, createdBy: string): Promise<Draft> {
    const algorithm = identifyPair(pkcs8)
    const pair = await readPair(algorithm, pkcs8)
    try {
      return await this.#materials.prepare({ ...specify(algorithm, createdBy), given: incomingPair('imported', pair) })
    } finally {
      wipePair(pair)
    }
  }
}

/** @throws ApiError 400 */
function madeType(name: string): PairAlgorithm {
  const algorithm = pairAlgorithm(name)
  if (algorithm === undefined) throw badRequest(`unknown key type ${name}`)
  checkMade(algorithm)
  return algorithm
}

const specify = ({ name }: PairAlgorithm, createdBy: string): Specification => ({
  algorithm: name,
  exportable: false,
  part: 'authority',
  createdBy,
})
