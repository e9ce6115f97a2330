import type { Clock } from '../../clock.ts'
import { unavailable } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import type { Counter } from '../../metrics.ts'
import { Conflict } from '../faults.ts'
import type { Connection } from '../pool/connection.ts'
import type { Pool } from '../pool/pool.ts'
import { persist } from '../pool/retry.ts'
import { acknowledge } from './acks.ts'
import { Clocks } from './clocks.ts'
import type { Versions } from './increments.ts'
import { Known } from './known.ts'
import type { Registry } from './registry.ts'
import type { SharedLog } from './sharedlog.ts'
import { type Group, readGroups, readLeaves } from './versions.ts'

/** L (the lease), the margin that writers and reapers add to it, and the pause between polls. */
export interface LeaseTimes {
  readonly leaseMilliseconds: number
  readonly marginMilliseconds: number
  readonly pollMilliseconds: number
}

interface CoherenceOptions {
  /** One connection, used by polls alone. */
  readonly line: Pool
  readonly registry: Registry
  readonly clock: Clock
  readonly log: Logger
  readonly incarnation: string
  readonly times: LeaseTimes
  /** The commits of other workers of the node. */
  readonly sharedLog?: SharedLog | undefined
  /** Drops every cache entry. */
  readonly drop: () => void
  readonly polls: Counter
  readonly failedPolls: Counter
}

const settled = Promise.resolve()

/** Callers wait this long when polls begin to fail; after that they are refused at once. */
const patienceMilliseconds = 3000

/**
 * A worker's side of the protocol (docs/coherence.md): it registers before anything is cached, polls, acknowledges,
 * and once condemned it drops everything and registers again.
 */
