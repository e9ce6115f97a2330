import { randomUUIDv7 } from 'node:crypto'
import type { SystemMacs } from '../keys/cluster/system.ts'
import { column, defineTable, type New, type Row } from '../store/table.ts'
import { checkCustom, type GuessFilter, guessFilter, newAccessor } from './credential.ts'
import type { Lifetime } from './lifetime.ts'

/**
 * A stored service token, with only the HMAC of its credential. `type` is `service`, or `custom` if an operator chose
 * the credential's text; `state` is `active`, or `revoked` while its descendants are being removed; `numUses` counts
 * the requests left, 0 for no limit and `spentUses` after the last.
 */
export const tokenTable = defineTable(
  'tokens',
  {
    hash: column.bytes(),
    accessor: column.text(),
    parent: column.text().nullable(),
    path: column.text(),
    policies: column.json<readonly string[]>(),
    meta: column.json<Readonly<Record<string, string>>>().nullable(),
    displayName: column.text(),
    type: column.text(),
    orphan: column.boolean(),
    renewable: column.boolean(),
    ttlSeconds: column.integer(),
    explicitMaxTtlSeconds: column.integer(),
    periodSeconds: column.integer(),
    numUses: column.integer(),
    createdAt: column.integer(),
    expiresAt: column.integer().nullable(),
    lastRenewalAt: column.integer().nullable(),
    state: column.text(),
  },
  { sealed: true },
)

export type TokenRow = Row<typeof tokenTable>

/** Whether another token may bear the same credential later. */
export const isReusable = ({ type }: TokenRow): boolean => type === 'custom'

/** `numUses` of a token whose last use was taken: the token only awaits removal. */
export const spentUses = -1

/**
 * The columns of token rows that are read unverified: enough to find candidates for removal, never to decide. An edited
 * value cannot fail to parse and hide the other rows.
 */
export const tokenTraces = defineTable(
  'tokens',
  { id: column.text(), parent: column.text().nullable(), expiresAt: column.loose().nullable() },
  { sealed: false },
)

/** The columns for a listing of accessors, unverified. A token is verified when it is used or looked up. */
export const accessorTraces = defineTable(
  'tokens',
  {
    accessor: column.text(),
    state: column.text(),
    numUses: column.loose(),
    epoch: column.loose(),
    expiresAt: column.loose().nullable(),
  },
  { sealed: false },
)

/** The columns for a listing of token leases, unverified. */
export const tokenLeaseTraces = defineTable(
  'tokens',
  {
    id: column.text(),
    path: column.text(),
    state: column.text(),
    numUses: column.loose(),
    epoch: column.loose(),
    expiresAt: column.loose().nullable(),
  },
  { sealed: false },
)

/**
 * Whether a token is valid by its own row; its ancestors must be valid too.
 * @param epoch the database's current one: tokens of an earlier one are void
 */
export const usable = ({ state, numUses, epoch: made, expiresAt }: Usability, now: number, epoch: number): boolean =>
  state === 'active' && numUses >= 0 && made >= epoch && (expiresAt === null || expiresAt > now)

type Usability = Pick<TokenRow, 'state' | 'numUses' | 'epoch' | 'expiresAt'>

/** The HMAC of credentials, computed in the HSM, and the key of the guess filter. */
export type CredentialKeys = Pick<SystemMacs, 'tokenMac' | 'audit'>

/** A token to create. It is revoked, and expires, with its parent. */
export interface NewToken extends Lifetime {
  readonly parent: TokenRow | null
  readonly path: string
  readonly policies: readonly string[]
  readonly meta: Readonly<Record<string, string>> | null
  readonly displayName: string
  readonly renewable: boolean
  /** Number of requests allowed; 0 is unlimited. */
  readonly numUses: number
  /** The credential's text, if an operator chose it. */
  readonly custom?: string | undefined
}

/**
 * Makes a credential and the row to store for it. The credential is not stored: the caller must hand it out.
 * @param now milliseconds
 * @param filter made of these keys; a maker of many tokens keeps it
 * @throws ApiError 400 for a custom text that is not allowed
 */
export async function prepareToken(
  keys: CredentialKeys,
  now: number,
  { custom, parent, ...fields }: NewToken,
  filter: GuessFilter = guessFilter(keys.audit.guess),
): Promise<{ credential: string; row: New<typeof tokenTable> & { readonly id: string } }> {
  if (custom !== undefined) checkCustom(custom)
  const credential = custom ?? filter.issue()
  const row = {
    id: randomUUIDv7(),
    path: fields.path,
    policies: fields.policies,
    meta: fields.meta,
    displayName: fields.displayName,
    renewable: fields.renewable,
    ttlSeconds: fields.ttlSeconds,
    explicitMaxTtlSeconds: fields.explicitMaxTtlSeconds,
    periodSeconds: fields.periodSeconds,
    hash: await keys.tokenMac(Buffer.from(credential)),
    accessor: newAccessor(),
    parent: parent?.id ?? null,
    type: custom === undefined ? 'service' : 'custom',
    orphan: parent === null,
    numUses: fields.numUses,
    createdAt: now,
    expiresAt: fields.ttlSeconds === 0 ? null : now + fields.ttlSeconds * 1000,
    state: 'active',
  }
  return { credential, row }
}

/** A token that may do everything. @param ttlSeconds 0: it never ends */
export const rootToken = (ttlSeconds: number, custom?: string): NewToken => ({
  parent: null,
  path: 'auth/token/root',
  policies: ['root'],
  meta: null,
  displayName: 'root',
  renewable: false,
  numUses: 0,
  ttlSeconds,
  explicitMaxTtlSeconds: 0,
  periodSeconds: 0,
  custom,
})
