import { badRequest } from '../../../errors.ts'
import { type Authority, type Issuer, mayBeUsed } from '../authority/authority.ts'
import { issuerOf } from '../authority/references.ts'
import type { IssuerUsage, KeyRow } from '../authority/tables.ts'

/** An issuer that may be used for the request, with its private key. */
export interface AbleIssuer {
  readonly issuer: Issuer
  readonly key: KeyRow
}

/**
 * The issuer that is to sign.
 * @throws ApiError 400 for an unknown or revoked issuer, or one that may not or cannot sign
 */
export function ableIssuer(authority: Authority, reference: string, usage: IssuerUsage): AbleIssuer {
  const issuer = issuerOf(authority, reference)
  const { id, name, revokedAt, usages } = issuer.row
  if (!mayBeUsed(issuer, usage)) {
    const revoked = revokedAt === null ? '' : '; it was revoked'
    throw badRequest(
      `error fetching CA certificate: error while attempting to use issuer ${id}: requested usage ${usage} for issuer [id:${id} / name:${name ?? ''}] but only had usage ${usages.toSorted().join(',')}${revoked}`,
    )
  }
  const key = authority.keyOf(issuer)
  if (key === undefined) {
    throw badRequest(`unable to fetch corresponding key for issuer ${id}; unable to use this issuer for signing`)
  }
  return { issuer, key }
}
