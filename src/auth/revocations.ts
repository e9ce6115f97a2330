import { isUnavailable, unavailable, unlessUnavailable } from '../errors.ts'
import { Batch } from '../store/group.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import { removeTokens } from './count.ts'
import { orphanChildren, type RevokeDeps, removeTrees } from './revoke.ts'
import { tokenTable, tokenTraces } from './token.ts'

/**
 * Revocations on request. Simultaneous ones share their transactions. The first one alone invalidates whole trees, on
 * every worker before it resolves: a look-up walks up to the root of the tree, so a descendant is refused as soon as an
 * ancestor is, even one that is being created at this moment. The rest is removal; until then the marked row makes a
 * second revoker wait too, and leads the expiry job to the remains of a crash.
 */
export class Revocations {
  readonly #deps: RevokeDeps
  readonly #marks: Batch<string, boolean>
  readonly #looks: Batch<string, boolean>
  readonly #removals: Batch<string, undefined>

  constructor(deps: RevokeDeps) {
    const { database } = deps
    this.#deps = deps
    this.#marks = new Batch((ids) => database.transaction((tx) => mark(deps, tx, ids)))
    this.#looks = new Batch(async (ids) => {
      const found = await database.read((q) => holders(deps, q, ids))
      return ids.map((id) => found.has(id))
    })
    // Needs no `touch`: no worker accepts these tokens.
    this.#removals = new Batch(async (ids) => {
      await database.transaction((tx) => removeTokens(database, tx, ids))
      return ids.map(() => undefined)
    })
  }

  /**
   * Revokes a token and its descendants; an absent one is not an error.
   * @returns the number of the tree's leases still to be revoked
   */
  async ofTree(id: string): Promise<number> {
    return (await this.#marks.add(id)) ? this.#clear(id) : 0
  }

  /**
   * Revokes a token alone: its children become orphans first, so that they never stop working.
   * @returns the number of its leases still to be revoked
   */
  async ofOrphan(id: string): Promise<number> {
    await orphanChildren(this.#deps, id)
    if (!(await this.#marks.add(id))) return 0
    // Children created between that listing and the revocation.
    await orphanChildren(this.#deps, id)
    return this.#clear(id)
  }

  /**
   * Most tokens have neither children nor leases, and no worker accepts new ones. What fails here is left to the expiry
   * job.
   * @throws ApiError 503 when children or leases may be left
   */
  async #clear(id: string): Promise<number> {
    try {
      if (await this.#looks.add(id)) return await removeTrees(this.#deps, [id])
    } catch (cause) {
      if (!isUnavailable(cause)) throw cause
      throw unavailable('the token is revoked; what belongs to it could not all be removed, which is tried again', {
        cause,
      })
    }
    await this.#removals.add(id).catch(unlessUnavailable)
    return 0
  }
}

/** Revokes tokens on every worker. @returns whether each existed */
async function mark({ database, clock }: RevokeDeps, tx: Transaction, ids: readonly string[]): Promise<boolean[]> {
  const table = database.table(tokenTable)
  const rows = await table.lockAll(tx, ids)
  for (const row of rows) {
    // An expiry in the past lets the expiry job find a tree that a crash left half removed.
    if (row.state === 'active') await table.update(tx, row, { state: 'revoked', expiresAt: clock.wall() })
  }
  // Those marked already, too: their first revocation may still be waiting for workers that accept them.
  for (const id of ids) tx.touch(tokenTable.name, id)
  const there = new Set(rows.map(({ id }) => id))
  return ids.map((id) => there.has(id))
}

/** Those of these tokens that have children or leases. */
async function holders({ database, leases }: RevokeDeps, q: Reader, ids: readonly string[]): Promise<Set<string>> {
  const [parents, holding] = await Promise.all([
    database.unverified(tokenTraces).among(q, 'parent', ids),
    leases().holders(q, ids),
  ])
  return new Set(ids.filter((id) => parents.has(id) || holding.has(id)))
}
