import { after } from '../../../after.ts'
import type { Materials } from '../../../keys/materials/materials.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { Reading } from '../../../store/sealed/access.ts'
import { type Inventory, inventoryOf, lockRing, type Ring, readRing } from './readring.ts'
import { RingCaches, ringCacheId, ringCacheTable } from './ringcaches.ts'
import type { Settings } from './settings.ts'
import { keyNames } from './tables.ts'

const inventoriesHeld = 100

/** The key rings of every transit mount, read through coherent caches. */
export class Rings {
  readonly #database: Database
  readonly #materials: Materials
  readonly #names: Reading<typeof keyNames>
  readonly #caches: RingCaches
  readonly #inventories: CoherentCache<Inventory>

  /** @param limit rings cached at most, over all mounts */
  constructor(options: { database: Database; materials: Materials; settings: Settings; limit: number }) {
    const { database, materials, settings, limit } = options
    this.#database = database
    this.#materials = materials
    this.#names = database.unverified(keyNames)
    const byName = <T>(read: (q: Reader, mount: string, name: string) => T) => {
      return (q: Reader, id: string): T => {
        const [mount = '', name = ''] = id.split('/')
        return read(q, mount, name)
      }
    }
    const load = byName((q, mount, name) => readRing(database, q, mount, name))
    this.#caches = new RingCaches({ database, settings, shared: { table: ringCacheTable, limit, load } })
    this.#inventories = database.cache({
      table: ringCacheTable,
      limit: inventoriesHeld,
      load: byName(async (q, mount, name) => {
        const ring = await readRing(database, q, mount, name)
        return ring && inventoryOf(materials, q, ring)
      }),
    })
  }

  /** The current ring, never older than the last acknowledged write; synchronous when it is cached. */
  get(mount: Pick<Mount, 'uuid'>, name: string): MaybePromise<Ring | undefined> {
    return after(this.#caches.of(mount), (cache) => cache.get(ringCacheId(mount.uuid, name)))
  }

  /** The ring as the database has it now. */
  read(mount: Pick<Mount, 'uuid'>, name: string): Promise<Ring | undefined> {
    return this.#database.snapshot(async (q) => {
      const ring = await this.find(q, mount, name)
      return ring && { ...ring, current: true }
    })
  }

  /** The ring and its key parts as the database has them now. */
  readInventory(mount: Pick<Mount, 'uuid'>, name: string): Promise<Inventory | undefined> {
    return this.#database.snapshot(async (q) => {
      const ring = await this.find(q, mount, name)
      return ring && this.inventoryOf(q, ring)
    })
  }

  /** The ring as a transaction sees it. */
  find(q: Reader, mount: Pick<Mount, 'uuid'>, name: string): Promise<Ring | undefined> {
    return readRing(this.#database, q, mount.uuid, name)
  }

  /** The ring in a transaction that changes it: its first read, and others wait. */
  lock(tx: Transaction, mount: Pick<Mount, 'uuid'>, name: string): Promise<Ring | undefined> {
    return lockRing(this.#database, tx, mount.uuid, name)
  }

  /** The ring with its key parts, both from the same consistent reader. */
  inventoryOf(q: Reader, ring: Ring): Promise<Inventory> {
    return inventoryOf(this.#materials, q, ring)
  }

  /** The current ring and all its key parts by id, as of one moment. */
  inventory(mount: Mount, name: string): MaybePromise<Inventory | undefined> {
    return this.#inventories.get(ringCacheId(mount.uuid, name))
  }

  /** At most `limit` names beyond `after`, in their order. */
  async names(mount: Mount, after: string, limit: number): Promise<string[]> {
    const rows = await this.#database.read((q) =>
      this.#names.list(q, { mount: mount.uuid }, { by: 'name', after, limit }),
    )
    return rows.map((row) => row.name)
  }

  /** Whether the mount holds no key. */
  async empty(mount: Mount): Promise<boolean> {
    return (await this.names(mount, '', 1)).length === 0
  }

  /** Empties this worker's caches of the mount and lets it read the mount's cache size anew. */
  reload(mount: Mount): void {
    this.#caches.reload(mount)
    this.#inventories.clear()
  }
}
