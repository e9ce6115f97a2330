import type { Clock } from '../clock.ts'
import type { Database } from '../store/database.ts'
import type { New } from '../store/table.ts'
import { type CredentialKeys, prepareToken, rootToken, type TokenRow, tokenTable } from './token.ts'

/** The life of root tokens that are made after the first one, unless their maker asks for another. */
export const rootTtlSeconds = 3600

/** What root tokens are made with. */
export interface RootTokenDeps {
  readonly database: Database
  readonly keys: CredentialKeys
  readonly clock: Clock
}

/** Makes a root token. The credential is kept nowhere: the caller must hand it out. */
export async function createRootToken(
  deps: RootTokenDeps,
  ttlSeconds: number,
): Promise<{ credential: string; row: TokenRow }> {
  const { database } = deps
  const { credential, row } = await prepareRootToken(deps, ttlSeconds)
  const created = await database.transaction((tx) => database.table(tokenTable).insert(tx, row))
  return { credential, row: created }
}

/** The same, to be inserted by the caller. */
export const prepareRootToken = (
  { keys, clock }: Pick<RootTokenDeps, 'keys' | 'clock'>,
  ttlSeconds: number,
): Promise<{ credential: string; row: New<typeof tokenTable> }> =>
  prepareToken(keys, clock.wall(), rootToken(ttlSeconds))
