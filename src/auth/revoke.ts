import type { Clock } from '../clock.ts'
import type { SealedAccess } from '../store/access.ts'
import type { Database } from '../store/database.ts'
import { tokenTable } from './token.ts'

/** Takes back what hangs on tokens (leases), before their rows go. Called again after a crash: repeating must be harmless. */
export type OnRevoke = (tokenIds: readonly string[]) => Promise<void>

const PAGE = 200

/**
 * Revokes a token and all that descends from it; an absent one is done already.
 *
 * The first transaction alone makes the whole tree worthless, on every worker before it resolves: a look-up walks up to
 * the root of the tree, so a descendant is refused as soon as one above it is, also one that is being created at this
 * moment. All that follows is removal, leaves first, so that what a crash leaves behind can still be found from the top;
 * it needs no `touch`, since no cached descendant can be used any more.
 */
export async function revokeTree(
  { database, clock, onRevoke }: { database: Database; clock: Clock; onRevoke: OnRevoke },
  id: string,
): Promise<void> {
  const table = database.table(tokenTable)
  const found = await database.transaction(async (tx) => {
    const row = await table.get(tx, id)
    if (row === undefined) return false
    // An end in the past is where the expiry job finds a tree that a crash left half removed.
    if (row.state === 'active') await table.update(tx, row, { state: 'revoked', expiresAt: clock.wall() })
    tx.touch(tokenTable.name, id)
    return true
  })
  if (!found) return
  const tree = [id]
  // The list grows while it is walked: breadth first, parents before children.
  for (const parent of tree) for await (const child of childrenOf(database, table, parent)) tree.push(child)
  while (tree.length > 0) {
    const leaves = tree.splice(-PAGE).reverse()
    await onRevoke(leaves)
    await database.transaction(async (tx) => {
      for (const leaf of leaves) await table.removeWhere(tx, { id: leaf })
    })
  }
}

async function* childrenOf(database: Database, table: SealedAccess<typeof tokenTable>, parent: string) {
  for (let after: string | undefined; ; ) {
    const page = { by: 'id', limit: PAGE, ...(after === undefined ? {} : { after }) } as const
    const children = await database.read((q) => table.list(q, { parent }, page))
    for (const child of children) yield child.id
    if (children.length < PAGE) return
    after = children.at(-1)?.id
  }
}
