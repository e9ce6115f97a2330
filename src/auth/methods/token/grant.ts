import { badRequest } from '../../../errors.ts'
import { newLifetime } from '../../lifetime.ts'
import { policyName } from '../../policies.ts'
import type { NewToken, TokenRow } from '../../token.ts'

/** The body of auth/token/create. */
export interface TokenRequest {
  readonly id?: string
  readonly policies?: readonly string[]
  readonly meta?: Readonly<Record<string, string>>
  readonly no_parent?: boolean
  readonly no_default_policy?: boolean
  readonly renewable?: boolean
  readonly ttl?: number
  readonly explicit_max_ttl?: number
  readonly period?: number
  readonly display_name?: string
  readonly num_uses?: number
  readonly type?: string
  readonly entity_alias?: string
}

/** Most characters of policies and metadata together: every worker caches the rows of tokens in use. */
const maxSize = 32_768
const maxNameLength = 255

/** The caller, its rights on the path that it used, and the kind of token made there. */
export interface TokenCreator {
  readonly parent: TokenRow
  /** Whether the parent is root or has sudo on the path. */
  readonly privileged: boolean
  /** `orphan` at auth/token/create-orphan, where a policy rule for the path is enough. */
  readonly kind: 'child' | 'orphan'
}

/**
 * The token to create for a request, within the rights of `parent`.
 * @throws ApiError 400 naming the rule that forbids it
 */
export function grant(
  request: TokenRequest,
  { parent, privileged, kind }: TokenCreator,
): { token: Omit<NewToken, 'path'>; warnings: string[] } {
  if (parent.numUses !== 0) throw badRequest('restricted use token cannot generate child tokens')
  checkKind(request)
  if (!privileged) checkPrivileges(request)
  const policies = grantedPolicies(request, parent, privileged)
  const root = policies.includes('root')
  if (root && !parent.policies.includes('root'))
    throw badRequest('root tokens may not be created without parent token being root')
  const { warnings, ...life } = newLifetime(
    {
      ttlSeconds: request.ttl ?? 0,
      explicitMaxTtlSeconds: request.explicit_max_ttl ?? 0,
      periodSeconds: request.period ?? 0,
    },
    root,
  )
  const forEver = life.ttlSeconds === 0
  if (forEver && parent.expiresAt !== null)
    throw badRequest('expiring root tokens cannot create non-expiring root tokens')
  if (JSON.stringify([policies, request.meta]).length > maxSize)
    throw badRequest(`policies and meta of a token may not be longer than ${maxSize} characters`)
  const token = {
    ...life,
    policies,
    parent: request.no_parent || kind === 'orphan' ? null : parent,
    meta: request.meta && Object.keys(request.meta).length > 0 ? request.meta : null,
    displayName: displayName(request.display_name ?? ''),
    renewable: !forEver && (request.renewable ?? true),
    numUses: request.num_uses ?? 0,
    custom: request.id || undefined,
  }
  return { token, warnings }
}

function checkKind({ type, num_uses = 0, entity_alias }: TokenRequest): void {
  if (type === 'batch') throw badRequest('tokens of type "batch" are not built yet')
  if (type !== undefined && type !== '' && type !== 'service') throw badRequest(`invalid 'type' value "${type}"`)
  if (num_uses < 0) throw badRequest('number of uses cannot be negative')
  if (entity_alias) throw badRequest("'entity_alias' is only allowed in combination with token role")
}

function checkPrivileges({ id, no_parent, period }: TokenRequest): void {
  const privilege = id
    ? 'specify token id'
    : no_parent
      ? 'create orphan token'
      : period
        ? 'create periodic token'
        : undefined
  if (privilege !== undefined) throw badRequest(`root or sudo privileges required to ${privilege}`)
}

/** Sorted and without repetition; `root` stands alone. An empty list means the parent's, one of empty names none. */
function grantedPolicies(request: TokenRequest, parent: TokenRow, privileged: boolean): string[] {
  const { policies: asked = [] } = request
  const inherits = asked.length === 0
  const wanted = inherits ? parent.policies : asked.filter((name) => name.trim() !== '').map(policyName)
  if (!privileged && !wanted.every((name) => parent.policies.includes(name)))
    throw badRequest('child policies must be subset of parent')
  if (wanted.includes('root')) return ['root']
  // no_default_policy removes "default" even if requested by name or inherited.
  if (request.no_default_policy) return [...new Set(wanted)].filter((name) => name !== 'default').sort()
  const addDefault = !inherits && (privileged || parent.policies.includes('default'))
  return [...new Set([...wanted, ...(addDefault ? ['default'] : [])])].sort()
}

function displayName(name: string): string {
  if (name.length > maxNameLength) throw badRequest(`display_name may not be longer than ${maxNameLength} characters`)
  return `token-${name}`.replaceAll(/[^a-zA-Z0-9-]/g, '-').replace(/-$/, '')
}
