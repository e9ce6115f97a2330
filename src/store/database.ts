import { randomUUID } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Job } from '../job.ts'
import type { Logger } from '../log.ts'
import type { Timing } from '../metrics/timing.ts'
import { Metrics } from '../metrics.ts'
import type { SharedLogPlace } from '../workload.ts'
import { type Assuming, Assumptions, type Settling } from './assuming.ts'
import { type CacheOptions, type CoherentCache, StampedCache } from './coherence/cache.ts'
import type { Skew } from './coherence/clocks.ts'
import { Coherence, type LeaseTimes } from './coherence/coherence.ts'
import { type Joined, type JoinedOptions, joinedRows } from './coherence/joined.ts'
import { Publisher } from './coherence/publisher.ts'
import { Reaper } from './coherence/reaper.ts'
import { Registry } from './coherence/registry.ts'
import { Settlement } from './coherence/settlement.ts'
import { SharedLog } from './coherence/sharedlog.ts'
import { Batch, type GroupInsert } from './group.ts'
import { type JobLease, placeOf, releaseLeases, takeLease } from './lease.ts'
import { type Measured, measuredIn } from './measured.ts'
import { Migrator, type SchemaStatus } from './migrations/migrate.ts'
import type { Migration } from './migrations/migration.ts'
import type { Tls } from './pool/connection.ts'
import { Outcomes } from './pool/outcomes.ts'
import { Pools, type ReadLane } from './pool/pools.ts'
import { persist } from './pool/retry.ts'
import { Session } from './pool/session.ts'
import { parseTargets } from './pool/target.ts'
import { Transactions } from './pool/transactions.ts'
import type { Reader, Transaction } from './reader.ts'
import type { Access, Reading } from './sealed/access.ts'
import { type Head, headOf } from './sealed/heads.ts'
import { plainAccess } from './sealed/plain.ts'
import { reading } from './sealed/reading.ts'
import { type Mac, Seal } from './sealed/seal.ts'
import { sealedAccess } from './sealed/sealed.ts'
import { Shape } from './sealed/shape.ts'
import type { New, Row, Table } from './table.ts'
import { totalOf } from './tally.ts'

export interface DatabaseOptions {
  /** `mysql://user:password@host:port/name`, `?socketPath=`; several, separated by commas, are nodes of one cluster. */
  readonly url: string
  /** The most connections for requests; a few more are kept for polls, waits and counters. */
  readonly poolSize: number
  readonly tls?: Tls
  readonly log: Logger
  readonly clock: Clock
  readonly metrics?: Metrics
  /** This process's place in the log that the workers of its node share. */
  readonly sharedLog?: SharedLogPlace
  /** Makes other nodes poll. */
  readonly nudge?: () => void
  /** L is the same on every node. */
  readonly lease?: Partial<LeaseTimes>
  /** The schema this program knows; tests may give another. */
  readonly migrations?: readonly Migration[]
}

export interface TransactionOptions {
  readonly deadlineMilliseconds?: number
  /** `counters`: a separate lane for small transactions that a request cannot continue without. */
  readonly lane?: 'requests' | 'counters'
}

interface CommitOptions extends TransactionOptions {
  /** The work reads nothing, so that a DuplicateRow is thrown at once. */
  readonly blind?: boolean
}

const openMilliseconds = 10_000
const tidyEverySeconds = 60
/** The most by which the clocks of two hosts may differ. */
export const clockLimitMilliseconds = 30_000
const defaultTimes: LeaseTimes = { leaseMilliseconds: 1000, marginMilliseconds: 250, pollMilliseconds: 100 }

/**
 * All stored state. Reads are causal, transactions are repeated after a conflict, sealed rows are verified, and when a
 * transaction is answered no worker's cache holds a value it touched.
 */
