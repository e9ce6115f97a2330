import { LRUCache } from 'lru-cache'
import { unavailable } from '../../errors.ts'
import type { Counter } from '../../metrics.ts'
import type { MaybePromise } from '../../route.ts'
import type { ReadLane } from '../pool/pools.ts'
import { Session } from '../pool/session.ts'
import type { Transactions } from '../pool/transactions.ts'
import type { Reader } from '../reader.ts'
import type { Coherence } from './coherence.ts'
import type { Joined, Stamped } from './joined.ts'
import { leafOf } from './leaves.ts'
import { stampOf } from './versions.ts'

/** From one consistent snapshot, or by a statement that is one. */
export type Load<V> = ((q: Reader, id: string) => Promise<V | undefined>) | { readonly joined: Joined<V> }

export interface CacheOptions<V> {
  /** With the key it names the leaf: what writers `touch`. */
  readonly table: string
  /** Entries at most; the least recently used one goes. */
  readonly limit: number
  /** Where what is not cached is read; `requests` unless strangers may ask for it. */
  readonly lane?: ReadLane
  /** Reads one thing. Absence (undefined) is never cached. */
  readonly load: Load<V>
  /** Called for every value that was cached and is no longer. */
  onEvict?(value: V): void
}

/** A cache that never gives what an acknowledged write has replaced (docs/coherence.md). */
export interface CoherentCache<V> extends Disposable {
  /** The value if it may be used at this very moment; the caller uses it before its next await. */
  peek(id: string): V | undefined
  /** As peek, else read anew. ApiError 503 when the database cannot be asked. */
  get(id: string): MaybePromise<V | undefined>
  clear(): void
  /** Empties it for good: from now on every `get` reads anew. */
  [Symbol.dispose](): void
  /** Empties it; from now on it holds at most so many entries. */
  resize(limit: number): void
  readonly size: number
}

/** A value with v of its leaf as it was in the snapshot that gave the value. */
interface Entry<V> {
  readonly value: V
  readonly leaf: number
  readonly stamp: number
}

/** Fills are repeated while writes to the same leaf overtake them. */
const fillAttempts = 20

/** What a cache needs of its database. */
interface CacheDeps {
  readonly coherence: Coherence
  readonly transactions: Transactions
  readonly hits: Counter
  readonly misses: Counter
  /** The cache holds nothing any more, and needs not be dropped. */
  closed(): void
}

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
    if (!known.covers(entry.leaf, entry.stamp)) {
      this.#entries.delete(id)
      return undefined
    }
    if (!known.fresh()) return undefined
    this.#deps.hits.value++
    return entry.value
  }

  get(id: string): MaybePromise<V | undefined> {
    return this.peek(id) ?? this.#find(id)
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
      // What another caller's read did not find may have been created, and answered for, after that read.
      if (entry === undefined && (joined === undefined || attempt > 0)) return undefined
      if (entry !== undefined && this.#usable(entry)) return entry.value
    }
    throw unavailable('this is being changed too often to be read')
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
    const entry = value === undefined ? undefined : { value, leaf, stamp }
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
