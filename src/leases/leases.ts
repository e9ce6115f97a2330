import { renewedUntil } from '../auth/lifetime.ts'
import type { Tokens } from '../auth/tokens.ts'
import { ApiError, badRequest, isUnavailable, unavailable } from '../errors.ts'
import type { Claim, Job } from '../job.ts'
import type { Call, Lease, MaybePromise, Mount } from '../route.ts'
import { pages } from '../store/pages.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import type { Reading, SealedAccess } from '../store/sealed/access.ts'
import { sound } from '../store/sealed/sound.ts'
import type { Row } from '../store/table.ts'
import { expiryJob, tidyJob } from './jobs.ts'
import {
  describeLease,
  type LeaseRequest,
  type LeaseRow,
  leaseNames,
  leaseTable,
  leaseTally,
  leaseTraces,
  mountTally,
  type NewLease,
  prepareLease,
} from './lease.ts'
import { expireLease, type RevokeDeps, removeLeases, revokeAll, revokeLease } from './revoke.ts'

export interface LeasesOptions extends RevokeDeps {
  readonly tokens: Pick<Tokens, 'get'>
  /** Whether a mount was removed. Its leases stay until a job removes them, but are no longer shown. */
  removed(mount: string): MaybePromise<boolean>
  /** Absent where there are no quotas. */
  limits?(): MaybePromise<LeaseLimits | undefined>
}

/** Refusals of leases that are beyond a quota. */
export type Refusals = ReadonlyMap<NewLease, ApiError>

/** The quotas of leases at one moment. */
export interface LeaseLimits {
  /** Throws ApiError 429 where a mount has no room for a lease. @param path below the mount */
  requireRoom(mount: Mount, path: string): Promise<void>
  /** The leases beyond a quota, however many others are stored at the same time. Must be first in its transaction. */
  refuse(tx: Transaction, rows: readonly NewLease[]): Promise<Refusals>
}

const noRefusals: Refusals = new Map()
const pageSize = 100
const removedAtOnce = 200
const idsOf = (leases: readonly { readonly id: string }[]): string[] => leases.map(({ id }) => id)
/** Sorts after every continuation of the text before it. */
const lastCharacter = '\u{10ffff}'

/**
 * The leases of engines. Tokens are not among them: they expire by their own table. An engine creates a lease in three
 * steps: `prepare`, `insert` in the transaction that stores the leased object, and `confirm` after its commit.
 */
export class Leases {
  /** Revokes leases when they expire. */
  readonly expiry: Job
  /** Revokes leases whose token is gone. */
  readonly tidying: Job
  readonly #options: LeasesOptions
  readonly #table: SealedAccess<typeof leaseTable>
  readonly #names: Reading<typeof leaseNames>

  constructor(options: LeasesOptions) {
    this.#options = options
    this.#table = options.database.table(leaseTable)
    this.#names = options.database.unverified(leaseNames)
    this.expiry = expiryJob(options)
    this.tidying = tidyJob(options, async (token) => (await options.tokens.get(token)) !== undefined)
  }

