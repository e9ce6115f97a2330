import { randomUUID } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Timing } from '../metrics/timing.ts'
import { Metrics } from '../metrics.ts'
import { type CacheOptions, type CoherentCache, StampedCache } from './coherence/cache.ts'
import { Coherence, type LeaseTimes } from './coherence/coherence.ts'
import { Registry } from './coherence/registry.ts'
import { settle } from './coherence/settle.ts'
import { Undertaker } from './coherence/undertaker.ts'
import { Batch, type GroupInsert } from './group.ts'
import { type JobLease, takeLease } from './lease.ts'
import { type Measured, measuredIn } from './measured.ts'
import { Migrator, type SchemaStatus } from './migrations/migrate.ts'
import type { Migration } from './migrations/migration.ts'
import type { Tls } from './pool/connection.ts'
import { Outcomes } from './pool/outcomes.ts'
import { Pool } from './pool/pool.ts'
import { persist } from './pool/retry.ts'
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

export interface DatabaseOptions {
  /** `mysql://user:password@host:port/name`, `?socketPath=`; several, separated by commas, are nodes of one cluster. */
  readonly url: string
  /** Connections at most; two more are kept for polling. */
  readonly poolSize: number
  readonly tls?: Tls
  readonly log: Logger
  readonly clock: Clock
  readonly metrics?: Metrics
  /** Called after a commit that touched something: the other workers of this node should poll now. */
  readonly nudge?: () => void
  readonly lease?: LeaseTimes
  /** The schema this program knows; its own unless a test says otherwise. */
  readonly migrations?: readonly Migration[]
}

const connectMilliseconds = 3000
const statementMilliseconds = 8000
/** A poll that takes longer is worth nothing: another connection, perhaps another node, is tried. */
const pollMilliseconds = 2000
const openMilliseconds = 10_000
const defaultTimes: LeaseTimes = { leaseMilliseconds: 1000, marginMilliseconds: 250, pollMilliseconds: 100 }

/**
 * Everything that is stored. Reads are causal, transactions are repeated until they hold, sealed rows are verified, and
 * what a transaction touched is in no worker's cache any more when it is answered.
 */
export class Database {
  /** Names this process among the registrations, for `forget`. */
  readonly incarnation = randomUUID()
  readonly #pool: Pool
  /** Polls and waits never queue behind requests. */
  readonly #control: Pool
  readonly #seal: Seal
  readonly #registry: Registry
  readonly #outcomes: Outcomes
  readonly #transactions: Transactions
  readonly #migrator: Migrator
  readonly #coherence: Coherence
  readonly #caches: StampedCache<unknown>[] = []
  readonly #measured: Measured
  readonly #options: DatabaseOptions
  readonly #times: LeaseTimes
  #undertaker: Undertaker | undefined

  private constructor(options: DatabaseOptions) {
    const { clock, log, tls, migrations } = options
    const targets = parseTargets(options.url)
    const metrics = options.metrics ?? new Metrics()
    this.#measured = measuredIn(metrics)
    this.#options = options
    this.#times = options.lease ?? defaultTimes
    const pool = (limit: number, statementMilliseconds: number): Pool =>
      new Pool({ targets, limit, tls, timeouts: { connectMilliseconds, statementMilliseconds }, clock })
    this.#pool = pool(options.poolSize, statementMilliseconds)
    this.#control = pool(2, pollMilliseconds)
    this.#seal = new Seal(log)
    this.#registry = new Registry(this.#control, clock)
    this.#outcomes = new Outcomes(this.#pool, clock)
    this.#transactions = new Transactions(this.#pool, clock, this.#outcomes)
    const { incarnation } = this
    this.#migrator = new Migrator({
      pool: this.#pool,
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
    this.#coherence = new Coherence({ registry, clock, log, incarnation, times, drop, polls, failedPolls })
    const entries = () => this.#caches.reduce((sum, { size }) => sum + size, 0)
    metrics.gauge('strongroom.cache.entries', 'Entries of all coherent caches.', entries)
  }

