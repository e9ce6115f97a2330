import { LRUCache } from 'lru-cache'
import { after } from '../../after.ts'
import { unavailable } from '../../errors.ts'
import type { Counter } from '../../metrics.ts'
import type { MaybePromise } from '../../route.ts'
import type { ReadLane } from '../pool/pools.ts'
import { Session, WriteSession } from '../pool/session.ts'
import type { Transactions } from '../pool/transactions.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { Coherence } from './coherence.ts'
import type { Joined, Stamped } from './joined.ts'
import { leafOf } from './leaves.ts'
import { stampOf } from './versions.ts'

/** Reads the value from one consistent snapshot, or by one statement, which is a snapshot by itself. */
export type Load<V> = ((q: Reader, id: string) => Promise<V | undefined>) | { readonly joined: Joined<V> }

export interface CacheOptions<V> {
  /** Together with the key it names the leaf; writers `touch` it. */
  readonly table: string
  /** The most entries the cache may hold; the least recently used one is evicted. */
  readonly limit: number
  /** The lane for reads on a miss; `requests` unless callers without credentials can cause them. */
  readonly lane?: ReadLane
  /** Reads one value. Absence (undefined) is never cached. */
  readonly load: Load<V>
  /** Called for every value that leaves the cache. */
  onEvict?(value: V): void
}

/** A cache that never returns a value replaced by an acknowledged write (docs/coherence.md). */
export interface CoherentCache<V> extends Disposable {
  /** The value if it may be used at this very moment; the caller uses it before its next await. */
  peek(id: string): V | undefined
  /** As peek, else read from the database. ApiError 503 when the database cannot be asked. */
  get(id: string): MaybePromise<V | undefined>
  /** As get. @returns whether the value is there, for `assume`; false at once where nothing is cached */
  warm(id: string): MaybePromise<boolean>
  /**
   * In a transaction that has locked the row behind this value: the value as the transaction sees it, or undefined when
   * it must be read. No promise when the value is not cached.
   */
  current(tx: Transaction, id: string): MaybePromise<V | undefined>
  /**
   * The value, if it may be used at this very moment, for a transaction that touches it without reading anything: it
   * fails with Outdated if anything else touched the value since it was cached.
   */
  assume(tx: Transaction, id: string): V | undefined
  /**
   * Caches the value that the transaction leaves behind, once it has committed. The transaction must touch the value
   * and have called `current` under the lock, or `assume`.
   */
  put(tx: Transaction, id: string, value: V): void
  /** For a value under an id that no value has had before; call it before the transaction that creates it. */
  creating(id: string): Creating<V>
  clear(): void
  /** Empties the cache for good: from now on every `get` reads the database. */
  [Symbol.dispose](): void
  /** Drops all entries; from now on the cache holds at most this many. */
  resize(limit: number): void
  readonly size: number
}

/** A value that a transaction creates. */
export interface Creating<V> {
  /** Caches the value once it is committed. */
  done(value: V): void
}

/** A value, and v of its leaf in the same snapshot. */
interface Entry<V> {
  readonly value: V
  readonly leaf: number
  readonly stamp: number
  /** `known.changes` when the entry was last found to be covered. */
  coveredAt: number
}

const never = -1

/** Fills are repeated while writes to the same leaf overtake them. */
const fillAttempts = 20

/** The parts of the database that a cache needs. */
interface CacheDeps {
  readonly coherence: Coherence
  readonly transactions: Transactions
  readonly hits: Counter
  readonly misses: Counter
  /** The cache is empty for good and need not be cleared any more. */
  closed(): void
}

/**
 * The cache of docs/coherence.md: each entry bears the version that its leaf had when it was read. It is used only
 * while no newer version is known, and while the worker has heard from the database within its lease.
 */
export class StampedCache<V> implements CoherentCache<V> {
  readonly #options: CacheOptions<V>
  readonly #deps: CacheDeps
  #entries: LRUCache<string, Entry<V>>
  readonly #fills = new Map<string, Promise<Entry<V> | undefined>>()
  #generation = 0
  #open = true

  constructor(options: CacheOptions<V>, deps: CacheDeps) {
    this.#options = options
    this.#deps = deps
    this.#entries = this.#room(options.limit)
  }

