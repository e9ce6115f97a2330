import { renewedUntil } from '../auth/lifetime.ts'
import type { Tokens } from '../auth/tokens.ts'
import type { Job } from '../engine.ts'
import { ApiError, badRequest, unavailable } from '../errors.ts'
import type { Call, Lease, Mount } from '../route.ts'
import { pages } from '../store/pages.ts'
import type { Transaction } from '../store/reader.ts'
import type { SealedAccess } from '../store/sealed/access.ts'
import { sound } from '../store/sealed/sound.ts'
import { expiryJob, tidyJob } from './jobs.ts'
import {
  type LeaseRequest,
  type LeaseRow,
  leaseTable,
  leaseTraces,
  type NewLease,
  prepareLease,
  shownLease,
} from './lease.ts'
import { end, type Ground, revokeAll, revokeLease } from './revoke.ts'

export interface LeasesOptions extends Ground {
  readonly tokens: Pick<Tokens, 'get'>
}

const PAGE = 100
/** Behind every text that begins with what stands before it. */
const LAST = '\u{10ffff}'

/**
 * What engines gave for a time. Tokens are not among them: they end by their own table. An engine gives a lease in three
 * steps: `prepare`, `insert` in the transaction that stores what the lease is for, and `confirm` once that is committed.
 */
export class Leases {
  /** Takes leases back when they end. */
  readonly expiry: Job
  /** Takes leases back whose token is gone. */
  readonly tidying: Job
  readonly #options: LeasesOptions
  readonly #table: SealedAccess<typeof leaseTable>

  constructor(options: LeasesOptions) {
    this.#options = options
    this.#table = options.database.table(leaseTable)
    this.expiry = expiryJob(options)
    this.tidying = tidyJob(options, async (token) => (await options.tokens.get(token)) !== undefined)
  }

