import type { Clock } from '../clock.ts'
import type { Database } from '../store/database.ts'
import { pages } from '../store/pages.ts'
import type { Transaction } from '../store/reader.ts'
import { sound } from '../store/sealed/sound.ts'
import { type TokenRow, tokenTable, tokenTraces } from './token.ts'

/**
 * Takes back what hangs on tokens (leases), before their rows go. Called again after a crash: repeating must be harmless.
 * It answers how much could not be taken back at once; that is remembered without the tokens and tried again.
 */
export type OnRevoke = (tokenIds: readonly string[]) => Promise<number>

/** What revoking needs. */
export interface Ground {
  readonly database: Database
  readonly clock: Clock
  readonly onRevoke: OnRevoke
}

/** What a job does first in each of its transactions. */
export type Guard = (tx: Transaction) => Promise<void>

const PAGE = 100

/**
 * Revokes a token and all that descends from it; an absent one is done already.
 *
 * The first transaction alone makes the whole tree worthless, on every worker before it resolves: a look-up walks up to
 * the root of the tree, so a descendant is refused as soon as one above it is, also one that is being created at this
 * moment. All that follows is removal.
 * @returns how much of what hung on the tree is still to be taken back
 */
export async function revokeTree(ground: Ground, id: string): Promise<number> {
  return (await end(ground, id)) ? removeTrees(ground, [id]) : 0
}

/**
 * Revokes a token alone: its children become orphans first, and do not stop working for a moment.
 * @returns how much of what hung on it is still to be taken back
 */
export async function revokeAlone(ground: Ground, id: string): Promise<number> {
  await orphanChildren(ground, id)
  if (!(await end(ground, id))) return 0
  // Those that were answered for between the last look and the end.
  await orphanChildren(ground, id)
  return removeTrees(ground, [id])
}

/**
 * Marks those of these tokens that are ripe, for which no worker has any use left: nothing cached is told. Rows that were
 * edited behind our back are logged and stay; they work nowhere.
 * @returns the ids to remove
 */
export async function condemn(
  { database, clock }: Ground,
  ids: readonly string[],
  ripe: (row: TokenRow, tx: Transaction) => boolean | Promise<boolean>,
  guard: Guard,
): Promise<string[]> {
  const table = database.table(tokenTable)
  return database.transaction(async (tx) => {
    await guard(tx)
    const condemned: string[] = []
    for (const id of ids) {
      const row = await sound(table, tx, id)
      if (row === undefined || !(await ripe(row, tx))) continue
      // Only marked, a renewal on a node whose clock is behind comes too late, and not unnoticed.
      if (row.state === 'active') await table.update(tx, row, { state: 'revoked', expiresAt: clock.wall() })
      condemned.push(id)
    }
    return condemned
  })
}

/**
 * Removes trees whose roots no longer work, leaves first, so that what a crash leaves behind can still be found from the
 * top. It needs no `touch`: no cached descendant can be used any more.
 */
export async function removeTrees({ database, onRevoke }: Ground, roots: readonly string[]): Promise<number> {
  const table = database.table(tokenTable)
  const tree = new Set(roots)
  // The set grows while it is walked: breadth first, parents before children. Being a set, it ends even when edited rows
  // go round in a circle.
  for (const parent of tree) for await (const child of childrenOf(database, parent)) tree.add(child)
  const ids = [...tree]
  let left = 0
  while (ids.length > 0) {
    const leaves = ids.splice(-PAGE).reverse()
    left += await onRevoke(leaves)
    await database.transaction(async (tx) => {
      for (const leaf of leaves) await table.removeWhere(tx, { id: leaf })
    })
  }
  return left
}

/** Ends one token on every worker. Answers whether it was there. */
function end({ database, clock }: Ground, id: string): Promise<boolean> {
  const table = database.table(tokenTable)
  return database.transaction(async (tx) => {
    const row = await table.get(tx, id)
    if (row === undefined) return false
    // An end in the past is where the expiry job finds a tree that a crash left half removed.
    if (row.state === 'active') await table.update(tx, row, { state: 'revoked', expiresAt: clock.wall() })
    tx.touch(tokenTable.name, id)
    return true
  })
}

async function orphanChildren({ database }: Ground, parent: string): Promise<void> {
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
  for await (const page of pages(database, traces, { parent }, { by: 'id', limit: PAGE }))
    for (const { id } of page) yield id
}