  /**
   * The row of a new lease, which belongs to the caller's token.
   * @throws ApiError 400 for a caller whose token ends with this request
   */
  prepare(call: Pick<Call<unknown>, 'mount' | 'path' | 'caller'>, request: LeaseRequest): NewLease {
    return prepareLease(call, request, this.#options.clock.wall())
  }

  /** The current quotas, to be read before the transaction that stores leases; undefined where there are none. */
  limits(): MaybePromise<LeaseLimits | undefined> {
    return this.#options.limits?.()
  }

  /**
   * Refuses a lease beyond its quota, before there is work for it; `insert` decides.
   * @throws ApiError 429
   */
  async requireRoom({ mount, path }: Pick<Call<unknown>, 'mount' | 'path'>): Promise<void> {
    const limits = await this.limits()
    if (limits !== undefined) await limits.requireRoom(mount, path)
  }

  /**
   * Stores leases, for the engine's own group insert, before anything else of the transaction.
   * @param limits the current ones
   * @returns the refusals of leases beyond a quota, which are not stored; their leased objects must not be stored
   *   either
   */
  async insert(tx: Transaction, rows: readonly NewLease[], limits?: LeaseLimits): Promise<Refusals> {
    const refusals = (rows.length > 0 && (await limits?.refuse(tx, rows))) || noRefusals
    const stored = rows.filter((row) => !refusals.has(row))
    await this.#table.insertMany(tx, stored)
    tx.tally(leaseTally, stored.length)
    for (const { mount } of stored) tx.tally(mountTally(mount), 1)
    return refusals
  }

  /**
   * Checks that the token outlived the creation of its lease. A revocation lists the token's leases once no worker
   * accepts the token: either that listing finds this lease, or this look-up finds the token gone. A look-up that fails
   * refuses nothing, since the lease and what was leased are stored: it may then stay until it expires, as after a
   * crash.
   * @param row the committed one
   * @returns the lease as the answer shows it
   * @throws ApiError 403 when the token is gone; then the lease is revoked
   */
  async confirm(row: NewLease): Promise<Lease> {
    const { log, clock } = this.#options
    if (await this.#isTokenGone(row)) {
      await revokeLease(this.#options, row.id).catch((error: unknown) =>
        log.warn({ err: error, lease: row.id }, 'a lease whose token is gone could not be revoked'),
      )
      throw new ApiError(403, 'permission denied')
    }
    return describeLease(row, clock.wall())
  }

  async #isTokenGone({ id, token }: NewLease): Promise<boolean> {
    try {
      return (await this.#options.tokens.get(token)) === undefined
    } catch (error) {
      if (!isUnavailable(error)) throw error
      this.#options.log.warn({ err: error, lease: id }, 'whether the token of a new lease is gone could not be read')
      return false
    }
  }

  /** The number of leases in the cluster. */
  count(): Promise<number> {
    return this.#options.database.tally(leaseTally)
  }

  /** The number of leases of a mount, by reading all of them. @param mount its uuid */
  countStored(q: Reader, mount: string): Promise<number> {
    return this.#options.database.unverified(leaseTraces).count(q, { mount })
  }

  /** A lease by its id. */
  async find(leaseId: string): Promise<LeaseRow | undefined> {
    const row = await this.#options.database.read((q) => this.#table.find(q, { leaseId }))
    return row === undefined || (await this.#options.removed(row.mount)) ? undefined : row
  }

  /**
   * The keys directly below a prefix, in order: ids without the prefix, and folders with a slash at the end.
   * @param prefix '' or ending in a slash
   * @param after a key of an earlier answer: only keys after it
   */
  async list(prefix: string, after: string, limit: number): Promise<string[]> {
    const keys: string[] = []
    const known = new Map<string, MaybePromise<boolean>>()
    const removed = (mount: string): MaybePromise<boolean> => {
      const found = known.get(mount) ?? this.#options.removed(mount)
      known.set(mount, found)
      return found
    }
    let last = after
    while (keys.length < limit) {
      // After a folder means after everything in it.
      const cursor = last.endsWith('/') ? prefix + last + lastCharacter : prefix + last
      const page = { by: 'leaseId', after: cursor, limit: pageSize } as const
      const rows = await this.#options.database.read((q) => this.#names.list(q, {}, page))
      for (const { leaseId, mount } of rows) {
        if (!leaseId.startsWith(prefix)) return keys.slice(0, limit)
        last = leaseId.slice(prefix.length)
        if (await removed(mount)) continue
        const [name = '', ...deeper] = last.split('/')
        last = deeper.length > 0 ? `${name}/` : name
        if (last !== keys.at(-1)) keys.push(last)
      }
      if (rows.length === 0) break
    }
    return keys.slice(0, limit)
  }

  /**
   * Extends a lease, up to its longest life.
   * @param increment requested seconds; 0 requests those of the last renewal, or else the ttl it was created with
   * @throws ApiError 400 for a lease that is unknown, expired or not renewable
   */
  renew(leaseId: string, increment: number): Promise<{ lease: Lease; warnings: string[] }> {
    const { database, clock } = this.#options
    return database.transaction(async (tx) => {
      const now = clock.wall()
      const old = await this.#table.find(tx, { leaseId })
      if (old === undefined || (await this.#options.removed(old.mount))) throw badRequest('lease not found')
      if (old.attempts > 0 || old.expiresAt <= now) throw badRequest('lease expired')
      if (!old.renewable) throw badRequest('lease is not renewable')
      const life = { ...old, createdAt: old.issuedAt, explicitMaxTtlSeconds: old.maxTtlSeconds, periodSeconds: 0 }
      const { expiresAt, warnings } = renewedUntil(life, increment, now)
      const row = await this.#table.update(tx, old, { expiresAt, dueAt: expiresAt, lastRenewalAt: now })
      return { lease: describeLease(row, now), warnings }
    })
  }

  /**
   * Revokes a lease; an unknown one is not an error.
   * @throws the engine's error; the lease has expired then, and the expiry job tries again
   */
  async revoke(leaseId: string): Promise<void> {
    const row = await this.find(leaseId)
    if (row !== undefined) await revokeLease(this.#options, row.id)
  }

  /**
   * Revokes every lease below a prefix that ends in a slash.
   * @throws ApiError 503 when all have expired but some could not be revoked yet
   */
  async revokePrefix(prefix: string): Promise<void> {
    let left = 0
    for await (const leases of this.#below(prefix)) left += await revokeAll(this.#options, idsOf(leases))
    if (left > 0) throw unavailable(`${left} leases could not be revoked yet and are tried again`)
  }

  /** Expires every lease below a prefix now; the expiry job revokes them. */
  async expirePrefix(prefix: string): Promise<void> {
    const { database, clock } = this.#options
    for await (const leases of this.#below(prefix)) {
      await database.transaction(async (tx) => {
        for (const { id } of leases) {
          const row = await sound(this.#table, tx, id)
          if (row) await expireLease(this.#table, tx, row, clock.wall(), 0)
        }
      })
    }
  }

  /** Revokes the leases below a prefix, and also removes edited rows and those that the engine fails to revoke. */
  async revokeForce(prefix: string): Promise<void> {
    for await (const leases of this.#below(prefix)) {
      await revokeAll(this.#options, idsOf(leases))
      await this.#options.database.transaction(async (tx) => {
        await removeLeases(this.#table, tx, leases)
      })
    }
  }

  /** Those of these tokens that have leases. */
  holders(q: Reader, tokenIds: readonly string[]): Promise<Set<string>> {
    return this.#options.database.unverified(leaseTraces).among(q, 'token', tokenIds)
  }

  /**
   * Revokes the leases of tokens that no worker accepts any more.
   * @returns the number that could not be revoked at once; they have expired, and the expiry job tries again
   */
  async revokeByToken(tokenIds: readonly string[]): Promise<number> {
    const { database } = this.#options
    const traces = database.unverified(leaseTraces)
    let left = 0
    for (const token of tokenIds) {
      for await (const page of pages(database, traces, { token }, { by: 'id', limit: pageSize })) {
        const ids = page.map(({ id }) => id)
        left += await revokeAll(this.#options, ids, { eligible: (row) => row.token === token })
      }
    }
    return left
  }

  /**
   * Removes a portion of the leases of a removed mount, whose leased objects are removed with it.
   * @returns whether there were any
   */
  async removeSome({ uuid: mount }: Mount, { job, fence }: Claim): Promise<boolean> {
    const { database } = this.#options
    const traces = database.unverified(leaseTraces)
    const found = await database.read((q) => traces.list(q, { mount }, { by: 'id', limit: removedAtOnce }))
    if (found.length === 0) return false
    await database.transaction(async (tx) => {
      await tx.fence(job, fence)
      await removeLeases(this.#table, tx, found)
    })
    return true
  }

  /** Forgets the count of a removed mount, once nothing of the mount is left. */
  async forget({ uuid }: Mount, { job, fence }: Claim): Promise<void> {
    await this.#options.database.transaction(async (tx) => {
      await tx.fence(job, fence)
      await tx.discardTallies(mountTally(uuid))
    })
  }

  /** The leases below a prefix, page by page and unverified. */
  async *#below(prefix: string): AsyncGenerator<Row<typeof leaseTraces>[], void> {
    const { database } = this.#options
    const order = { by: 'leaseId', after: prefix, limit: pageSize } as const
    for await (const page of pages(database, database.unverified(leaseTraces), {}, order)) {
      const below = page.filter(({ leaseId }) => leaseId.startsWith(prefix))
      yield below
      if (below.length < page.length) return
    }
  }
}
