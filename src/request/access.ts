import { explain, type Verdict } from '../auth/acl/decide.ts'
import { ApiError } from '../errors.ts'
import type { RawRequest } from './exchange.ts'

/** The credential of a request: X-Vault-Token, or else `Authorization: Bearer …`; empty when there is neither. */
export function credentialOf(headers: RawRequest['headers']): string {
  const token = headers['x-vault-token']
  if (typeof token === 'string' && token !== '') return token
  const { authorization } = headers
  if (typeof authorization !== 'string' || !authorization.startsWith('Bearer ')) return ''
  return authorization.slice('Bearer '.length).trim()
}

/** 403 for a missing or bad token: the plain text clients match on. */
export const notAuthenticated = (): ApiError => new ApiError(403, 'permission denied')

/** 403 of the policies: first the reference's exact text, then the rule that said no. */
export const notAuthorised = (verdict: Verdict, path: string): ApiError =>
  new ApiError(403, ['1 error occurred:\n\t* permission denied\n\n', explain(verdict, path)])
