import { after } from '../../../after.ts'
import type { Uuids } from '../../../engine.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { CacheOptions, CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { Ring } from './readring.ts'
import type { Settings } from './settings.ts'
import { type KeyRow, keysTable } from './tables.ts'

/** The table and id that invalidate cached rings and inventories. */
export const ringCacheTable = keysTable.name
export const ringCacheId = (mount: string, name: string): string => `${mount}/${name}`

/** Invalidates the cached values of a key, in every worker, when the transaction commits. */
export const touchRing = (tx: Transaction, { mount, name }: Pick<KeyRow, 'mount' | 'name'>): void =>
  tx.touch(ringCacheTable, ringCacheId(mount, name))

/**
 * The caches of rings: one shared by the mounts, and a separate one for each mount whose cache-config gives a size.
 * This worker reads the size at the first use, and again after a reload.
 */
export class RingCaches {
  readonly #options: { database: Database; settings: Settings; shared: CacheOptions<Ring> }
  readonly #shared: CoherentCache<Ring>
  readonly #own = new Map<string, CoherentCache<Ring>>()
  /** The cache of each mount. */
  readonly #chosen = new Map<string, CoherentCache<Ring>>()

  /** @param shared options of the shared cache; its limit bounds every other cache too */
  constructor(options: { database: Database; settings: Settings; shared: CacheOptions<Ring> }) {
    this.#options = options
    this.#shared = options.database.cache(options.shared)
  }

  of(mount: Pick<Mount, 'uuid'>): MaybePromise<CoherentCache<Ring>> {
    return this.#chosen.get(mount.uuid) ?? this.#choose(mount)
  }

  /** Empties the cache; the next use reads its size again. */
  reload(mount: Mount): void {
    this.#chosen.get(mount.uuid)?.clear()
    this.#chosen.delete(mount.uuid)
  }

  /**
   * Frees the caches of mounts that are not among these: even one that a late request made again for a removed mount.
   */
  retain(uuids: Uuids): void {
    for (const uuid of this.#chosen.keys()) if (!uuids.has(uuid)) this.#chosen.delete(uuid)
    for (const [uuid, cache] of this.#own) {
      if (uuids.has(uuid)) continue
      cache[Symbol.dispose]()
      this.#own.delete(uuid)
    }
  }

  #choose(mount: Pick<Mount, 'uuid'>): MaybePromise<CoherentCache<Ring>> {
    return after(this.#options.settings.of(mount), ({ cacheSize }) => {
      const cache = cacheSize === 0 ? this.#shared : this.#sized(mount, cacheSize)
      this.#chosen.set(mount.uuid, cache)
      return cache
    })
  }

  #sized(mount: Pick<Mount, 'uuid'>, size: number): CoherentCache<Ring> {
    const { database, shared } = this.#options
    const limit = Math.min(size, shared.limit)
    const cache = this.#own.get(mount.uuid) ?? database.cache({ ...shared, limit })
    cache.resize(limit)
    this.#own.set(mount.uuid, cache)
    return cache
  }
}
