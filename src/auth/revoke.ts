import type { Clock } from '../clock.ts'
import type { Database } from '../store/database.ts'
import { pages } from '../store/pages.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import { sound } from '../store/sealed/sound.ts'
import { removeTokens } from './count.ts'
import { type TokenRow, tokenTable, tokenTraces } from './token.ts'

/** The leases of tokens. */
export interface TokenLeases {
  /** Those of these tokens that have any. */
  holders(q: Reader, tokenIds: readonly string[]): Promise<ReadonlySet<string>>
  /**
   * Revokes them, before the tokens' rows are removed. Must be idempotent: it is repeated after a crash.
   * @returns the number that could not be revoked at once; they no longer need the tokens and are tried again
   */
  revokeByToken(tokenIds: readonly string[]): Promise<number>
}

/** Dependencies of the functions below. */
export interface RevokeDeps {
  readonly database: Database
  readonly clock: Clock
  /** A function, since leases need tokens in turn. */
  leases(): TokenLeases
}

/** A job's first statement in each of its transactions. */
export type Guard = (tx: Transaction) => Promise<void>

const pageSize = 100

/**
 * Marks the eligible tokens among these as revoked. No worker accepts them any more, so caches are not invalidated.
 * Rows edited outside this server are logged and stay; no worker accepts these either.
 * @returns the ids to remove
 */
export async function markRevoked(
  { database, clock }: RevokeDeps,
  ids: readonly string[],
  eligible: (row: TokenRow, tx: Transaction) => boolean | Promise<boolean>,
  guard: Guard,
): Promise<string[]> {
  const table = database.table(tokenTable)
  return database.transaction(async (tx) => {
    await guard(tx)
    const revoked: string[] = []
    for (const row of await table.sound(tx, ids)) {
      if (!(await eligible(row, tx))) continue
      // The mark makes a concurrent renewal, on a node whose clock is behind, fail instead of passing unnoticed.
      if (row.state === 'active') await table.update(tx, row, { state: 'revoked', expiresAt: clock.wall() })
      revoked.push(row.id)
    }
    return revoked
  })
}

/**
 * Removes trees whose roots are revoked, leaves first, so that the remains after a crash can still be found from the
 * top. It needs no `touch`: no cached descendant can be used any more.
 */
export async function removeTrees({ database, leases }: RevokeDeps, roots: readonly string[]): Promise<number> {
  const tree = new Set(roots)
  // The set grows while it is walked: breadth first, parents before children. A set ends even when edited rows form a
  // cycle.
  for (const parent of tree) for await (const child of childrenOf(database, parent)) tree.add(child)
  const ids = [...tree]
  let left = 0
  while (ids.length > 0) {
    const leaves = ids.splice(-pageSize).reverse()
    left += await leases().revokeByToken(leaves)
    await database.transaction((tx) => removeTokens(database, tx, leaves))
  }
  return left
}

/** Makes orphans of a token's children, so that they outlive it. */
export async function orphanChildren({ database }: RevokeDeps, parent: string): Promise<void> {
  const table = database.table(tokenTable)
  for await (const child of childrenOf(database, parent)) {
    await database.transaction(async (tx) => {
      const row = await sound(table, tx, child)
      if (row?.parent !== parent) return
      await table.update(tx, row, { parent: null, orphan: true })
      tx.touch(tokenTable.name, child)
    })
  }
}

async function* childrenOf(database: Database, parent: string): AsyncGenerator<string, void> {
  const traces = database.unverified(tokenTraces)
  for await (const page of pages(database, traces, { parent }, { by: 'id', limit: pageSize }))
    for (const { id } of page) yield id
}