  /**
   * The row of a new lease, which belongs to the caller's token.
   * @throws ApiError 400 for a caller whose token goes with this request
   */
  prepare(call: Pick<Call<unknown>, 'mount' | 'path' | 'caller'>, request: LeaseRequest): NewLease {
    return prepareLease(call, request, this.#options.clock.wall())
  }

  /** Stores leases, for the engine's own group insert. */
  async insert(tx: Transaction, rows: readonly NewLease[]): Promise<void> {
    await this.#table.insertMany(tx, rows)
  }

  /**
   * Whether the token outlived the making of its lease. A revocation lists the token's leases once no worker accepts it:
   * either it has found this one, or this is where the token is seen to be gone.
   * @param row as it was committed
   * @returns what the answer shows of the lease
   * @throws ApiError 403 when the token is gone; then the lease is taken back
   */
  async confirm(row: NewLease): Promise<Lease> {
    if ((await this.#options.tokens.get(row.token)) === undefined) {
      await revokeLease(this.#options, row.id)
      throw new ApiError(403, 'permission denied')
    }
    return shownLease(row, this.#options.clock.wall())
  }

  /** How many there are. */
  count(): Promise<number> {
    return this.#options.database.read((q) => this.#table.count(q, {}))
  }

  /** A lease by its id. */
  find(leaseId: string): Promise<LeaseRow | undefined> {
    return this.#options.database.read((q) => this.#table.find(q, { leaseId }))
  }

  /**
   * What stands directly below a prefix, in order: ids without the prefix, and names of folders with a slash behind them.
   * @param prefix '' or ending in a slash
   * @param after a key of such an answer: those beyond it only
   */
  async list(prefix: string, after: string, limit: number): Promise<string[]> {
    const keys: string[] = []
    for (let last = after; keys.length < limit; last = keys.at(-1) ?? '') {
      // Behind a folder means behind everything in it.
      const cursor = last.endsWith('/') ? prefix + last + LAST : prefix + last
      const page = { by: 'leaseId', after: cursor, limit: PAGE } as const
      const rows = await this.#options.database.read((q) => this.#table.list(q, {}, page))
      for (const { leaseId } of rows) {
        if (!leaseId.startsWith(prefix)) return keys.slice(0, limit)
        const [name = '', ...deeper] = leaseId.slice(prefix.length).split('/')
        const key = deeper.length > 0 ? `${name}/` : name
        if (key !== keys.at(-1)) keys.push(key)
      }
      if (rows.length === 0) break
    }
    return keys.slice(0, limit)
  }

  /**
   * Gives a lease more time, up to its longest life.
   * @param increment seconds asked for; 0 asks for the ttl it was made with
   * @throws ApiError 400 for a lease that is unknown, has ended or is not renewable
   */
  renew(leaseId: string, increment: number): Promise<{ lease: Lease; warnings: string[] }> {
    const { database, clock } = this.#options
    return database.transaction(async (tx) => {
      const now = clock.wall()
      const old = await this.#table.find(tx, { leaseId })
      if (old === undefined) throw badRequest('lease not found')
      if (old.attempts > 0 || old.expiresAt <= now) throw badRequest('lease expired')
      if (!old.renewable) throw badRequest('lease is not renewable')
      const life = { ...old, createdAt: old.issuedAt, explicitMaxTtlSeconds: old.maxTtlSeconds, periodSeconds: 0 }
      const { expiresAt, warnings } = renewedUntil(life, increment, now)
      const row = await this.#table.update(tx, old, { expiresAt, dueAt: expiresAt, lastRenewalAt: now })
      return { lease: shownLease(row, now), warnings }
    })
  }

  /**
   * Takes a lease back; an unknown one is no error.
   * @throws what the engine throws; the lease has ended then, and the expiry job tries again
   */
  async revoke(leaseId: string): Promise<void> {
    const row = await this.find(leaseId)
    if (row !== undefined) await revokeLease(this.#options, row.id)
  }

  /**
   * Takes back everything below a prefix that ends in a slash.
   * @throws ApiError 503 when all have ended and some could not be taken back yet
   */
  async revokePrefix(prefix: string): Promise<void> {
    let left = 0
    for await (const ids of this.#below(prefix)) left += await revokeAll(this.#options, ids)
    if (left > 0) throw unavailable(`${left} leases could not be taken back yet, and are tried again`)
  }

  /** Ends everything below a prefix at once; the expiry job takes it back. */
  async endPrefix(prefix: string): Promise<void> {
    const { database, clock } = this.#options
    for await (const ids of this.#below(prefix)) {
      await database.transaction(async (tx) => {
        for (const id of ids) {
          const row = await sound(this.#table, tx, id)
          if (row) await end(this.#table, tx, row, clock.wall(), 0)
        }
      })
    }
  }

  /** Takes back what it can below a prefix and forgets the rest, edited rows too: an engine that fails is not heard. */
  async forcePrefix(prefix: string): Promise<void> {
    for await (const ids of this.#below(prefix)) {
      await revokeAll(this.#options, ids)
      await this.#options.database.transaction(async (tx) => {
        for (const id of ids) await this.#table.removeWhere(tx, { id })
      })
    }
  }

  /**
   * Takes back what hangs on tokens that no worker accepts any more.
   * @returns how many could not be taken back at once; they have ended, and the expiry job tries again
   */
  async revokeOf(tokenIds: readonly string[]): Promise<number> {
    const { database } = this.#options
    const traces = database.unverified(leaseTraces)
    let left = 0
    for (const token of tokenIds) {
      for await (const page of pages(database, traces, { token }, { by: 'id', limit: PAGE })) {
        const ids = page.map(({ id }) => id)
        left += await revokeAll(this.#options, ids, { ripe: (row) => row.token === token })
      }
    }
    return left
  }

  /** Forgets the leases of a mount that is going, and takes what they were given for along. */
  async forget({ uuid: mount }: Mount): Promise<void> {
    const { database } = this.#options
    while ((await database.transaction((tx) => this.#table.removeWhere(tx, { mount }, { limit: PAGE }))) > 0);
  }

  /** Row ids of the leases below a prefix, page by page. */
  async *#below(prefix: string): AsyncGenerator<string[], void> {
    const { database } = this.#options
    const order = { by: 'leaseId', after: prefix, limit: PAGE } as const
    for await (const page of pages(database, database.unverified(leaseTraces), {}, order)) {
      const below = page.filter(({ leaseId }) => leaseId.startsWith(prefix))
      yield below.map(({ id }) => id)
      if (below.length < page.length) return
    }
  }
}
