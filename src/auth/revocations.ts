import { Batch } from '../store/group.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import { tokenTally } from './count.ts'
import { orphanChildren, type RevokeDeps, removeTrees } from './revoke.ts'
import { tokenTable, tokenTraces } from './token.ts'

/** What became of the row of a token: only one with neither children nor leases is removed at once. */
type Ended = 'absent' | 'marked' | 'removed'

/**
 * Revocations on request. Simultaneous ones share a transaction, which alone invalidates whole trees, on every worker
 * before it resolves: a look-up walks up to the root of the tree, so a descendant is refused as soon as an ancestor is,
 * even one that is being created at this moment. The rest is removal.
 */
export class Revocations {
  readonly #deps: RevokeDeps
  readonly #ends: Batch<string, Ended>
  readonly #looks: Batch<string, boolean>

  constructor(deps: RevokeDeps) {
    const { database } = deps
    this.#deps = deps
    this.#ends = new Batch((ids) => database.transaction((tx) => end(deps, tx, ids)))
    this.#looks = new Batch(
      async (ids) => {
        const found = await database.read((q) => holders(deps, q, ids))
        return ids.map((id) => found.has(id))
      },
      { sharesFate: true },
    )
  }

  /**
   * Revokes a token and its descendants; an absent one is not an error.
   * @returns the number of the tree's leases still to be revoked
   */
  async ofTree(id: string): Promise<number> {
    return this.#clear(id, await this.#ends.add(id))
  }

  /**
   * Revokes a token alone: its children become orphans first, so that they never stop working.
   * @returns the number of its leases still to be revoked
   */
  async ofOrphan(id: string): Promise<number> {
    await orphanChildren(this.#deps, id)
    const ended = await this.#ends.add(id)
    // Children created between that listing and the revocation.
    if (ended !== 'absent') await orphanChildren(this.#deps, id)
    return this.#clear(id, ended)
  }

  /** Children and leases that were stored while the row was being removed are found now: no later ones are kept. */
  async #clear(id: string, ended: Ended): Promise<number> {
    const left = ended === 'marked' || (ended === 'removed' && (await this.#looks.add(id)))
    return left ? removeTrees(this.#deps, [id]) : 0
  }
}

/**
 * Ends tokens in one transaction. A row with children or leases is kept until these are gone: after a crash they can
 * still be found from it.
 */
async function end(deps: RevokeDeps, tx: Transaction, ids: readonly string[]): Promise<Ended[]> {
  const table = deps.database.table(tokenTable)
  const [rows, kept] = await Promise.all([table.lockAll(tx, ids), holders(deps, tx, ids)])
  const ended = new Map<string, Ended>()
  for (const row of rows) {
    tx.touch(tokenTable.name, row.id)
    ended.set(row.id, kept.has(row.id) ? 'marked' : 'removed')
    if (!kept.has(row.id)) await table.remove(tx, row)
    // An expiry in the past lets the expiry job find a tree that a crash left half removed.
    else if (row.state === 'active') await table.update(tx, row, { state: 'revoked', expiresAt: deps.clock.wall() })
  }
  tx.tally(tokenTally, -[...ended.values()].filter((end) => end === 'removed').length)
  return ids.map((id) => ended.get(id) ?? 'absent')
}

/** Those of these tokens that have children or leases. */
async function holders({ database, leases }: RevokeDeps, q: Reader, ids: readonly string[]): Promise<Set<string>> {
  const [parents, holding] = await Promise.all([
    database.unverified(tokenTraces).among(q, 'parent', ids),
    leases().holders(q, ids),
  ])
  return new Set(ids.filter((id) => parents.has(id) || holding.has(id)))
}
