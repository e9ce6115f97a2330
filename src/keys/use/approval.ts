import type { Hash } from '../../crypto/hashes.ts'
import { badRequest } from '../../errors.ts'
import type { Algorithm } from '../algorithms/algorithm.ts'

/**
 * FIPS mode: only keys of types on a list of our own are made (`fips` of an Algorithm), and SHA-1 does not sign;
 * anything else that is not listed may still be used, with a warning. The list is the specification's, and narrower
 * than the standards: FIPS 186-5 approves Ed25519 too, and FIPS 202 SHA-3.
 */
export class Approval {
  readonly #fips: boolean

  constructor(fips: boolean) {
    this.#fips = fips
  }

  /** Called before a key is made, imported or restored. @throws ApiError 400 for a type that is not approved */
  checkNew({ name, fips }: Algorithm): void {
    if (this.#fips && !fips) throw badRequest(`FIPS mode: ${name} keys are not approved`)
  }

  /** @throws ApiError 400 for SHA-1 */
  checkSigning(hash: Hash | undefined): void {
    if (this.#fips && hash?.family === 'sha1') throw badRequest('FIPS mode: sha1 signatures are not approved')
  }

  /** Warns of each that is not approved; undefined is skipped. */
  warn(warn: (text: string) => void, ...used: readonly (Algorithm | Hash | undefined)[]): void {
    if (!this.#fips) return
    for (const one of used) if (one?.fips === false) warn(`FIPS mode: ${one.name} is not approved`)
  }
}
