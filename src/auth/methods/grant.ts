import { badRequest } from '../../errors.ts'
import { newLifetime } from '../lifetime.ts'
import { policyName } from '../policies.ts'
import type { NewToken, TokenRow } from '../token.ts'

/** What a client asks of auth/token/create. */
export interface Asked {
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

/** Characters of policies and metadata together: every worker keeps the rows of tokens in use in memory. */
const MAX_SIZE = 32_768
const MAX_NAME_LENGTH = 255

/** Who asks, and by which path. */
export interface Asker {
  readonly parent: TokenRow
  /** Whether the parent is root or has sudo on the path. */
  readonly privileged: boolean
  /** `orphan` by auth/token/create-orphan, whose policy rule is all that it takes. */
  readonly kind: 'child' | 'orphan'
}

/**
 * The token that `parent` may have made for it.
 * @throws ApiError 400 with the rule that forbids it
 */
export function grant(
  asked: Asked,
  { parent, privileged, kind }: Asker,
): { token: Omit<NewToken, 'path'>; warnings: string[] } {
  if (parent.numUses !== 0) throw badRequest('restricted use token cannot generate child tokens')
  checkKind(asked)
  if (!privileged) checkPrivileges(asked)
  const policies = grantedPolicies(asked, parent, privileged)
  const root = policies.includes('root')
  if (root && !parent.policies.includes('root'))
    throw badRequest('root tokens may not be created without parent token being root')
  const { warnings, ...life } = newLifetime(
    {
      ttlSeconds: asked.ttl ?? 0,
      explicitMaxTtlSeconds: asked.explicit_max_ttl ?? 0,
      periodSeconds: asked.period ?? 0,
    },
    root,
  )
  const forEver = life.ttlSeconds === 0
  if (forEver && parent.expiresAt !== null)
    throw badRequest('expiring root tokens cannot create non-expiring root tokens')
  if (JSON.stringify([policies, asked.meta]).length > MAX_SIZE)
    throw badRequest(`policies and meta of a token may not be longer than ${MAX_SIZE} characters`)
  const token = {
    ...life,
    policies,
    parent: asked.no_parent || kind === 'orphan' ? null : parent,
    meta: asked.meta && Object.keys(asked.meta).length > 0 ? asked.meta : null,
    displayName: displayName(asked.display_name ?? ''),
    renewable: !forEver && (asked.renewable ?? true),
    numUses: asked.num_uses ?? 0,
    custom: asked.id || undefined,
  }
  return { token, warnings }
}

function checkKind({ type, num_uses = 0, entity_alias }: Asked): void {
  if (type === 'batch') throw badRequest('tokens of type "batch" are not built yet')
  if (type !== undefined && type !== '' && type !== 'service') throw badRequest(`invalid 'type' value "${type}"`)
  if (num_uses < 0) throw badRequest('number of uses cannot be negative')
  if (entity_alias) throw badRequest("'entity_alias' is only allowed in combination with token role")
}

function checkPrivileges({ id, no_parent, period }: Asked): void {
  const what = id
    ? 'specify token id'
    : no_parent
      ? 'create orphan token'
      : period
        ? 'create periodic token'
        : undefined
  if (what !== undefined) throw badRequest(`root or sudo privileges required to ${what}`)
}

/** Sorted and without repetition; `root` stands alone; none asked for means the parent's. */
function grantedPolicies(asked: Asked, parent: TokenRow, privileged: boolean): string[] {
  const named = (asked.policies ?? []).filter((name) => name.trim() !== '').map(policyName)
  const wanted = named.length > 0 ? named : parent.policies
  if (!privileged && !wanted.every((name) => parent.policies.includes(name)))
    throw badRequest('child policies must be subset of parent')
  if (wanted.includes('root')) return ['root']
  // Asked for by name or inherited, "default" goes where no_default_policy is given.
  if (asked.no_default_policy) return [...new Set(wanted)].filter((name) => name !== 'default').sort()
  const addDefault = named.length > 0 && (privileged || parent.policies.includes('default'))
  return [...new Set([...wanted, ...(addDefault ? ['default'] : [])])].sort()
}

function displayName(given: string): string {
  if (given.length > MAX_NAME_LENGTH)
    throw badRequest(`display_name may not be longer than ${MAX_NAME_LENGTH} characters`)
  return `token-${given}`.replaceAll(/[^a-zA-Z0-9-]/g, '-').replace(/-$/, '')
}
