import { Type } from 'typebox'
import { auth, data, mapOf, orNull, strings, timestamp, titled } from '../../../answers.ts'
import type { Data } from '../../../route.ts'
import { secondsLeft } from '../../lifetime.ts'
import type { TokenRow } from '../../token.ts'

/** The members of authOf. */
export const authAnswer = auth(
  titled('Auth', {
    client_token: Type.String(),
    accessor: Type.String(),
    policies: strings,
    token_policies: strings,
    metadata: orNull(mapOf(Type.String())),
    lease_duration: Type.Integer(),
    renewable: Type.Boolean(),
    entity_id: Type.String(),
    token_type: Type.String(),
    orphan: Type.Boolean(),
    mfa_requirement: Type.Null(),
    num_uses: Type.Integer(),
  }),
)

/** The envelope's `auth`, for a new or renewed token. */
export const authOf = (row: TokenRow, credential: string, now: number): Data => ({
  client_token: credential,
  accessor: row.accessor,
  policies: row.policies,
  token_policies: row.policies,
  metadata: row.meta,
  lease_duration: ttl(row, now),
  renewable: row.renewable,
  entity_id: '',
  token_type: 'service',
  orphan: row.orphan,
  mfa_requirement: null,
  num_uses: usesLeft(row),
})

/** What audit lines show besides: `auth` names the token by its accessor alone. */
export const auditedOf = (row: TokenRow): Data => ({
  display_name: row.displayName,
  token_issue_time: new Date(row.createdAt).toISOString(),
})

/** The members of describeToken. */
export const tokenAnswer = data(
  titled('Token', {
    id: Type.String(),
    accessor: Type.String(),
    policies: strings,
    path: Type.String(),
    meta: orNull(mapOf(Type.String())),
    display_name: Type.String(),
    num_uses: Type.Integer(),
    orphan: Type.Boolean(),
    creation_time: Type.Integer(),
    creation_ttl: Type.Integer(),
    expire_time: orNull(timestamp),
    ttl: Type.Integer(),
    explicit_max_ttl: Type.Integer(),
    entity_id: Type.String(),
    type: Type.String(),
    renewable: Type.Boolean(),
    issue_time: timestamp,
    period: Type.Optional(Type.Integer()),
    last_renewal: Type.Optional(timestamp),
    last_renewal_time: Type.Optional(Type.Integer()),
  }),
)

/**
 * The answer of a look-up.
 * @param credential '' if the caller knows only the accessor
 */
export const describeToken = (row: TokenRow, credential: string, now: number): Data => ({
  id: credential,
  accessor: row.accessor,
  policies: row.policies,
  path: row.path,
  meta: row.meta,
  display_name: row.displayName,
  num_uses: usesLeft(row),
  orphan: row.orphan,
  creation_time: seconds(row.createdAt),
  creation_ttl: row.ttlSeconds,
  expire_time: row.expiresAt === null ? null : new Date(row.expiresAt).toISOString(),
  ttl: ttl(row, now),
  explicit_max_ttl: row.explicitMaxTtlSeconds,
  entity_id: '',
  type: 'service',
  renewable: row.renewable,
  issue_time: new Date(row.createdAt).toISOString(),
  ...(row.periodSeconds === 0 ? {} : { period: row.periodSeconds }),
  ...(row.lastRenewalAt === null
    ? {}
    : { last_renewal: new Date(row.lastRenewalAt).toISOString(), last_renewal_time: seconds(row.lastRenewalAt) }),
})

const usesLeft = ({ numUses }: TokenRow): number => Math.max(0, numUses)

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

/** 0 for a token that never expires. */
const ttl = ({ expiresAt }: TokenRow, now: number): number => (expiresAt === null ? 0 : secondsLeft(expiresAt, now))
