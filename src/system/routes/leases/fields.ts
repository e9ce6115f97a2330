import { type ApiError, badRequest } from '../../../errors.ts'
import { text } from '../../../field.ts'
import { isTokenLease } from './tokens.ts'

export const leaseId = text({ about: 'The lease; in the path or here.' })

type Params = Readonly<Record<string, string>>

/** The lease id in the path, or else in the body. */
export function leaseIdOf({ params, body }: { readonly params: Params; readonly body: { lease_id?: string } }): string {
  const id = params.lease_id || body.lease_id
  if (!id) throw badRequest('lease_id must be specified')
  return id
}

/** The operator must not believe that tokens were revoked. */
const noTokenRevoked = (): ApiError =>
  badRequest('no token was revoked: use auth/token/revoke, auth/token/revoke-accessor or auth/token/accessors')

/** The prefix in the path, as a folder. */
export function prefixOf({ params }: { readonly params: Params }): string {
  const prefix = `${params.prefix ?? ''}/`
  if (isTokenLease(prefix)) throw noTokenRevoked()
  return prefix
}
