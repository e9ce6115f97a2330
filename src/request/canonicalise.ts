import { ApiError, badRequest } from '../errors.ts'
import type { Method } from '../route.ts'
import type { RawRequest } from './exchange.ts'
import { asksForHelp } from './help.ts'
import { bodyInput, type Input, methodOf, queryInput } from './input.ts'
import { canonicalPath } from './path.ts'

/** A request in the form that routes, policies and audit share. */
export interface CanonicalRequest {
  readonly raw: RawRequest
  readonly method: Method
  /** Without trailing slash: what routes see. */
  readonly path: string
  /** The same with a slash behind it for a list: what policies see. */
  readonly policyPath: string
  readonly input: Input
  /** Empty when none was sent. */
  readonly credential: string
  /** `?help=1`: describe the path, do nothing. */
  readonly help: boolean
}

/**
 * Brings a request into its canonical form: path, method, JSON syntax.
 * @throws {ApiError} 4xx for an unreadable request
 */
export function canonicalise(raw: RawRequest): CanonicalRequest {
  refuseUnsupported(raw.headers)
  const { path, trailingSlash } = canonicalPath(raw.rawPath)
  const query = raw.query === '' ? undefined : new URLSearchParams(raw.query)
  const method = methodOf(raw.method, query)
  if (path === '') throw new ApiError(404, [])
  const writes = method === 'POST' || method === 'PATCH'
  if (writes && trailingSlash) throw badRequest("cannot write to a path ending in '/'")
  const contentType = raw.headers['content-type']
  const input = writes
    ? bodyInput(method, typeof contentType === 'string' ? contentType : '', raw.body)
    : queryInput(query)
  const policyPath = method === 'LIST' ? `${path}/` : path
  return { raw, method, path, policyPath, input, credential: credentialOf(raw.headers), help: asksForHelp(query) }
}

/** A header that would change the meaning of the answer is refused where it is not supported, never ignored. */
function refuseUnsupported(headers: RawRequest['headers']): void {
  if (headers['x-vault-wrap-ttl'] || headers['x-vault-wrap-format']) {
    throw badRequest(
      'response wrapping is not available on this server: send no X-Vault-Wrap-TTL or X-Vault-Wrap-Format',
    )
  }
  const namespace = headers['x-vault-namespace']
  if (namespace !== undefined && !/^\/?(?:root)?\/?$/.test(String(namespace))) {
    throw new ApiError(404, 'namespace not found')
  }
}

/** X-Vault-Token, or else `Authorization: Bearer …`; empty when there is neither. */
function credentialOf(headers: RawRequest['headers']): string {
  const token = headers['x-vault-token']
  if (typeof token === 'string' && token !== '') return token
  const { authorization } = headers
  if (typeof authorization !== 'string' || !authorization.startsWith('Bearer ')) return ''
  return authorization.slice('Bearer '.length).trim()
}