export class Database {
  /** Names this process among the registrations, for `forget`. */
  readonly incarnation = randomUUID()
  /** Jobs of the store, for the process that leads jobs. */
  readonly jobs: readonly Job[]
  readonly #pools: Pools
  readonly #seal: Seal
  readonly #registry: Registry
  readonly #transactions: Transactions
  readonly #counters: Transactions
  readonly #public: Transactions
  readonly #migrator: Migrator
  readonly #coherence: Coherence
  readonly #settlement: Settlement
  readonly #publisher: Publisher
  readonly #caches = new Set<StampedCache<unknown>>()
  readonly #tables = new Map<Table, unknown>()
  readonly #assumptions: Assumptions
  readonly #measured: Measured
  readonly #options: DatabaseOptions
  readonly #times: LeaseTimes
  #reaper: Reaper | undefined

  private constructor(options: DatabaseOptions) {
    const { clock, log, tls, migrations } = options
    const targets = parseTargets(options.url)
    const metrics = options.metrics ?? new Metrics()
    this.#measured = measuredIn(metrics)
    this.#options = options
    this.#times = { ...defaultTimes, ...options.lease }
    this.#pools = new Pools({ targets, size: options.poolSize, tls, clock })
    this.#seal = new Seal(log)
    this.#registry = new Registry(this.#pools.control, clock)
    const outcomes = new Outcomes(this.#pools.control, clock)
    this.#transactions = new Transactions(this.#pools.requests, clock, outcomes)
    this.#counters = new Transactions(this.#pools.counters, clock, outcomes)
    this.#public = new Transactions(this.#pools.public, clock, outcomes)
    this.#assumptions = new Assumptions((work, blind) => this.#commit(work, { blind }), clock)
    this.jobs = [this.#tidying(outcomes)]
    const { incarnation } = this
    this.#migrator = new Migrator({
      pool: this.#pools.requests,
      transactions: this.#transactions,
      holder: incarnation,
      log,
      clock,
      ...(migrations ? { migrations } : {}),
    })
    const drop = (): void => {
      for (const cache of this.#caches) cache.clear()
    }
    const { polls, failedPolls } = this.#measured
    const [registry, times] = [this.#registry, this.#times]
    const line = this.#pools.polls
    const sharedLog = options.sharedLog && new SharedLog(options.sharedLog)
    const deps = { line, registry, clock, log, incarnation, times, sharedLog, drop, polls, failedPolls }
    this.#coherence = new Coherence(deps)
    const [coherence, nudge] = [this.#coherence, options.nudge ?? (() => undefined)]
    this.#settlement = new Settlement({ registry, clock, log, times, own: coherence })
    this.#publisher = new Publisher(coherence, sharedLog?.id, nudge)
    const entries = () => [...this.#caches].reduce((sum, { size }) => sum + size, 0)
    metrics.gauge('strongroom.cache.entries', 'Entries of all coherent caches.', entries)
    const help = "Milliseconds by which the database's clock is ahead of this host's."
    const worker = { worker: String(process.pid) }
    metrics.gauge('strongroom.database.clock_skew', help, () => this.clockSkew?.milliseconds ?? 0, worker)
  }

  /** Connects. ApiError 503 when no node can be reached; an Error when one refuses (password, unknown schema). */
  static async open(options: DatabaseOptions): Promise<Database> {
    const database = new Database(options)
    try {
      await persist(options.clock, openMilliseconds, () => database.#pools.requests.use(async () => undefined))
      return database
    } catch (error) {
      await database[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Opens the sealed tables; a second call changes the key that seals new rows. */
  useMac(mac: Mac): void {
    this.#seal.use(mac)
  }

  /** The epoch written into sealed rows from now on. */
  setEpoch(epoch: number): void {
    this.#seal.epoch = epoch
  }

  /** Changes the schema to the version of this program. ApiError 503 when the schema is too new for it. */
  migrate(): Promise<void> {
    return this.#migrator.migrate()
  }

  schemaStatus(): Promise<SchemaStatus> {
    return this.#migrator.status()
  }

  /** ApiError 503 on a schema that this program cannot serve, with what to do. */
  checkSchema(): Promise<void> {
    return this.#migrator.check()
  }

  /** Single statements, each a snapshot of its own that includes everything committed before it. */
  read<T>(work: (q: Reader) => Promise<T>, lane: ReadLane = 'requests'): Promise<T> {
    return this.#timed(this.#measured.get, () => this.#reads(lane).read(work))
  }

  /** Statements that all see one moment. Read only. */
  snapshot<T>(work: (q: Reader) => Promise<T>, lane: ReadLane = 'requests'): Promise<T> {
    return this.#timed(this.#measured.get, () => this.#reads(lane).snapshot(work))
  }

  #reads(lane: ReadLane): Transactions {
    return lane === 'public' ? this.#public : this.#transactions
  }

  /**
   * Runs `work`, which may be run again from the start, and commits it once. Returns when no worker's cache holds a
   * value it touched; nothing fails after the COMMIT. ApiError 503 when nothing was committed: refused before it began,
   * or past the deadline. UnknownOutcome when the outcome could not be determined.
   */
  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    const { result, settled } = await this.#commit(work, options)
    await settled
    return result
  }

  /** As transaction, but returns after the COMMIT. @returns `settled` when no cache holds a replaced value any more */
  async #commit<T>(work: (tx: Transaction) => Promise<T>, options: CommitOptions): Promise<Settling<T>> {
    const lane = options.lane === 'counters' ? this.#counters : this.#transactions
    const write = () => lane.write(work, options.deadlineMilliseconds, options.blind)
    const { result, versions, look, fill, afterwards } = await this.#timed(this.#measured.put, write)
    const touched = versions?.leaves.length !== 0
    const logged = touched && versions ? this.#publisher.publish(versions, look) : undefined
    fill()
    const began = this.#options.clock.monotonic()
    const settling =
      touched && (versions ? this.#settlement.settled(versions, look, logged) : this.#settlement.outlast())
    const settle = async (): Promise<void> => {
      if (afterwards) await this.#follow(afterwards)
      await settling
      if (touched) this.#measured.settle.observe(this.#options.clock.monotonic() - began)
    }
    return { result, settled: settle() }
  }

  /** A change that need not read what a cache holds, and shares its commit with others of the moment. */
  assuming<T>(change: Assuming<T>): Promise<T> {
    return this.#assumptions.run(change)
  }

  /** Errors are only logged: nothing fails after the COMMIT. */
  async #follow(afterwards: readonly (() => Promise<void>)[]): Promise<void> {
    for (const work of afterwards) {
      try {
        await work()
      } catch (error) {
        this.#options.log.error({ err: error }, 'the work after a commit failed')
      }
    }
  }

  /** The only way to a table's rows. */
  table<T extends Table>(table: T): Access<T> {
    const known = this.#tables.get(table)
    if (known) return known as Access<T>
    const access = (table.sealed ? sealedAccess(table, this.#seal) : plainAccess(table)) as Access<T>
    this.#tables.set(table, access)
    return access
  }

  /** Reads without verification, for the rows needed to open the MAC key; verify them with `table` afterwards. */
  unverified<T extends Table>(table: T): Reading<T> {
    const shape = new Shape(table)
    return reading(shape, [], (stored) => shape.decode(stored))
  }

  /** The sealed head of a set. */
  head(set: string): Head {
    return headOf(set, this.#seal)
  }

  /** The sum of the numbers that transactions have added under a name (`tx.tally`). */
  tally(name: string): Promise<number> {
    return this.read((q) => totalOf(Session.of(q), name))
  }

  /** A cache; it stays empty in a process that has not called `start`. */
  cache<V>(options: CacheOptions<V>): CoherentCache<V> {
    const { hits, misses } = this.#measured
    const cache = new StampedCache(options, {
      coherence: this.#coherence,
      transactions: this.#reads(options.lane ?? 'requests'),
      hits,
      misses,
      closed: () => this.#caches.delete(cache as StampedCache<unknown>),
    })
    this.#caches.add(cache as StampedCache<unknown>)
    return cache
  }

  /** A cache's read in a single statement (`CacheOptions.load`). */
  joined<T extends Readonly<Record<string, Table>>, V>(options: JoinedOptions<T, V>): Joined<V> {
    return joinedRows(options, this.#seal)
  }

  /** Begins to cache: registers this worker and polls. ApiError 503 on a schema that this program cannot serve. */
  async start(): Promise<void> {
    await this.checkSchema()
    const { clock, log } = this.#options
    const { marginMilliseconds } = this.#times
    this.#reaper = new Reaper({ registry: this.#registry, clock, log, marginMilliseconds })
    await this.#coherence.start()
  }

  /** How long a transaction waits at most between its COMMIT and its return, where all workers have the same lease. */
  get settlingMilliseconds(): number {
    return this.#times.leaseMilliseconds + this.#times.marginMilliseconds
  }

  /** Polls at once: another node may have committed. */
  poll(): void {
    if (this.#coherence.running) this.#coherence.poll()
  }

  /** False while polls fail or are slower than L: work that needs the database is refused with 503. */
  get healthy(): boolean {
    return !this.#coherence.late
  }

  /** How far the database's clock is ahead of this host's, as of the last poll; undefined before the first. */
  get clockSkew(): Skew | undefined {
    return this.#coherence.clocks.skew
  }

  /**
   * For work whose times must be right, such as the validity of a certificate.
   * @throws ApiError 503 naming the difference, when the clocks of this host and of the database differ by more than
   *   the limit
   */
  requireClock(limitMilliseconds = clockLimitMilliseconds): void {
    this.#coherence.clocks.require(limitMilliseconds)
  }

  /**
   * Deletes the registrations and gives up the leases of processes that have ended, by their `incarnation`. Unsound for
   * a living process.
   */
  async forget(incarnations: readonly string[]): Promise<void> {
    if (incarnations.length === 0) return
    await this.#registry.forget(incarnations)
    await releaseLeases(this.#transactions, incarnations)
  }

  /** The processes that are registered and not condemned. */
  incarnations(): Promise<string[]> {
    return this.#registry.incarnations()
  }

  /** Takes or prolongs the lease of a job; undefined while another process has it. */
  jobLease(name: string, ttlSeconds: number): Promise<JobLease | undefined> {
    return takeLease(this.#transactions, name, ttlSeconds, this.incarnation)
  }

  /** The place a job has reached, stored by `tx.fence`; '' at the beginning. */
  jobPlace(name: string): Promise<string> {
    return placeOf(this.#transactions, name)
  }

  /**
   * Inserts that share their commits; keep what it returns.
   * @param tally the name under which the rows are counted, if they are
   */
  group<T extends Table>(table: T, tally?: string): GroupInsert<T> {
    const access = table.sealed ? sealedAccess(table, this.#seal) : plainAccess(table)
    const insert = (tx: Transaction, rows: readonly New<T>[]): Promise<Row<T>[]> => {
      if (tally !== undefined) tx.tally(tally, rows.length)
      return access.insertMany(tx, rows)
    }
    const batch = new Batch<New<T>, Row<T>>((rows) => this.transaction((tx) => insert(tx, rows)))
    return { insert: (row) => batch.add(row) }
  }

  /**
   * Removes outcomes and acknowledgements that nobody asks for any more. Needs no fence: removing a row twice does no
   * harm.
   */
  #tidying(outcomes: Outcomes): Job {
    const run = async (signal: AbortSignal) => {
      await this.#registry.sweep()
      await outcomes.purge(signal)
    }
    return { name: 'tidy outcomes and acknowledgements', everySeconds: tidyEverySeconds, run }
  }

  /** While polls are slower than L, work is refused before it begins. */
  async #timed<T>(timing: Timing, work: () => Promise<T>): Promise<T> {
    const { clock } = this.#options
    const began = clock.monotonic()
    if (this.#coherence.running) await this.#coherence.refresh()
    const result = await work()
    timing.observe(clock.monotonic() - began)
    return result
  }

  /** Ends polling, deletes the registration and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reaper?.[Symbol.asyncDispose]()
    await this.#coherence.stop().catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'the registration was left behind: writers wait for it once')
    })
    await this.#pools[Symbol.asyncDispose]()
  }
}
