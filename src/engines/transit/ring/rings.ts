import { LRUCache } from 'lru-cache'
import { after } from '../../../after.ts'
import type { Uuids } from '../../../engine.ts'
import { badRequest } from '../../../errors.ts'
import type { Materials } from '../../../keys/materials/materials.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { Assuming } from '../../../store/assuming.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import { Outdated } from '../../../store/faults.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { Reading } from '../../../store/sealed/access.ts'
import { type Inventory, type Ring, readInventory, readRing } from './readring.ts'
import { RingCaches, ringCacheId, ringCacheTable } from './ringcaches.ts'
import type { Settings } from './settings.ts'
import { type KeyRow, keyNames, keysTable } from './tables.ts'

const inventoriesHeld = 100
/** For keys that rotate often. */
const rowsRecalled = 100

type MountId = Pick<Mount, 'uuid'>

/** The key rings of every transit mount, read through coherent caches. */
export class Rings {
  readonly #database: Database
  readonly #materials: Materials
  readonly #names: Reading<typeof keyNames>
  readonly #caches: RingCaches
  readonly #inventories: CoherentCache<Inventory>
  /** Ids of keys as last read: a key's versions and parts are then queried together with its row. */
  readonly #ids: LRUCache<string, string>
  /** Rows of keys as this worker's changes last found them. */
  readonly #rows = new LRUCache<string, KeyRow>({ max: rowsRecalled })