  /** Connects. ApiError 503 when no node can be reached; an Error when one refuses (password, unknown schema). */
  static async open(options: DatabaseOptions): Promise<Database> {
    const database = new Database(options)
    try {
      await persist(options.clock, openMilliseconds, () => database.#pool.use(async () => undefined))
      return database
    } catch (error) {
      await database[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Opens the sealed tables; a second call rotates the key that new rows are sealed with. */
  useMac(mac: Mac): void {
    this.#seal.use(mac)
  }

  /** The epoch written into sealed rows from now on. */
  setEpoch(epoch: number): void {
    this.#seal.epoch = epoch
  }

  /** Brings the schema to what this program knows. ApiError 503 when it is too new to be read. */
  migrate(): Promise<void> {
    return this.#migrator.migrate()
  }

  schemaStatus(): Promise<SchemaStatus> {
    return this.#migrator.status()
  }

  /** Single statements, each of its own moment, each after everything that was committed before it. */
  read<T>(work: (q: Reader) => Promise<T>): Promise<T> {
    return this.#timed(this.#measured.get, this.#transactions.read(work))
  }

  /** Statements that all see one moment. Read only. */
  snapshot<T>(work: (q: Reader) => Promise<T>): Promise<T> {
    return this.#timed(this.#measured.get, this.#transactions.snapshot(work))
  }

  /**
   * Runs `work`, which may be run again from the start, and commits it once. Returns when what it touched is in no
   * worker's cache. ApiError 503 when it was not committed by the deadline; UnknownOutcome when that could not be
   * found out.
   */
  async transaction<T>(
    work: (tx: Transaction) => Promise<T>,
    options: { deadlineMilliseconds?: number } = {},
  ): Promise<T> {
    const written = this.#transactions.write(work, options.deadlineMilliseconds)
    const { result, buckets } = await this.#timed(this.#measured.put, written)
    if (buckets.length === 0) return result
    this.#coherence.nudged()
    this.#options.nudge?.()
    await this.#timed(this.#measured.settle, settle(this.#registry, this.#options.clock, this.#times, buckets))
    return result
  }

  /** The only way to a table's rows; keep what it returns. */
  table<T extends Table>(table: T): Access<T> {
    return (table.sealed ? sealedAccess(table, this.#seal) : plainAccess(table)) as Access<T>
  }

  /**
   * Reads without verification, for the rows that must be read to open the MAC key; verify them by `table` afterwards.
   */
  unverified<T extends Table>(table: T): Reading<T> {
    const shape = new Shape(table)
    return reading(shape, [], (stored) => shape.decode(stored))
  }

  /** The sealed head of a set. */
  head(set: string): Head {
    return headOf(set, this.#seal)
  }

  /** A cache; it holds something only in a process that was started. */
  cache<V>(options: CacheOptions<V>): CoherentCache<V> {
    const { hits, misses } = this.#measured
    const cache = new StampedCache(options, {
      coherence: this.#coherence,
      transactions: this.#transactions,
      hits,
      misses,
    })
    this.#caches.push(cache as StampedCache<unknown>)
    return cache
  }

  /** Begins to cache: registers this worker and polls. ApiError 503 on a schema that this program cannot serve. */
  async start(): Promise<void> {
    await this.#migrator.check()
    const { clock, log } = this.#options
    const graceMilliseconds = this.#times.leaseMilliseconds + this.#times.marginMilliseconds
    const [registry, outcomes] = [this.#registry, this.#outcomes]
    this.#undertaker = new Undertaker({ registry, outcomes, clock, log, graceMilliseconds })
    await this.#coherence.start()
  }

  /** Another worker of this node has committed: poll now. */
  nudged(): void {
    if (this.#coherence.running) this.#coherence.nudged()
  }

  /**
   * Deletes the registrations of processes that have ended, by their `incarnation`; of a living one it would be
   * unsound.
   */
  forget(incarnations: readonly string[]): Promise<void> {
    return this.#registry.forget(incarnations)
  }

  /** The processes that are registered and not condemned. */
  incarnations(): Promise<string[]> {
    return this.#registry.incarnations()
  }

  /** Takes or prolongs the lease of a job; undefined while another process has it. */
  jobLease(name: string, ttlSeconds: number): Promise<JobLease | undefined> {
    return takeLease(this.#transactions, name, ttlSeconds, this.incarnation)
  }

  /** Inserts that share their commits; keep what it returns. */
  group<T extends Table>(table: T): GroupInsert<T> {
    const access = table.sealed ? sealedAccess(table, this.#seal) : plainAccess(table)
    return new Batch<New<T>, Row<T>>((rows) => this.transaction((tx) => access.insertMany(tx, rows)))
  }

  async #timed<T>(timing: Timing, work: Promise<T>): Promise<T> {
    const { clock } = this.#options
    const began = clock.monotonic()
    const result = await work
    timing.observe(clock.monotonic() - began)
    return result
  }

  /** Ends polling, deletes the registration and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#undertaker?.[Symbol.asyncDispose]()
    await this.#coherence.stop().catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'the registration was left behind: writers wait for it once')
    })
    await this.#pool[Symbol.asyncDispose]()
    await this.#control[Symbol.asyncDispose]()
  }
}
