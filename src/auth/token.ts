import type { Custody } from '../keys/custody.ts'
import { column, defineTable, type New, type Row } from '../store/table.ts'
import { checkCustom, guessFilter, newAccessor } from './credential.ts'
import type { Lifetime } from './lifetime.ts'

/**
 * A service token as it is stored. Only the HMAC of its credential is here. `type` is `service`, or `custom` where
 * somebody chose the credential's text; `state` is `active`, or `revoked` while its descendants are being removed.
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
    numUses: 0,
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
  ttlSeconds: 0,
  explicitMaxTtlSeconds: 0,
  periodSeconds: 0,
  custom,
})
