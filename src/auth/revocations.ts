import { isUnavailable, unavailable } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Assuming } from '../store/assuming.ts'
import type { CoherentCache } from '../store/coherence/cache.ts'
import { Outdated } from '../store/faults.ts'
import { Batch } from '../store/group.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import { removeMarked, removeTokens } from './count.ts'
import { Removals } from './removals.ts'
import { orphanChildren, type RevokeDeps, removeTrees } from './revoke.ts'
import { isReusable, type TokenRow, tokenTable, tokenTraces } from './token.ts'

/**
 * Revocations on request. Simultaneous ones share their transactions. The first of those alone invalidates whole trees,
 * on every worker before it resolves: a look-up walks up to the root of the tree, so a descendant is refused as soon as
 * an ancestor is, even one that is being created at this moment. The rest is removal; until then the marked row makes a
 * second revoker wait too, and leads the expiry job to the remains of a crash.
 */
export class Revocations {
  readonly #deps: RevokeDeps
  readonly #rows: CoherentCache<TokenRow>
  readonly #looks: Batch<string, boolean>
  readonly #removals: Removals

  /** @param rows tokens by id */
  constructor(deps: RevokeDeps & { readonly log: Logger }, rows: CoherentCache<TokenRow>) {
    const { database } = deps
    this.#deps = deps
    this.#rows = rows
    this.#looks = new Batch(async (ids) => {
      const found = await database.read((q) => holders(deps, q, ids))
      return ids.map((id) => found.has(id))
    })
    this.#removals = new Removals((row) => this.#removeUnheld(row), deps.log)
  }

  /**
   * Revokes a token and its descendants; an absent one is not an error.
   * @returns the number of the tree's leases still to be revoked
   */
  async ofTree(id: string): Promise<number> {
    const marked = await this.#mark(id)
    return marked ? this.#clear(marked) : 0
  }

  /**
   * Revokes a token alone: its children become orphans first, so that they never stop working.
   * @returns the number of its leases still to be revoked
   */
  async ofOrphan(id: string): Promise<number> {
    await orphanChildren(this.#deps, id)
    const marked = await this.#mark(id)
    if (marked === undefined) return 0
    // Children created between that listing and the revocation.
    await orphanChildren(this.#deps, id)
    return this.#clear(marked)
  }

  /**
   * Most tokens have neither children nor leases, and no worker accepts new ones. What fails here is left to the expiry
   * job.
   * @throws ApiError 503 when children or leases may be left, or a chosen text is still taken
   */
  async #clear(marked: TokenRow): Promise<number> {
    const { id } = marked
    try {
      if (await this.#looks.add(id)) return await removeTrees(this.#deps, [id])
      if (isReusable(marked)) await this.#remove(marked)
      else this.#removals.add(marked)
      return 0
    } catch (cause) {
      if (!isUnavailable(cause)) throw cause
      throw unavailable('the token is revoked; what belongs to it could not all be removed, which is tried again', {
        cause,
      })
    }
  }

  /** Revokes a token on every worker. One whose row somebody holds waits alone. */
  async #mark(id: string): Promise<Marked> {
    const { database } = this.#deps
    const table = database.table(tokenTable)
    // Read together with others of the moment, and then changed together with them.
    const cached = await this.#rows.warm(id)
    return database.assuming({
      name: `revocation of ${id}`,
      blind: cached ? async (tx) => this.#markRow(tx, id, this.#assume(tx, id)) : undefined,
      reading: async (tx) => this.#markRow(tx, id, (await table.lockAll(tx, [id]))[0]),
    })
  }

  #assume(tx: Transaction, id: string): TokenRow {
    const row = this.#rows.assume(tx, id)
    if (row === undefined) throw new Outdated()
    this.#deps.database.table(tokenTable).assume(tx, row)
    return row
  }

  async #markRow(tx: Transaction, id: string, row: Marked): Promise<Marked> {
    const { database, clock } = this.#deps
    // One marked already, too: its first revocation may still be waiting for workers that accept it.
    tx.touch(tokenTable.name, id)
    if (row?.state !== 'active') return row
    // An expiry in the past lets the expiry job find a tree that a crash left half removed.
    return database.table(tokenTable).update(tx, row, { state: 'revoked', expiresAt: clock.wall() })
  }

  /** Whether a token's revocation was answered here, although its row may still be there. */
  ended(id: string): boolean {
    return this.#removals.has(id)
  }

  /** Resolves when the rows of the revocations that were answered here are removed, or left to the expiry job. */
  removed(): Promise<void> {
    return this.#removals.done()
  }

  /** Removes a marked token. Needs no `touch`: no worker accepts it. */
  #remove(marked: TokenRow): Promise<void> {
    const { database } = this.#deps
    return database.assuming(this.#removal(marked, (tx) => removeTokens(database, tx, [marked.id])))
  }

  /** As #remove, but waits for nobody: a row that somebody holds is left to the expiry job. */
  #removeUnheld(marked: TokenRow): Promise<void> {
    return this.#deps.database.assuming(this.#removal(marked, async () => undefined))
  }

  #removal(marked: TokenRow, reading: (tx: Transaction) => Promise<void>): Assuming<void> {
    const blind = (tx: Transaction): Promise<void> => removeMarked(this.#deps.database, tx, marked)
    return { name: `removal of ${marked.id}`, blind, reading }
  }
}

/** A token's row as its revocation left it; undefined for an absent token. */
type Marked = TokenRow | undefined

/** Those of these tokens that have children or leases. */
async function holders({ database, leases }: RevokeDeps, q: Reader, ids: readonly string[]): Promise<Set<string>> {
  const [parents, holding] = await Promise.all([
    database.unverified(tokenTraces).among(q, 'parent', ids),
    leases().holders(q, ids),
  ])
  return new Set(ids.filter((id) => parents.has(id) || holding.has(id)))
}