export class Coherence {
  readonly clocks = new Clocks()
  readonly #options: CoherenceOptions
  readonly #known: Known
  /** The groups as of the last poll. */
  readonly #groups = new Map<number, Group>()
  /** The v of each group up to which its leaves are learned. */
  readonly #learned = new Map<number, number>()
  /** The v of each group up to which no acknowledging row is missing. */
  readonly #acknowledged = new Map<number, number>()
  #registration: string | undefined
  /** Counts the times when records of the shared log were missed. */
  #missed = 0
  /** Whether a write to the shared log has failed: then this worker only reads it, and acknowledges for itself alone. */
  #detached = false
  /** Whether the log was read since the last microtask. */
  #upToDate = false
  readonly #expire = (): void => {
    this.#upToDate = false
  }
  /** Whether its registration names the log. */
  #attached = false
  /** Counts the polls after which caches may be used. */
  #confirmed = 0
  #longestLease = 0
  #polling: Promise<void> | undefined
  #running = false
  #loop: Promise<void> | undefined
  /** When polls became slower than L or began to fail. */
  #lateSince: number | undefined
  /** Whether the next poll follows at once. */
  #again = false
  #wake: (() => void) | undefined

  constructor(options: CoherenceOptions) {
    this.#options = options
    this.#known = new Known(options.clock, options.times.leaseMilliseconds)
  }

  /**
   * The versions to compare a cache entry with, at this very moment. The log is read once for all that runs before the
   * next await or callback: a request that must see a later commit has not been received by then.
   */
  get known(): Known {
    if (!this.#upToDate) {
      this.#catchUp()
      this.#upToDate = true
      void settled.then(this.#expire)
    }
    return this.#known
  }

  /** Whether caches may hold anything. */
  get running(): boolean {
    return this.#running
  }

  /** The registration that this process serves under. */
  get registration(): string | undefined {
    return this.#registration
  }

  /** The longest lease of any worker of the cluster, as of the last poll. L should be the same for all. */
  get longestLeaseMilliseconds(): number {
    return Math.max(this.#longestLease, this.#options.times.leaseMilliseconds)
  }

  /** Whether polls are slower than L, or fail. */
  get late(): boolean {
    return this.#lateSince !== undefined
  }

  /** Registers, and polls from now on. */
  async start(): Promise<void> {
    await this.#register()
    this.#running = true
    this.#loop = this.#run()
    await this.refresh()
  }

  /**
   * Learns a commit of this worker, and writes it to the log. Renews no lease.
   * @returns whether all who share the log can read it there
   */
  publish(versions: Versions): boolean {
    this.#catchUp()
    const logged = this.#append(versions)
    this.#note(versions)
    return logged
  }

  /** @returns whether all who share the log can read it there */
  #append(versions: Versions, polled: readonly Group[] = []): boolean {
    const { sharedLog, log } = this.#options
    if (sharedLog === undefined || this.#detached) return false
    try {
      sharedLog.append(versions, polled)
      return true
    } catch (err) {
      log.warn({ err }, 'the shared log cannot be written: this worker and the others of its node wait for polls')
      this.#detached = true
      this.poll()
      return false
    }
  }

  #note({ leaves, groups }: Versions): void {
    this.#known.learn(leaves)
    for (const noted of [this.#learned, this.#acknowledged])
      for (const [group, v] of groups) if (noted.get(group) === v - 1) noted.set(group, v)
  }

  /** Learns what the workers of its node have committed, and read. One that comes too late has to poll. */
  #catchUp(): void {
    const news = this.#options.sharedLog?.news()
    if (news === undefined) return
    if (news.lost) {
      this.#missed++
      this.#known.doubt()
      this.#learned.clear()
      this.poll()
    }
    // They presume that all was read that the log had before: of groups that it knows wholly, from a poll of its own.
    const polled = news.polled.filter(({ group }) => this.#learned.has(group))
    this.#known.learnBases(polled)
    this.#raise(polled)
    this.#note(news)
  }

  #raise(groups: readonly Group[]): void {
    for (const { group, v } of groups) this.#learned.set(group, Math.max(v, this.#learned.get(group) ?? 0))
  }

  /** Polls at once, or once more after the poll under way. */
  poll(): void {
    this.#again = true
    this.#wake?.()
  }

  /** Polls until the known versions can be relied on. ApiError 503 while the database is slower than L. */
  async refresh(): Promise<void> {
    if (this.#known.fresh()) return
    if (!this.#running) throw unavailable('the database is being closed')
    const { clock } = this.#options
    const late = this.#lateSince === undefined ? 0 : clock.monotonic() - this.#lateSince
    if (late >= patienceMilliseconds) throw unavailable('the database answers too slowly')
    await persist(clock, patienceMilliseconds - late, async () => {
      if (!this.#known.fresh()) await this.#poll()
      if (!this.#known.fresh()) throw new Conflict()
    })
  }

  async #run(): Promise<void> {
    let unconfirmed = 0
    while (this.#running) {
      this.#again = false
      const before = this.#confirmed
      let failure: unknown
      await this.#poll().catch((error: unknown) => {
        failure = error
      })
      unconfirmed = this.#confirmed > before ? 0 : unconfirmed + 1
      // A single poll that does not count, because records were missed or it had to register, is followed at once.
      if (failure !== undefined || unconfirmed !== 1) this.#report(failure)
      await this.#pause()
    }
  }

  /** Logs once when polls begin to fail or to be too slow, and once when they succeed again. */
  #report(error: unknown): void {
    const late = !this.#known.fresh() && (error !== undefined || this.#registration !== undefined)
    if (late === (this.#lateSince !== undefined)) return
    const { clock, log } = this.#options
    this.#lateSince = late ? clock.monotonic() : undefined
    if (late) log.warn({ err: error }, 'the versions cannot be read in time: caches stop serving')
    else log.info('the versions are read in time again: caches serve')
  }

  async #pause(): Promise<void> {
    if (this.#again || !this.#running) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#options.times.pollMilliseconds)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = undefined
  }

  #poll(): Promise<void> {
    this.#polling ??= this.#counted().finally(() => {
      this.#polling = undefined
    })
    return this.#polling
  }

  async #counted(): Promise<void> {
    this.#options.polls.value++
    try {
      const registered = await this.#options.line.use((connection) => this.#pollOnce(connection))
      // Nobody would delete a registration made after the process has stopped.
      if (!registered && this.#running) await this.#register()
    } catch (error) {
      this.#options.failedPolls.value++
      throw error
    }
  }

  /** Reads the groups, then their leaves, both from one node. False when this worker has to register anew. */
  async #pollOnce(connection: Connection): Promise<boolean> {
    const registration = this.#registration
    if (registration === undefined) return false
    const began = this.#known.now()
    const missed = this.#missed
    const { registered, leaseMilliseconds, time, groups } = await readGroups(connection, registration)
    this.clocks.compare(began, this.#known.now(), time)
    // Versions go backwards in a database that was restored or has lost a node's last commits.
    const backwards = groups.some(({ group, v }) => v < (this.#groups.get(group)?.v ?? 0))
    if (!registered || backwards) return false
    this.#longestLease = leaseMilliseconds
    this.#catchUp()
    const changed = groups.filter(({ group, v }) => v !== this.#groups.get(group)?.v)
    // The leaves of a group are known already if the log had all of its changes, or the news of another's poll.
    const unlearned = changed.filter(({ group, v }) => v > (this.#learned.get(group) ?? -1))
    const leaves = unlearned.map(({ group }) => group)
    const news = leaves.length > 0 ? await readLeaves(connection, leaves) : []
    this.#catchUp()
    // Records were missed after this poll began: only the next one shows what they said.
    if (missed !== this.#missed) return true
    // Before it acknowledges what it has read, all who share its log can read it there.
    if (unlearned.length > 0) this.#append({ leaves: this.#known.unlearned(news), groups: [] }, unlearned)
    if (this.#attached && this.#detached) return false
    this.#known.learn(news)
    this.#known.learnBases(unlearned)
    this.#raise(unlearned)
    for (const one of changed) this.#groups.set(one.group, one)
    this.#known.confirm(began)
    this.#confirmed++
    await this.#acknowledge(connection, registration)
    return true
  }

  /** Writes acknowledgements as rows, for writers that do not share the log. */
  async #acknowledge(connection: Connection, registration: string): Promise<void> {
    const news = [...this.#groups.values()]
      .filter(({ group, v }) => v > (this.#acknowledged.get(group) ?? -1))
      .map(({ group, v }) => [group, v] as const)
    if (news.length === 0) return
    await acknowledge(connection, registration, news)
    for (const [group, v] of news) this.#acknowledged.set(group, v)
  }

  /** Drops the caches first: nothing cached under an older registration is used again. */
  async #register(): Promise<void> {
    const { registry, incarnation, times, sharedLog } = this.#options
    const old = this.#forget()
    this.#attached = sharedLog !== undefined && !this.#detached
    const log = this.#attached ? sharedLog?.id : undefined
    this.#registration = await registry.register(incarnation, times.leaseMilliseconds, log)
    this.#again = true
    if (old !== undefined) await registry.remove([old])
  }

  #forget(): string | undefined {
    const old = this.#registration
    this.#registration = undefined
    this.#known.forget()
    this.#options.drop()
    this.#groups.clear()
    this.#learned.clear()
    this.#acknowledged.clear()
    return old
  }

  /** Stops polling, drops the caches and deletes the registration, so that no writer waits for this worker. */
  async stop(): Promise<void> {
    if (!this.#running) return
    this.#running = false
    this.#wake?.()
    await this.#loop
    await this.#polling?.catch(() => undefined)
    const old = this.#forget()
    if (old !== undefined) await this.#options.registry.remove([old])
  }
}
