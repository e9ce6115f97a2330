import type { Custody } from '../keys/custody.ts'
import { column, defineTable, type New, type Row } from '../store/table.ts'
import { checkCustom, guessFilter, newAccessor } from './credential.ts'
import type { Lifetime } from './lifetime.ts'

/**
 * A service token as it is stored. Only the HMAC of its credential is here. `type` is `service`, or `custom` where
 * somebody chose the credential's text; `state` is `active`, or `revoked` while its descendants are being removed;
 * `numUses` is what is left of a limited number of requests, 0 where there is no limit, `SPENT` when none is left.
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

/** `numUses` of a token whose last use was made: gone but for its removal. */
export const SPENT = -1

/**
 * As much of token rows as is read unverified: enough to find those that are to be removed, never to decide by. Edited
 * values must not keep the others from being found, so that nothing here can fail to be read.
 */
export const tokenTraces = defineTable(
  'tokens',
  { id: column.text(), parent: column.text().nullable(), expiresAt: column.text().nullable() },
  { sealed: false },
)

/**
 * Whether a token works, as far as its own row says; whatever is above it must work too.
 * @param epoch the database's present one: tokens written in an earlier one are void
 */
export const usable = ({ state, numUses, epoch: made, expiresAt }: TokenRow, now: number, epoch: number): boolean =>
  state === 'active' && numUses >= 0 && made >= epoch && (expiresAt === null || expiresAt > now)

/** The HMAC of token ids, made in the token, and the key of the guess filter. */
export type CredentialKeys = Pick<Custody, 'tokenMac' | 'audit'>

/** A token to make. A parent takes it along when it is revoked or expires. */
export interface NewToken extends Lifetime {
  readonly parent: TokenRow | null
  readonly path: string
  readonly policies: readonly string[]
  readonly meta: Readonly<Record<string, string>> | null
  readonly displayName: string
  readonly renewable: boolean
  /** Requests it is good for; 0 is unlimited. */
  readonly numUses: number
  /** The credential's text, where somebody chose it. */
  readonly custom?: string | undefined
}

/**
 * Makes a credential and the row to store for it. The credential is nowhere else: whoever gets it here must hand it out.
 * @param now milliseconds
 * @throws ApiError 400 for a custom text that is not allowed
 */
export async function prepareToken(
  keys: CredentialKeys,
  now: number,
  { custom, parent, ...fields }: NewToken,
): Promise<{ credential: string; row: New<typeof tokenTable> }> {
  if (custom !== undefined) checkCustom(custom)
  const credential = custom ?? guessFilter(keys.audit.guess).issue()
  const row = {
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

/** A token that may do everything and never ends. */
export const rootToken = (custom?: string): NewToken => ({
  parent: null,
  path: 'auth/token/root',
  policies: ['root'],
  meta: null,
  displayName: 'root',
  renewable: false,
  numUses: 0,
  ttlSeconds: 0,
  explicitMaxTtlSeconds: 0,
  periodSeconds: 0,
  custom,
})
