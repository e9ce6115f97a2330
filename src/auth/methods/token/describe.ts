import type { Data } from '../../../route.ts'
import { secondsLeft } from '../../lifetime.ts'
import type { TokenRow } from '../../token.ts'

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

/**
 * The answer of a look-up.
 * @param credential '' where the caller knows only the accessor
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
