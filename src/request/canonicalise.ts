import { ApiError, badRequest } from '../errors.ts'
import type { BytesBody, MaybePromise, Method } from '../route.ts'
import type { RawRequest } from './exchange.ts'
import { asksForHelp } from './help.ts'
import { bodyInput, type Input, methodOf, queryInput } from './input.ts'
import { canonicalPath, cleanHead, withMount } from './path.ts'

/** The contents of the request line and headers: enough to find the route, which decides how the body is read. */
export interface RequestHead {
  readonly raw: RawRequest
  readonly method: Method
  /** Canonical; for a path with a fault, the part before the fault, which is enough to find the mount. */
  readonly path: string
  /** The refusal of the path, unless a raw rest begins before the fault. */
  readonly fault: ApiError | undefined
  readonly query: URLSearchParams | undefined
  /** Empty when none was sent. */
  readonly credential: string
  /** `?help=1`: describe the path, do nothing. */
  readonly help: boolean
}

/** A request in the form that routes, policies and audit share. */
export interface CanonicalRequest {
  readonly raw: RawRequest
  readonly method: Method
  /** Without trailing slash, for routes. */
  readonly path: string
  /** The same with a trailing slash for a list, for policies. */
  readonly policyPath: string
  /** The policy path as sent, if a name in it was folded. */
  readonly sentPolicyPath: string | undefined
  readonly input: Input
  /** The body, if the route takes bytes. */
  readonly bytes: Buffer | undefined
  /** Empty when none was sent. */
  readonly credential: string
  /** `?help=1`. */
  readonly help: boolean
}

/**
 * Brings the request line into its canonical form.
 * @throws {ApiError} 4xx for an unreadable request
 */
export function canonicalise(raw: RawRequest): RequestHead {
  refuseUnsupported(raw.headers)
  const { path, fault, trailingSlash } = pathOf(raw.rawPath)
  const query = raw.query === '' ? undefined : new URLSearchParams(raw.query)
  const method = methodOf(raw.method, query)
  if (path === '') throw new ApiError(404, [])
  const head = { raw, method, path, fault, query, credential: credentialOf(raw.headers), help: asksForHelp(query) }
  if (!trailingSlash || !writes(method)) return head
  return { ...head, fault: badRequest("cannot write to a path ending in '/'") }
}

/**
 * Reads the parameters, or the bytes.
 * @param sent the canonical path @param path the same, folded
 * @param route its declaration of the body: `bytes` if it is not JSON
 * @throws {ApiError} 400 for JSON that cannot be read, 413 for more bytes than the route takes
 */
export function readRequest(
  head: RequestHead,
  sent: string,
  path: string,
  { bytes, longestList }: { readonly bytes?: BytesBody; readonly longestList?: number },
): MaybePromise<CanonicalRequest> {
  const { raw, method, query, credential, help } = head
  const policyPath = policyPathOf(method, path)
  const sentPolicyPath = sent === path ? undefined : policyPathOf(method, sent)
  if (bytes !== undefined) {
    if (raw.body.length > bytes.maxBytes) throw new ApiError(413, 'http: request body too large')
    return { raw, method, path, policyPath, sentPolicyPath, input: noInput, bytes: raw.body, credential, help }
  }
  const contentType = raw.headers['content-type']
  const input = writes(method)
    ? bodyInput(method, typeof contentType === 'string' ? contentType : '', raw.body, longestList)
    : queryInput(query)
  if (!(input instanceof Promise)) {
    return { raw, method, path, policyPath, sentPolicyPath, input, bytes: undefined, credential, help }
  }
  const rest = { raw, method, path, policyPath, sentPolicyPath, bytes: undefined, credential, help }
  return input.then((read) => ({ ...rest, input: read }))
}

const policyPathOf = (method: Method, path: string): string => (method === 'LIST' ? `${path}/` : path)

const noInput: Input = {}
const writes = (method: Method): boolean => method === 'POST' || method === 'PATCH'

function pathOf(rawPath: string): { path: string; trailingSlash: boolean; fault?: ApiError } {
  try {
    const clean = canonicalPath(rawPath)
    return { ...clean, path: withMount(clean.path) }
  } catch (fault) {
    const path = cleanHead(rawPath)
    if (path === '' || !(fault instanceof ApiError)) throw fault
    return { path, trailingSlash: false, fault }
  }
}

/** A header that would change the meaning of the answer is refused if unsupported, never ignored. */
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
export function credentialOf(headers: RawRequest['headers']): string {
  const token = headers['x-vault-token']
  if (typeof token === 'string' && token !== '') return token
  const { authorization } = headers
  if (typeof authorization !== 'string' || !authorization.startsWith('Bearer ')) return ''
  return authorization.slice('Bearer '.length).trim()
}