  /** @param limit the most rings cached, over all mounts */
  constructor(options: { database: Database; materials: Materials; settings: Settings; limit: number }) {
    const { database, materials, settings, limit } = options
    this.#database = database
    this.#materials = materials
    this.#names = database.unverified(keyNames)
    this.#ids = new LRUCache({ max: limit })
    const byName = <T>(read: (q: Reader, mount: MountId, name: string) => T) => {
      return (q: Reader, id: string): T => {
        const [uuid = '', name = ''] = id.split('/')
        return read(q, { uuid }, name)
      }
    }
    const load = byName((q, mount, name) => this.find(q, mount, name))
    this.#caches = new RingCaches({ database, settings, shared: { table: ringCacheTable, limit, load } })
    this.#inventories = database.cache({
      table: ringCacheTable,
      limit: inventoriesHeld,
      load: byName((q, mount, name) => this.findInventory(q, mount, name)),
    })
  }

  /** The current ring, never older than the last acknowledged write; synchronous when it is cached. */
  get(mount: MountId, name: string): MaybePromise<Ring | undefined> {
    return after(this.#caches.of(mount), (cache) => cache.get(ringCacheId(mount.uuid, name)))
  }

  /** The ring as it is in the database now. */
  read(mount: MountId, name: string): Promise<Ring | undefined> {
    return this.#database.snapshot(async (q) => {
      const ring = await this.find(q, mount, name)
      return ring && { ...ring, current: true }
    })
  }

  /** The key's row alone, as it is in the database now. */
  readKey(mount: MountId, name: string): Promise<KeyRow | undefined> {
    return this.#database.read((q) => this.#findKey(q, mount, name))
  }

  /** The ring and its key parts as they are in the database now. */
  readInventory(mount: MountId, name: string): Promise<Inventory | undefined> {
    return this.#database.snapshot((q) => this.findInventory(q, mount, name))
  }

  /** The ring as a reader sees it. */
  find(q: Reader, mount: MountId, name: string): Promise<Ring | undefined> {
    return readRing(this.#database, q, this.#findKey(q, mount, name), this.#expected(mount, name))
  }

  /** The ring with its key parts. @param q consistent */
  findInventory(q: Reader, mount: MountId, name: string): Promise<Inventory | undefined> {
    const key = this.#findKey(q, mount, name)
    return readInventory(this.#database, this.#materials, q, key, this.#expected(mount, name))
  }

  /**
   * The ring in a transaction that changes it, as its first read. No other transaction changes the key before this one
   * ends: every change of a key locks its row first, so that no two wait for each other.
   */
  lock(tx: Transaction, mount: MountId, name: string): Promise<Ring | undefined> {
    return readRing(this.#database, tx, this.lockRow(tx, mount, name), this.#expected(mount, name))
  }

  /** As lock, with the key parts; those may have been rewrapped since they were read. */
  async lockInventory(tx: Transaction, mount: MountId, name: string): Promise<Inventory | undefined> {
    const locking = this.lockRow(tx, mount, name)
    const read = (expected: string | undefined) => readInventory(this.#database, this.#materials, tx, locking, expected)
    const current = this.#inventories.current(tx, ringCacheId(mount.uuid, name))
    if (current === undefined) return read(this.#expected(mount, name))
    const [key, held] = await Promise.all([locking, current])
    const { id, rev } = held?.ring.key ?? {}
    if (!(held && key && key.id === id && key.rev === rev)) return read(key?.id)
    return { ...held, ring: { ...held.ring, key } }
  }

  /** The cached inventory, if it may be used at this very moment. */
  peekInventory(mount: MountId, name: string): Inventory | undefined {
    return this.#inventories.peek(ringCacheId(mount.uuid, name))
  }

  /**
   * The cached inventory for a transaction that touches the key and reads nothing.
   * @throws Outdated when there is none; the transaction fails with it when this is not the current one
   */
  assumeInventory(tx: Transaction, mount: MountId, name: string): Inventory {
    const inventory = this.#inventories.assume(tx, ringCacheId(mount.uuid, name))
    if (inventory === undefined) throw new Outdated()
    this.#database.table(keysTable).assume(tx, inventory.ring.key)
    return inventory
  }

  /**
   * A change of a key, by the cached inventory if there is one.
   * @param missing the refusal when the key does not exist
   */
  changing<T>(
    mount: MountId,
    name: string,
    missing: string,
    change: (tx: Transaction, inventory: Inventory) => Promise<T>,
  ): Assuming<T> {
    const cached = this.peekInventory(mount, name) !== undefined
    return {
      name: ringCacheId(mount.uuid, name),
      blind: cached ? async (tx) => change(tx, this.assumeInventory(tx, mount, name)) : undefined,
      reading: async (tx) => {
        const inventory = await this.lockInventory(tx, mount, name)
        if (inventory === undefined) throw badRequest(missing)
        return change(tx, inventory)
      },
    }
  }

  /** Caches the inventory that a transaction leaves behind; the transaction must touch the key. */
  keep(tx: Transaction, inventory: Inventory): Inventory {
    const { mount, name } = inventory.ring.key
    this.#inventories.put(tx, ringCacheId(mount, name), inventory)
    return inventory
  }

  async #findKey(q: Reader, { uuid: mount }: MountId, name: string): Promise<KeyRow | undefined> {
    return this.#remembered(await this.#database.table(keysTable).find(q, { mount, name }))
  }

  /** The key's row alone, locked as by `lock`. */
  async lockRow(tx: Transaction, { uuid: mount }: MountId, name: string): Promise<KeyRow | undefined> {
    const key = this.#remembered(await this.#database.table(keysTable).lock(tx, { mount, name }))
    if (key) this.#rows.set(ringCacheId(mount, name), key)
    return key
  }

  /** Whether a key with that name was read here. It may be gone by now; a key never read here may exist too. */
  mayExist(mount: MountId, name: string): boolean {
    return this.#expected(mount, name) !== undefined
  }

  /** The key's row as this worker's last change found it, for a transaction to compare with the current row. */
  recall(mount: MountId, name: string): KeyRow | undefined {
    return this.#rows.get(ringCacheId(mount.uuid, name))
  }

  #expected(mount: MountId, name: string): string | undefined {
    return this.#ids.get(ringCacheId(mount.uuid, name))
  }

  #remembered(key: KeyRow | undefined): KeyRow | undefined {
    if (key) this.#ids.set(ringCacheId(key.mount, key.name), key.id)
    return key
  }

  /** The current ring and all its key parts by id, as of one moment. */
  inventory(mount: MountId, name: string): MaybePromise<Inventory | undefined> {
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

  /** Frees the caches of mounts that are not among these. */
  retain(uuids: Uuids): void {
    this.#caches.retain(uuids)
  }

  /** Empties this worker's caches of the mount and makes it read the mount's cache size again. */
  reload(mount: Mount): void {
    this.#caches.reload(mount)
    this.#inventories.clear()
  }
}
