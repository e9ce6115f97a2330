import { after } from '../after.ts'
import type { Clock } from '../clock.ts'
import { ApiError, badRequest, unavailable, unlessUnavailable } from '../errors.ts'
import type { Job } from '../job.ts'
import type { Logger } from '../log.ts'
import type { MaybePromise } from '../route.ts'
import type { CoherentCache } from '../store/coherence/cache.ts'
import type { Database } from '../store/database.ts'
import { DuplicateRow } from '../store/faults.ts'
import type { GroupInsert } from '../store/group.ts'
import { pages } from '../store/pages.ts'
import type { SealedAccess } from '../store/sealed/access.ts'
import type { New } from '../store/table.ts'
import { insertToken, tokenTally } from './count.ts'
import { type CredentialKind, fingerprint, type GuessFilter, guessFilter, isAccessor } from './credential.ts'
import { expiryJob, tidyJob } from './expire.ts'
import { renewedUntil } from './lifetime.ts'
import { memo } from './memo.ts'
import { Revocations } from './revocations.ts'
import type { TokenLeases } from './revoke.ts'
import {
  accessorTraces,
  type CredentialKeys,
  isReusable,
  type NewToken,
  prepareToken,
  type TokenRow,
  tokenLeaseTraces,
  tokenTable,
  usable,
} from './token.ts'
import { Uses } from './uses.ts'

export interface TokensOptions {
  readonly database: Database
  readonly keys: CredentialKeys
  readonly clock: Clock
  readonly log: Logger
  /** The database's current epoch: tokens of an earlier one are void. */
  readonly epoch: number
  leases(): TokenLeases
}

const cacheSize = 10_000
/** How long a credential without a row is refused unasked: a row would have been committed before it was handed out. */
const deadMilliseconds = 10_000
/** Every request walks up its token's tree, so the tree's height is bounded. */
const maxDepth = 32
/** Key of the one entry that tells whether custom credentials exist. */
const customEntry = 'custom'
/** Rows read at once for a listing. */
const pageSize = 500

/** Service tokens: created, looked up, used, renewed and revoked. */
export class Tokens {
  /** Removes expired tokens. */
  readonly expiry: Job
  /** Removes tokens that can never work again. */
  readonly tidying: Job
  readonly #options: TokensOptions
  readonly #filter: GuessFilter
  readonly #table: SealedAccess<typeof tokenTable>
  readonly #inserts: GroupInsert<typeof tokenTable>
  readonly #rows: CoherentCache<TokenRow>
  readonly #uses: Uses
  readonly #revocations: Revocations
  readonly #customs: CoherentCache<{ readonly exist: boolean }>
  /**
   * Row ids of tokens with unlimited uses, by fingerprint of the credential. The id never changes while the row exists,
   * so this cache needs no coherence.
   */
  readonly #ids = memo<string>(cacheSize)
  /** Until when credentials of ours without a row are refused, by fingerprint; monotonic milliseconds. */
  readonly #dead = memo<number>(cacheSize)