  #room(max: number): LRUCache<string, Entry<V>> {
    const { onEvict } = this.#options
    return new LRUCache({ max, ...(onEvict ? { dispose: ({ value }) => onEvict(value) } : {}) })
  }

  get size(): number {
    return this.#entries.size
  }

  peek(id: string): V | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    const { known } = this.#deps.coherence
    if (entry.coveredAt !== known.changes) {
      if (!known.covers(entry.leaf, entry.stamp)) {
        this.#entries.delete(id)
        return undefined
      }
      entry.coveredAt = known.changes
    }
    if (!known.fresh()) return undefined
    this.#deps.hits.value++
    return entry.value
  }

  get(id: string): MaybePromise<V | undefined> {
    return this.peek(id) ?? this.#find(id)
  }

  warm(id: string): MaybePromise<boolean> {
    if (!this.#open || !this.#deps.coherence.running) return false
    return after(this.get(id), (value) => value !== undefined)
  }

  current(tx: Transaction, id: string): MaybePromise<V | undefined> {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    return stampOf(Session.of(tx), entry.leaf).then((stamp) => (stamp === entry.stamp ? entry.value : undefined))
  }

  assume(tx: Transaction, id: string): V | undefined {
    const value = this.peek(id)
    const entry = this.#entries.get(id)
    if (value === undefined || entry === undefined) return undefined
    const { leaf, stamp } = entry
    WriteSession.of(tx).assumeStamp(leaf, stamp, this.#deps.coherence.known.base(leaf))
    return value
  }

  put(tx: Transaction, id: string, value: V): void {
    const leaf = leafOf(this.#options.table, id)
    const keep = this.#keeper(id, leaf)
    WriteSession.of(tx).onVersions((versions) => {
      const stamp = versions.get(leaf)
      if (stamp !== undefined) keep(value, stamp)
    })
  }

  creating(id: string): Creating<V> {
    const leaf = leafOf(this.#options.table, id)
    const keep = this.#keeper(id, leaf)
    // Whoever changes the value raises its leaf above every version from before it was there.
    const stamp = this.#deps.coherence.known.version(leaf)
    const done = (value: V): void => {
      if (stamp !== Number.POSITIVE_INFINITY) keep(value, stamp)
    }
    return { done }
  }

  /** @returns makes an entry, unless entries have been dropped since */
  #keeper(id: string, leaf: number): (value: V, stamp: number) => void {
    const generation = this.#generation
    return (value, stamp) => {
      const dropped = generation !== this.#generation || !this.#open || !this.#deps.coherence.running
      if (!dropped) this.#entries.set(id, { value, leaf, stamp, coveredAt: never })
    }
  }

  clear(): void {
    this.#generation++
    this.#entries.clear()
  }

  resize(limit: number): void {
    this.clear()
    this.#entries = this.#room(limit)
  }

  [Symbol.dispose](): void {
    this.#open = false
    this.clear()
    this.#deps.closed()
  }

  async #find(id: string): Promise<V | undefined> {
    this.#deps.misses.value++
    if (!this.#deps.coherence.running) return (await this.#ask(leafOf(this.#options.table, id), id)).value
    for (let attempt = 0; attempt < fillAttempts; attempt++) {
      await this.#deps.coherence.refresh()
      const held = this.peek(id)
      if (held !== undefined) return held
      const joined = this.#fills.get(id)
      const entry = await (joined ?? this.#fill(id))
      // Another caller's read found nothing, but the value may have been created and acknowledged since.
      if (entry === undefined && (joined === undefined || attempt > 0)) return undefined
      if (entry !== undefined && this.#usable(entry)) return entry.value
    }
    throw unavailable('this changes too often to be read: try again')
  }

  #usable({ leaf, stamp }: Entry<V>): boolean {
    const { known } = this.#deps.coherence
    return known.covers(leaf, stamp) && known.fresh()
  }

  #fill(id: string): Promise<Entry<V> | undefined> {
    const fill = this.#read(id).finally(() => this.#fills.delete(id))
    this.#fills.set(id, fill)
    return fill
  }

  /** The value and v of its leaf from one snapshot, put into the cache unless a writer has overtaken it. */
  async #read(id: string): Promise<Entry<V> | undefined> {
    const leaf = leafOf(this.#options.table, id)
    const generation = this.#generation
    const { stamp, value } = await this.#ask(leaf, id)
    const entry = value === undefined ? undefined : { value, leaf, stamp, coveredAt: never }
    if (generation !== this.#generation) return this.#read(id)
    if (entry === undefined) this.#entries.delete(id)
    else if (this.#open) this.#entries.set(id, entry)
    return entry
  }

  #ask(leaf: number, id: string): Promise<Stamped<V>> {
    const { load } = this.#options
    const { transactions } = this.#deps
    if (typeof load !== 'function') return load.joined(transactions, leaf, id)
    return transactions.snapshot(async (q) => {
      const [stamp, value] = await Promise.all([stampOf(Session.of(q), leaf), load(q, id)])
      return { stamp, value }
    })
  }
}
