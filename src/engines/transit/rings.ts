import type { Clock } from '../../clock.ts'
import { badRequest } from '../../errors.ts'
import { algorithmOf } from '../../keys/algorithms.ts'
import type { Exporting } from '../../keys/exporting.ts'
import type { Draft, Materials } from '../../keys/materials.ts'
import type { MaterialRow, Part } from '../../keys/tables.ts'
import type { MaybePromise, Mount } from '../../route.ts'
import type { CoherentCache } from '../../store/cache.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import { type Creation, hmacSecretBytes, newKey } from './newkey.ts'
import { allPages, type Ring, readRing } from './readring.ts'
import { rotated, type Version } from './ring.ts'
import { type KeyRow, keysTable, versionsTable } from './tables.ts'

const keysPerRemoval = 50
const cacheTable = keysTable.name
const cacheId = (mount: string, name: string): string => `${mount}/${name}`

/**
 * The key rings of every transit mount: read through a coherent cache, changed in one transaction each. Token work comes
 * before the transaction, and what it made leaves nothing behind when the transaction does not use it.
 */
export class Rings {
  readonly #database: Database
  readonly #materials: Materials
  readonly #exporting: Exporting
  readonly #clock: Clock
  readonly #cache: CoherentCache<Ring>

  constructor(options: {
    database: Database
    materials: Materials
    exporting: Exporting
    clock: Clock
    limit: number
  }) {
    this.#database = options.database
    this.#materials = options.materials
    this.#exporting = options.exporting
    this.#clock = options.clock
    this.#cache = options.database.cache({
      table: cacheTable,
      limit: options.limit,
      load: (q, id) => {
        const [mount = '', name = ''] = id.split('/')
        return readRing(this.#database, q, mount, name)
      },
    })
  }

  /** The ring as no acknowledged write has replaced it; synchronous when it is cached. */
  get(mount: Mount, name: string): MaybePromise<Ring | undefined> {
    return this.#cache.get(cacheId(mount.uuid, name))
  }

  /** The ring as the database has it now. */
  read(mount: Mount, name: string): Promise<Ring | undefined> {
    return this.#database.snapshot((q) => readRing(this.#database, q, mount.uuid, name))
  }

  /** The ring and all its key parts by id, as they were at one moment. */
  inventory(mount: Mount, name: string): Promise<{ ring: Ring; parts: ReadonlyMap<string, MaterialRow> } | undefined> {
    return this.#database.snapshot(async (q) => {
      const ring = await readRing(this.#database, q, mount.uuid, name)
      if (ring === undefined) return undefined
      const partsOf = (part: Part) =>
        allPages((after, limit) => this.#materials.list(q, { key: ring.key.id, part }, { after, limit }))
      const parts = [...(await partsOf('key')), ...(await partsOf('hmac'))]
      return { ring, parts: new Map(parts.map((row) => [row.id, row])) }
    })
  }

  /** At most `limit` names beyond `after`, in their order. */
  async names(mount: Mount, after: string, limit: number): Promise<string[]> {
    const rows = await this.#database.read((q) =>
      this.#database.table(keysTable).list(q, { mount: mount.uuid }, { by: 'name', after, limit }),
    )
    return rows.map((row) => row.name)
  }

  /** Makes the key unless one of that name exists, which then stays as it is. */
  async create(mount: Mount, wanted: Creation, createdBy: string): Promise<Ring> {
    const existing = await this.get(mount, wanted.name)
    if (existing) return existing
    const row = newKey(mount, wanted, this.#clock.wall())
    const drafts = await this.#prepare(row, createdBy)
    return this.#database.transaction(async (tx) => {
      const found = await readRing(this.#database, tx, mount.uuid, wanted.name)
      if (found) return found
      const key = await this.#database.table(keysTable).insert(tx, row)
      return { key, versions: new Map([[1, await this.#addVersion(tx, key, 1, drafts)]]) }
    })
  }

  /** Adds a version and makes it the latest. @throws ApiError 400 when there is no such key, or it must not rotate */
  async rotate(mount: Mount, name: string, createdBy: string): Promise<void> {
    for (let done = false; !done; ) {
      const before = await this.get(mount, name)
      if (before === undefined) throw badRequest('key not found')
      // Looked at before the token works for nothing.
      rotated(name, before.key)
      const drafts = await this.#prepare(before.key, createdBy)
      done = await this.change(mount, name, 'key not found', async (tx, ring) => {
        // Another key by now, or one that may leave: the drafts were made for what it was.
        if (ring.key.id !== before.key.id || ring.key.exportable !== before.key.exportable) return false
        const { key } = await this.update(tx, ring, rotated(name, ring.key))
        await this.#addVersion(tx, key, key.latestVersion, drafts)
        return true
      })
    }
  }

  /**
   * Reads the ring inside a transaction and lets `work` write. What `update` and `remove` replace is in no worker's cache any
   * more when it resolves.
   * @throws ApiError 400 `missing` when there is no such key
   */
  change<T>(
    mount: Mount,
    name: string,
    missing: string,
    work: (tx: Transaction, ring: Ring) => Promise<T>,
  ): Promise<T> {
    return this.#database.transaction(async (tx) => {
      const ring = await readRing(this.#database, tx, mount.uuid, name)
      if (ring === undefined) throw badRequest(missing)
      return work(tx, ring)
    })
  }

  /**
   * Changes attributes as `decide` says of the row as it is. What makes a key exportable is done in the token beforehand.
   * @throws ApiError 400 `missing` when there is no such key, and what `decide` throws
   */
  async configure(
    mount: Mount,
    name: string,
    missing: string,
    decide: (key: KeyRow) => Partial<KeyRow>,
  ): Promise<void> {
    for (let done = false; !done; ) {
      const before = await this.get(mount, name)
      const opened = before && decide(before.key).exportable ? await this.inventory(mount, name) : undefined
      const releases = await this.#exporting.prepare([...(opened?.parts.values() ?? [])])
      done = await this.change(mount, name, missing, async (tx, ring) => {
        const changes = decide(ring.key)
        const { id, latestVersion } = ring.key
        // Another key by now, or one with a version more: that one would stay where it may not leave.
        const same = opened?.ring.key.id === id && opened.ring.key.latestVersion === latestVersion
        if (changes.exportable && !same) return false
        if (changes.exportable) await this.#exporting.apply(tx, releases)
        await this.update(tx, ring, changes)
        return true
      })
    }
  }

  /** Writes changed attributes; the versions stay. */
  async update(tx: Transaction, ring: Ring, changes: Partial<KeyRow>): Promise<Ring> {
    if (Object.keys(changes).length === 0) return ring
    tx.touch(cacheTable, cacheId(ring.key.mount, ring.key.name))
    return { ...ring, key: await this.#database.table(keysTable).update(tx, ring.key, changes) }
  }

  /** Removes the key, its versions and their wrapped material. */
  async remove(tx: Transaction, { key }: Ring): Promise<void> {
    await this.#materials.removeOwned(tx, { key: key.id })
    await this.#database.table(versionsTable).removeWhere(tx, { keyId: key.id })
    await this.#database.table(keysTable).remove(tx, key)
    tx.touch(cacheTable, cacheId(key.mount, key.name))
  }

  /** Removes every key of a mount that is gone, some in each transaction: each of them ends with a wait for all workers. */
  async removeAll(mount: Mount): Promise<void> {
    const some = () => this.names(mount, '', keysPerRemoval)
    for (let names = await some(); names.length > 0; names = await some()) {
      await this.#database.transaction(async (tx) => {
        for (const name of names) {
          const ring = await readRing(this.#database, tx, mount.uuid, name)
          if (ring) await this.remove(tx, ring)
        }
      })
    }
  }

  /** Empties this worker's cache, of every mount. */
  forget(): void {
    this.#cache.clear()
  }

  /** Whether the mount holds no key. */
  async empty(mount: Mount): Promise<boolean> {
    return (await this.names(mount, '', 1)).length === 0
  }

  /** Makes the parts of a version: the key and, unless it is one itself, its HMAC secret. */
  async #prepare(of: Pick<KeyRow, 'type' | 'exportable' | 'keySize'>, createdBy: string): Promise<Drafts> {
    const { exportable, keySize } = of
    const algorithm = algorithmOf(of.type)
    const part = { exportable, createdBy }
    const sizeBytes = keySize === 0 ? undefined : keySize
    const key = await this.#materials.prepare({ ...part, algorithm: algorithm.name, part: 'key', sizeBytes })
    if (algorithm.kind === 'hmac') return { key, hmac: undefined }
    const secret = { ...part, algorithm: 'hmac', part: 'hmac', sizeBytes: hmacSecretBytes } as const
    return { key, hmac: await this.#materials.prepare(secret) }
  }

  async #addVersion(tx: Transaction, key: KeyRow, version: number, drafts: Drafts): Promise<Version> {
    const owner = { mount: key.mount, key: key.id, version }
    const material = await this.#materials.insert(tx, drafts.key, owner)
    const hmac = drafts.hmac ? await this.#materials.insert(tx, drafts.hmac, owner) : null
    return this.#database.table(versionsTable).insert(tx, {
      mount: key.mount,
      keyId: key.id,
      version,
      material: material.id,
      hmacMaterial: hmac?.id ?? null,
      convergentVersion: 0,
      createdAt: this.#clock.wall(),
    })
  }
}

interface Drafts {
  readonly key: Draft
  readonly hmac: Draft | undefined
}
