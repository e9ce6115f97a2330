import { ApiError, badRequest } from '../errors.ts'
import type { Counter } from '../metrics.ts'
import type { MaybePromise, Mount } from '../route.ts'
import type { Settings, SettingValue } from '../settings/settings.ts'
import type { Database } from '../store/database.ts'
import type { Reader, Transaction } from '../store/reader.ts'

/** A lease-count quota as it is stored. */
export interface LeaseCount {
  readonly name: string
  /** A mount with its slash; empty for all mounts without a quota of their own. */
  readonly path: string
  readonly maxLeases: number
}

const mostLeases = 1_000_000_000

/** @param maxLeases as it was sent @throws ApiError 400 that names the field */
export function readLeaseCount(path: string, maxLeases: number | undefined): SettingValue {
  if (maxLeases === undefined || maxLeases < 1 || maxLeases > mostLeases)
    throw badRequest(`max_leases must be from 1 to ${mostLeases}`)
  return { path, maxLeases }
}

/** @param values those of the kind `lease-count` */
export const leaseCounts = (values: ReadonlyMap<string, SettingValue>): readonly LeaseCount[] =>
  [...values].map(([name, value]) => ({ ...(value as unknown as Omit<LeaseCount, 'name'>), name }))

/** Names of counts that transactions keep (`Transaction.tally`). */
export interface LeaseTallies {
  readonly all: string
  of(mount: string): string
}

export interface LeaseQuotasOptions {
  readonly settings: Settings
  readonly database: Database
  readonly tallies: LeaseTallies
  /** Counts the leases of a mount one by one. @param mount its uuid */
  stored(q: Reader, mount: string): Promise<number>
  /** The mount at a path. */
  mountOf(path: string): MaybePromise<Mount | undefined>
  /** Counts refusals. */
  readonly violations: Counter
}

/** The members of a lease that counting needs. */
interface Leased {
  /** The uuid. */
  readonly mount: string
  /** The path of the request and a random part. */
  readonly leaseId: string
}

/** A quota and the counts it compares. */
interface Counted {
  readonly maxLeases: number
  readonly tally: string
  /** To be left out: those of mounts with a quota of their own. */
  readonly without: readonly string[]
}

/** How a count is read: in a transaction, or now. */
type ReadTally = (name: string) => Promise<number>

/**
 * Lease-count quotas: how many leases there may be at a time, in a mount or in all mounts without a quota of their own.
 * Every transaction that stores or removes leases keeps the counts; while one stores leases, others under the same
 * quota wait, so that no quota is exceeded.
 */
export class LeaseQuotas {
  readonly #options: LeaseQuotasOptions

  constructor(options: LeaseQuotasOptions) {
    this.#options = options
  }

  /** The quotas as they are now; undefined where there are none. */
  async limits(): Promise<LeaseLimitsNow | undefined> {
    const quotas = leaseCounts(await this.#options.settings.of('lease-count'))
    if (quotas.length === 0) return undefined
    const { byMount, all } = await this.#resolve(quotas)
    const { database, violations } = this.#options
    return new LeaseLimitsNow({ byMount, all }, (name) => database.tally(name), violations)
  }

  /** The number of leases that count towards a quota. */
  async count(quota: LeaseCount): Promise<number> {
    const { byPath, all } = await this.#resolve(leaseCounts(await this.#options.settings.of('lease-count')))
    const counted = quota.path === '' ? all : byPath.get(quota.path)
    return counted === undefined ? 0 : countOf(counted, (name) => this.#options.database.tally(name))
  }

  /**
   * Corrects the count of a mount before a quota relies on it: older programs gave and ended leases without counting
   * them. Reads every lease of the mount; others under its quota wait.
   * @param path of a quota: empty for all mounts, whose count every program has kept
   */
  async recount(path: string): Promise<void> {
    const { database, tallies, mountOf, stored } = this.#options
    const mount = path === '' ? undefined : await mountOf(path.slice(0, -1))
    if (mount?.path !== path) return
    const name = tallies.of(mount.uuid)
    await database.transaction(async (tx) => {
      await tx.holdTally(name)
      // Both from one snapshot: the difference is the error of the count.
      const there = await stored(tx, mount.uuid)
      tx.tally(name, there - (await tx.tallied(name)))
    })
  }

  /** A quota whose mount is gone counts nothing. */
  async #resolve(quotas: readonly LeaseCount[]) {
    const { tallies, mountOf } = this.#options
    const byMount = new Map<string, Counted>()
    const byPath = new Map<string, Counted>()
    for (const { path, maxLeases } of quotas) {
      const mount = path === '' ? undefined : await mountOf(path.slice(0, -1))
      if (mount?.path !== path) continue
      const counted = { maxLeases, tally: tallies.of(mount.uuid), without: [] }
      byMount.set(mount.uuid, counted)
      byPath.set(path, counted)
    }
    const global = quotas.find(({ path }) => path === '')
    const without = [...byMount.values()].map(({ tally }) => tally)
    const all = global && { maxLeases: global.maxLeases, tally: tallies.all, without }
    return { byMount, byPath, all }
  }
}

/** The quotas of leases of one moment. */
class LeaseLimitsNow {
  readonly #byMount: ReadonlyMap<string, Counted>
  readonly #all: Counted | undefined
  readonly #now: ReadTally
  readonly #violations: Counter

  constructor(
    { byMount, all }: { readonly byMount: ReadonlyMap<string, Counted>; readonly all: Counted | undefined },
    now: ReadTally,
    violations: Counter,
  ) {
    this.#byMount = byMount
    this.#all = all
    this.#now = now
    this.#violations = violations
  }

  /** @param path below the mount @throws ApiError 429 where the mount has no room for a lease */
  async requireRoom(mount: Mount, path: string): Promise<void> {
    const counted = this.#quotaOf(mount.uuid)
    if (counted === undefined || (await countOf(counted, this.#now)) < counted.maxLeases) return
    throw this.#exceeded(`${mount.path}${path}`)
  }

  /**
   * The leases that have no room; the last ones are refused first. Counts are locked in the order of names, as
   * everywhere.
   */
  async refuse<L extends Leased>(tx: Transaction, rows: readonly L[]): Promise<ReadonlyMap<L, ApiError>> {
    const byQuota = Map.groupBy(rows, ({ mount }) => this.#quotaOf(mount))
    const refusals = new Map<L, ApiError>()
    const quotas = [...byQuota.keys()].filter((counted) => counted !== undefined)
    const inOrder = quotas.toSorted((one, other) => (one.tally < other.tally ? -1 : 1))
    for (const { tally } of inOrder) await tx.holdTally(tally)
    for (const counted of inOrder) {
      const room = counted.maxLeases - (await countOf(counted, (name) => tx.tallied(name)))
      for (const row of byQuota.get(counted)?.slice(Math.max(0, room)) ?? [])
        refusals.set(row, this.#exceeded(row.leaseId.slice(0, row.leaseId.lastIndexOf('/'))))
    }
    return refusals
  }

  #exceeded(path: string): ApiError {
    this.#violations.value++
    return new ApiError(429, `request path "${path}": lease count quota exceeded`, { style: 'list' })
  }

  #quotaOf(mount: string): Counted | undefined {
    return this.#byMount.get(mount) ?? this.#all
  }
}

async function countOf({ tally, without }: Counted, read: ReadTally): Promise<number> {
  const [all, ...others] = await Promise.all([tally, ...without].map(read))
  return Math.max(0, (all ?? 0) - others.reduce((sum, one) => sum + one, 0))
}
