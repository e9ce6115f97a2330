import { badRequest } from '../../errors.ts'
import type { Capabilities } from '../../hsm/capabilities.ts'
import type { Algorithm } from '../algorithms/algorithm.ts'
import type { KekPurpose, Residence } from '../tables.ts'
import { refuseStrict } from '../use/derivation.ts'
import type { Exposure } from './padding.ts'

/** Where a new key will live, by the token's proven abilities alone (docs/threat-model.md, "Where a key is"). */
export interface Placement {
  readonly residence: Residence
  /** The KEK its blob is wrapped by; undefined for a token object. */
  readonly kek: KekPurpose | undefined
}

export interface Circumstances {
  readonly exportable: boolean
  readonly strict: boolean
  readonly capabilities: Pick<Capabilities, 'supports' | 'missing'>
  /** HMAC secrets: why one of that size cannot be kept out of memory. */
  readonly exposure?: Exposure | undefined
  /** Whether its HMAC secret must never be in memory. */
  readonly hmacInHsmOnly?: boolean | undefined
  /** Whether the key is a root, from which keys are derived. */
  readonly derived?: boolean | undefined
  /** The caller's choice. */
  readonly wanted?: 'wrapped' | 'token' | undefined
}

/** @throws ApiError 400 naming the mechanism that the token lacks, or the rule that refuses */
export function chooseResidence(algorithm: Algorithm, circumstances: Circumstances): Placement {
  const { exportable, strict, capabilities, derived } = circumstances
  if (circumstances.wanted === 'token') return chooseToken(algorithm, circumstances)
  if (derived) refuseStrict(strict, capabilities)
  const wrapped: Placement = { residence: 'wrapped', kek: exportable ? 'export' : 'use' }
  const enveloped: Placement = { residence: 'enveloped', kek: exportable ? 'export' : 'open' }
  const { hostable, mac } = algorithm
  // A token can digest secrets but not private keys: the HMAC key is extracted from a seed while that is open.
  if (derived && algorithm.class === 'private') return enveloped
  // A token only digests such a secret, so it need not know the algorithm.
  if (derived && capabilities.supports(algorithm.wrapping)) return wrapped
  if (!capabilities.supports(algorithm.using)) {
    if (hostable && !strict) return enveloped
    throw badRequest(`${strict ? 'strict mode: ' : ''}the HSM lacks ${capabilities.missing(algorithm.using)}`)
  }
  if (mac) return isExposed(circumstances) ? enveloped : wrapped
  if (capabilities.supports(algorithm.wrapping)) return wrapped
  if (!strict && hostable) return enveloped
  if (!exportable) return { residence: 'token', kek: undefined }
  throw badRequest(`what stays in the HSM cannot be exported, and it lacks ${capabilities.missing(algorithm.wrapping)}`)
}

/** Whether the host opens an HMAC secret each time it is loaded. @throws ApiError 400 where that is forbidden */
function isExposed({ exposure, strict, hmacInHsmOnly }: Circumstances): boolean {
  if (exposure === undefined) return false
  if (strict || hmacInHsmOnly) throw badRequest(`${strict ? 'strict mode' : 'hmac_in_hsm_only'}: ${exposure.why}`)
  return exposure.when === 'loaded'
}

/** @throws ApiError 400 */
function chooseToken(algorithm: Algorithm, { exportable, derived, capabilities }: Circumstances): Placement {
  if (algorithm.class === 'secret') throw badRequest('only key pairs live in the HSM alone')
  if (exportable || derived) throw badRequest('what lives in the HSM alone is neither exported nor derived from')
  if (!capabilities.supports(algorithm.using))
    throw badRequest(`the HSM lacks ${capabilities.missing(algorithm.using)}`)
  return { residence: 'token', kek: undefined }
}