  constructor(options: TokensOptions) {
    const { database } = options
    const table = tokenTable.name
    this.#options = options
    this.#filter = guessFilter(options.keys.audit.guess)
    this.#table = database.table(tokenTable)
    this.#inserts = database.group(tokenTable, tokenTally)
    // A token with a limited number of uses is never cached: its row changes with each use.
    this.#rows = database.cache({
      table,
      limit: cacheSize,
      load: {
        joined: database.joined({
          tables: { token: tokenTable },
          key: (id) => ({ id }),
          value: ({ token }) => (token?.numUses === 0 ? token : undefined),
        }),
      },
    })
    this.#uses = new Uses(options)
    this.#revocations = new Revocations(options, this.#rows)
    this.expiry = expiryJob(options, options.epoch)
    this.tidying = tidyJob(options, options.epoch)
    this.#customs = database.cache({
      table,
      limit: 1,
      load: async (q) => ({ exist: await this.#table.exists(q, { type: 'custom' }) }),
    })
  }

  /**
   * Creates a token.
   * @throws ApiError 400 for a custom text that is taken or not allowed, or too high a tree; 403 when the parent is
   *   gone
   */
  async create(token: NewToken): Promise<{ credential: string; row: TokenRow }> {
    if (token.parent !== null) await this.#checkParent(token.parent.id)
    const { keys, clock } = this.#options
    const { credential, row } = await prepareToken(keys, clock.wall(), token, this.#filter)
    const creating = this.#rows.creating(row.id)
    const insert = token.custom === undefined ? this.#inserts.insert(row) : this.#insertCustom(row)
    const created = await insert
    if (created.numUses === 0) creating.done(created)
    this.#remember(fingerprint(credential), created)
    // A revocation of the parent lists its children once no worker accepts the parent: either that listing finds this
    // token, or this look-up finds the parent gone.
    if (token.parent !== null && (await this.#isGone(token.parent.id))) {
      // Without its parent it is refused everywhere, removed or not.
      await this.revoke(created.id).catch(unlessUnavailable)
      throw new ApiError(403, 'permission denied')
    }
    return { credential, row: created }
  }

  /** False when it cannot be known: the child of a parent that is gone is refused at every use. */
  async #isGone(id: string): Promise<boolean> {
    try {
      return (await this.get(id)) === undefined
    } catch (error) {
      unlessUnavailable(error)
      return false
    }
  }

  /**
   * The living token of a credential, for the request it authenticates: takes one of its uses if they are limited.
   * After the last use the row's `numUses` is `spentUses`, and the caller must revoke the token when the request has
   * run.
   * @throws ApiError 503 when the use could not be taken, or may have been
   */
  use(credential: string): MaybePromise<TokenRow | undefined> {
    return after(this.lookup(credential), (row) =>
      row === undefined || row.numUses === 0 ? row : this.#uses.take(row.id),
    )
  }

  /** The living token of a credential. Synchronous when the token and its ancestors are cached. */
  lookup(credential: string): MaybePromise<TokenRow | undefined> {
    const print = fingerprint(credential)
    const id = this.#ids.get(print)
    const row = id === undefined ? undefined : this.#rows.peek(id)
    if (row !== undefined && !isReusable(row)) return this.#living(row)
    // A chosen text may have been given to another token since the one that is known here ended.
    if (row !== undefined) return after(this.#living(row), (alive) => alive ?? this.#find(credential, print, 'custom'))
    const kind = this.#kindOf(credential, print)
    if (kind === 'forged') return undefined
    const find = () => this.#find(credential, print, kind)
    return id === undefined ? find() : this.get(id).then((found) => found ?? find())
  }

  /** A living token by its id. */
  async get(id: string): Promise<TokenRow | undefined> {
    const row = (await this.#rows.get(id)) ?? (await this.#stored(id))
    return row && this.#living(row)
  }

  /** A living token by its accessor. */
  async withAccessor(accessor: string): Promise<TokenRow | undefined> {
    const id = await this.idOfAccessor(accessor)
    return id === undefined ? undefined : this.get(id)
  }

  /**
   * The id of a stored token, for its revocation: one that no longer works may still be accepted by another worker, if
   * its revocation is under way.
   */
  async idOf(credential: string): Promise<string | undefined> {
    const print = fingerprint(credential)
    const id = this.#ids.get(print)
    if (id !== undefined && this.#revocations.ended(id)) return undefined
    const known = id === undefined ? undefined : ((await this.#rows.get(id)) ?? (await this.#stored(id)))
    if (known !== undefined && !isReusable(known)) return known.id
    const kind = this.#kindOf(credential, print)
    return kind === 'forged' ? undefined : (await this.#row(credential, print, kind))?.id
  }

  /** As idOf, by an accessor. */
  async idOfAccessor(accessor: string): Promise<string | undefined> {
    if (!isAccessor(accessor)) return undefined
    return this.#unlessEnded(await this.#options.database.read((q) => this.#table.find(q, { accessor })))?.id
  }

  /** As idOf, by the path that made the token and a row id; undefined for a token that does not expire. */
  async idAt(path: string, id: string): Promise<string | undefined> {
    const row = await this.#stored(id)
    return row?.path === path && row.expiresAt !== null ? id : undefined
  }

  /**
   * Accessors, in order, of the tokens that are valid by their own rows.
   * @param after only those after this one
   */
  async accessors(after: string, limit: number): Promise<string[]> {
    const found: string[] = []
    const { database } = this.#options
    const order = { by: 'accessor', after, limit: pageSize } as const
    for await (const page of pages(database, database.unverified(accessorTraces), {}, order)) {
      for (const row of page) if (this.#usable(row)) found.push(row.accessor)
      if (found.length >= limit) break
    }
    return found.slice(0, limit)
  }

  /** The number of tokens that are stored; a revoked one is for a moment after its revocation was answered. */
  count(): Promise<number> {
    return this.#options.database.tally(tokenTally)
  }

  /**
   * Tokens with an expiry that are valid by their own rows, a page at a time in the order of their ids.
   * @param after only those after this id
   */
  async *ending(after: string): AsyncGenerator<Pick<TokenRow, 'id' | 'path'>[], void> {
    const { database } = this.#options
    const order = { by: 'id', after, limit: pageSize } as const
    for await (const page of pages(database, database.unverified(tokenLeaseTraces), {}, order)) {
      yield page.filter((row) => row.expiresAt !== null && this.#usable(row))
    }
  }

  /**
   * Extends a token's life; effective everywhere before it resolves.
   * @param increment requested seconds; 0 requests those of the last renewal, or else the ttl it was created with
   * @throws ApiError 400
   */
  async renew(id: string, increment: number): Promise<{ row: TokenRow; warnings: string[] }> {
    const { database, clock } = this.#options
    return database.transaction(async (tx) => {
      const now = clock.wall()
      const old = await this.#table.get(tx, id)
      if (old === undefined || !this.#usable(old)) throw badRequest('token not found')
      if (!old.renewable) throw badRequest('lease is not renewable')
      const { expiresAt, warnings } = renewedUntil(old, increment, now)
      const row = await this.#table.update(tx, old, { expiresAt, lastRenewalAt: now })
      tx.touch(tokenTable.name, id)
      return { row, warnings }
    })
  }

  /**
   * Revokes a token and its descendants, with their leases; none of them works anywhere once this resolves.
   * @throws ApiError 503 when the tokens are revoked but some leases could not be revoked yet
   */
  async revoke(id: string): Promise<void> {
    requireComplete(await this.#revocations.ofTree(id))
  }

  /** Removes the rows of the revocations that this worker has answered. Never rejects. */
  removeRevoked(): Promise<void> {
    return this.#revocations.removed()
  }

  /** Revokes one token; its children become orphans. */
  async revokeOrphan(id: string): Promise<void> {
    requireComplete(await this.#revocations.ofOrphan(id))
  }

  /** Guesses cost neither database nor token. */
  #kindOf(credential: string, print: string): CredentialKind {
    return this.#clockIsBefore(this.#dead.get(print)) ? 'forged' : this.#filter.screen(credential)
  }

  async #find(credential: string, print: string, kind: CredentialKind): Promise<TokenRow | undefined> {
    const row = await this.#row(credential, print, kind)
    return row?.numUses === 0 ? this.get(row.id) : row && this.#living(row)
  }

  /** The row of a credential, whether it works or not. */
  async #row(credential: string, print: string, kind: CredentialKind): Promise<TokenRow | undefined> {
    if (kind === 'custom' && !(await this.#customs.get(customEntry))?.exist) return undefined
    const hash = await this.#options.keys.tokenMac(Buffer.from(credential))
    const row = this.#unlessEnded(await this.#options.database.read((q) => this.#table.find(q, { hash })))
    if (row !== undefined) this.#remember(print, row)
    else if (kind !== 'custom') this.#dead.set(print, this.#options.clock.monotonic() + deadMilliseconds)
    return row
  }

  async #stored(id: string): Promise<TokenRow | undefined> {
    return this.#unlessEnded(await this.#options.database.read((q) => this.#table.get(q, id)))
  }

  /** A row whose revocation was answered is as good as gone. */
  #unlessEnded(row: TokenRow | undefined): TokenRow | undefined {
    return row && this.#revocations.ended(row.id) ? undefined : row
  }

  #remember(print: string, { id, numUses }: TokenRow): void {
    if (numUses === 0) this.#ids.set(print, id)
  }

  #clockIsBefore(end: number | undefined): boolean {
    return end !== undefined && this.#options.clock.monotonic() < end
  }

  #living(row: TokenRow): MaybePromise<TokenRow | undefined> {
    for (let at = row; this.#usable(at); ) {
      if (at.parent === null) return row
      const parent = this.#rows.peek(at.parent)
      if (parent === undefined) return this.#livingAbove(at.parent).then((alive) => (alive ? row : undefined))
      at = parent
    }
    return undefined
  }

  async #livingAbove(id: string): Promise<boolean> {
    const row = await this.#rows.get(id)
    return row !== undefined && this.#usable(row) && (row.parent === null || (await this.#livingAbove(row.parent)))
  }

  #usable(row: Parameters<typeof usable>[0]): boolean {
    return usable(row, this.#options.clock.wall(), this.#options.epoch)
  }

  async #checkParent(parent: string): Promise<void> {
    let at = await this.#rows.get(parent)
    for (let height = 1; at !== undefined && this.#usable(at); height++) {
      if (height === maxDepth) throw badRequest(`tokens may not descend from each other more than ${maxDepth} times`)
      if (at.parent === null) return
      at = await this.#rows.get(at.parent)
    }
    throw new ApiError(403, 'permission denied')
  }

  async #insertCustom(row: New<typeof tokenTable>): Promise<TokenRow> {
    try {
      return await this.#options.database.transaction((tx) => {
        tx.touch(tokenTable.name, customEntry)
        return insertToken(this.#options.database, tx, row)
      })
    } catch (error) {
      if (error instanceof DuplicateRow) throw badRequest('cannot create a token with a duplicate ID')
      throw error
    }
  }
}

function requireComplete(left: number): void {
  if (left > 0)
    throw unavailable(`the token is revoked; ${left} of its leases could not be revoked yet and are tried again`)
}
