import { ApiError, badRequest } from '../../../errors.ts'
import { type Authority, type Issuer, isDefault } from './authority.ts'
import type { KeyRow } from './tables.ts'

/** Clients match on the beginnings of these two texts. */
const unknownIssuer = (reference: string): string => `unable to find PKI issuer for reference: ${reference}`
const unknownKey = (reference: string): string => `unable to find PKI key for reference: ${reference}`

/**
 * The issuer of a reference.
 * @param status of the refusal: 404 for reads, 400 for operations
 * @throws ApiError
 */
export function issuerOf(authority: Authority, reference: string, status: 400 | 404 = 400): Issuer {
  const issuer = authority.findIssuer(reference)
  if (issuer !== undefined) return issuer
  if (isDefault(reference)) throw badRequest('no default issuer currently configured')
  throw new ApiError(status, unknownIssuer(reference))
}

/** The issuer that is to become the default one. @throws ApiError 400 */
export function newDefaultIssuer(authority: Authority, reference: string): Issuer {
  return authority.findIssuer(reference) ?? unresolved(unknownIssuer(reference))
}

/** The key that is to become the default one. @throws ApiError 400 */
export function newDefaultKey(authority: Authority, reference: string): KeyRow {
  return authority.findKey(reference) ?? unresolved(unknownKey(reference))
}

/** The reference implementation says `issuer` for keys too. */
function unresolved(text: string): never {
  throw badRequest(`Error resolving issuer reference: ${text}`)
}

/** The key of a reference. @throws ApiError as issuerOf */
export function keyOf(authority: Authority, reference: string, status: 400 | 404 = 400): KeyRow {
  const key = authority.findKey(reference)
  if (key !== undefined) return key
  if (isDefault(reference)) throw badRequest('no default key currently configured')
  throw new ApiError(status, unknownKey(reference))
}
