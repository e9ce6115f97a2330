import type { Clock } from '../clock.ts'
import type { Database } from '../store/database.ts'
import type { New } from '../store/table.ts'
import { insertToken } from './count.ts'
import { type CredentialKeys, prepareToken, rootToken, type TokenRow, type tokenTable } from './token.ts'

/** The life of root tokens made after the first one, unless another is requested. */
export const rootTtlSeconds = 3600

/** The dependencies of making root tokens. */
export interface RootTokenDeps {
  readonly database: Database
  readonly keys: CredentialKeys
  readonly clock: Clock
}

/** Makes a root token. The credential is not stored: the caller must hand it out. */
export async function createRootToken(
  deps: RootTokenDeps,
  ttlSeconds: number,
): Promise<{ credential: string; row: TokenRow }> {
  const { database } = deps
  const { credential, row } = await prepareRootToken(deps, ttlSeconds)
  const created = await database.transaction((tx) => insertToken(database, tx, row))
  return { credential, row: created }
}

/** As createRootToken, but the caller inserts the row. */
export const prepareRootToken = (
  { keys, clock }: Pick<RootTokenDeps, 'keys' | 'clock'>,
  ttlSeconds: number,
): Promise<{ credential: string; row: New<typeof tokenTable> }> =>
  prepareToken(keys, clock.wall(), rootToken(ttlSeconds))
