import { after } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import { badRequest } from '../../../errors.ts'
import type { Extracting } from '../../../keys/materials/extracting.ts'
import type { Draft, Materials } from '../../../keys/materials/materials.ts'
import type { MakeExportable } from '../../../keys/transfer/makeexportable.ts'
import type { Kdf } from '../../../keys/use/derivation.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { Reading } from '../../../store/sealed/access.ts'
import type { New } from '../../../store/table.ts'
import {
  type Arrival,
  type Drafts,
  factsOf,
  type MakePart,
  type ManagedDraft,
  type Origin,
  type VersionFacts,
} from './drafts.ts'
import { managedType } from './managedtype.ts'
import { type Creation, convergenceOfNew, hmacSecretBytes, mayLeave, newKey } from './newkey.ts'
import { type Inventory, type Ring, readInventory, readRing } from './readring.ts'
import { rotated, rotationDue, trimmed } from './ring.ts'
import { RingCaches } from './ringcaches.ts'
import type { Settings } from './settings.ts'
import { type KeyRow, keyNames, keysTable, type VersionRow, versionsTable } from './tables.ts'

const keysPerRemoval = 50
const inventoriesHeld = 100
const longestName = 512
const cacheTable = keysTable.name
const cacheId = (mount: string, name: string): string => `${mount}/${name}`

/**
 * The key rings of every transit mount: read through a coherent cache, changed in one transaction each. Token work comes
 * before the transaction, and what it made leaves nothing behind when the transaction does not use it.
 */
export class Rings {
  readonly #database: Database
  readonly #materials: Materials
  readonly #makeExportable: MakeExportable
  readonly #extracting: Extracting
  readonly #clock: Clock
  readonly #names: Reading<typeof keyNames>
  readonly #caches: RingCaches
  readonly #inventories: CoherentCache<Inventory>

  constructor(options: {
    database: Database
    materials: Materials
    makeExportable: MakeExportable
    extracting: Extracting
    settings: Settings
    clock: Clock
    limit: number
  }) {
    this.#database = options.database
    this.#materials = options.materials
    this.#makeExportable = options.makeExportable
    this.#extracting = options.extracting
    this.#clock = options.clock
    this.#names = options.database.unverified(keyNames)
    const { database, settings, limit } = options
    const named = <T>(read: (q: Reader, mount: string, name: string) => T) => {
      return (q: Reader, id: string): T => {
        const [mount = '', name = ''] = id.split('/')
        return read(q, mount, name)
      }
    }
    const load = named((q, mount, name) => readRing(database, q, mount, name))
    this.#caches = new RingCaches({ database, settings, shared: { table: cacheTable, limit, load } })
    this.#inventories = database.cache({
      table: cacheTable,
      limit: inventoriesHeld,
      load: named((q, mount, name) => readInventory(database, this.#materials, q, mount, name)),
    })
  }

  /** The ring as no acknowledged write has replaced it; synchronous when it is cached. */
  get(mount: Mount, name: string): MaybePromise<Ring | undefined> {
    return after(this.#caches.of(mount), (cache) => cache.get(cacheId(mount.uuid, name)))
  }

  /** The ring as the database has it now. */
  read(mount: Pick<Mount, 'uuid'>, name: string): Promise<Ring | undefined> {
    return this.#database.snapshot(async (q) => {
      const ring = await readRing(this.#database, q, mount.uuid, name)
      return ring && { ...ring, current: true }
    })
  }

  /** The ring and all its key parts by id, as they were at one moment that no acknowledged write has overtaken. */
  inventory(mount: Mount, name: string): MaybePromise<Inventory | undefined> {
    return this.#inventories.get(cacheId(mount.uuid, name))
  }

  /** At most `limit` names beyond `after`, in their order. */
  async names(mount: Mount, after: string, limit: number): Promise<string[]> {
    const rows = await this.#database.read((q) =>
      this.#names.list(q, { mount: mount.uuid }, { by: 'name', after, limit }),
    )
    return rows.map((row) => row.name)
  }

  /**
   * Makes the key unless one of that name exists, which then stays as it is.
   * @param managed what its first version is, for keys of type managed_key
   */
  async create(mount: Mount, wanted: Creation, createdBy: string, managed?: ManagedDraft): Promise<Ring> {
    const existing = await this.get(mount, wanted.name)
    if (existing) return existing
    const row = newKey(mount, wanted, this.#clock.wall())
    const drafts = await this.prepare(row, createdBy, managed && { key: async () => managed.draft })
    return this.#storing([drafts], async (tx) => {
      const found = await readRing(this.#database, tx, mount.uuid, wanted.name)
      if (found) return found
      const key = await this.#insert(tx, row)
      return { key, versions: new Map([[1, await this.addVersion(tx, key, 1, drafts, factsOf(managed))]]) }
    })
  }

  /**
   * Stores a key that comes from elsewhere with its versions, all or nothing.
   * @param replace throws unless the key of that name may be replaced
   */
  add(
    row: New<typeof keysTable> & { readonly mount: string },
    versions: readonly Arrival[],
    replace: (key: KeyRow) => void,
  ): Promise<void> {
    const drafts = versions.map((version) => version.drafts)
    return this.#storing(drafts, async (tx) => {
      const found = await readRing(this.#database, tx, row.mount, row.name)
      if (found) {
        replace(found.key)
        await this.remove(tx, found)
      }
      const key = await this.#insert(tx, row)
      for (const { version, drafts, facts } of versions) await this.addVersion(tx, key, version, drafts, facts)
    })
  }

  /** What was made for a transaction and is not stored by it is taken back. */
  async #storing<T>(drafts: readonly Drafts[], work: (tx: Transaction) => Promise<T>): Promise<T> {
    try {
      return await this.#database.transaction(work)
    } finally {
      for (const one of drafts) await this.abandon(one)
    }
  }

  #insert(tx: Transaction, row: New<typeof keysTable>): Promise<KeyRow> {
    if (row.name.length > longestName) throw badRequest(`a key name has at most ${longestName} characters`)
    const rotateAt = row.rotateAt ?? rotationDue(row, this.#clock.wall())
    return this.#database.table(keysTable).insert(tx, { ...row, rotateAt })
  }

  /**
   * Adds a version and makes it the latest.
   * @param allowed asked of the key as it is, in the transaction; false leaves it so
   * @param managed what the new version is, for keys of type managed_key and for them alone
   * @throws ApiError 400 when there is no such key, or it must not rotate
   */
  async rotate(
    mount: Pick<Mount, 'uuid'>,
    name: string,
    createdBy: string,
    allowed: (tx: Transaction, key: KeyRow) => MaybePromise<boolean> = () => true,
    managed?: ManagedDraft,
  ): Promise<void> {
    for (let done = false; !done; ) {
      const before = await this.read(mount, name)
      if (before === undefined) throw badRequest('key not found')
      // Looked at before the token works for nothing.
      rotated(name, before.key)
      if ((before.key.type === managedType) !== (managed !== undefined))
        throw badRequest('the key is of another type by now')
      const drafts = await this.prepare(before.key, createdBy, managed && { key: async () => managed.draft })
      done = await this.#storing([drafts], async (tx) => {
        const ring = await readRing(this.#database, tx, mount.uuid, name)
        if (ring === undefined) throw badRequest('key not found')
        // Another key by now, or one that may leave: the drafts were made for what it was.
        if (ring.key.id !== before.key.id || mayLeave(ring.key) !== mayLeave(before.key)) return false
        if (!(await allowed(tx, ring.key))) return true
        const { key } = await this.update(tx, ring, rotated(name, ring.key))
        await this.addVersion(tx, key, key.latestVersion, drafts, factsOf(managed))
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
    mount: Pick<Mount, 'uuid'>,
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
   * Soft-deletes the key or restores it. @returns whether that changed anything
   * @throws ApiError 400 when there is no such key
   */
  setSoftDeleted(mount: Mount, name: string, softDeleted: boolean): Promise<boolean> {
    return this.change(mount, name, `no existing key named ${name} could be found`, async (tx, ring) => {
      if (ring.key.softDeleted === softDeleted) return false
      await this.update(tx, ring, { softDeleted })
      return true
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
      const opened = before && releases(decide(before.key)) ? await this.inventory(mount, name) : undefined
      const released = await this.#makeExportable.prepare([...(opened?.parts.values() ?? [])])
      done = await this.change(mount, name, missing, async (tx, ring) => {
        const changes = decide(ring.key)
        const { id, latestVersion } = ring.key
        // Another key by now, or one with a version more: that one would stay where it may not leave.
        const same = opened?.ring.key.id === id && opened.ring.key.latestVersion === latestVersion
        if (releases(changes) && !same) return false
        if (releases(changes)) await this.#makeExportable.apply(tx, released)
        await this.update(tx, ring, changes)
        return true
      })
    }
  }

  /** Writes changed attributes, and with them when the key is to rotate by itself; the versions stay. */
  async update(tx: Transaction, ring: Ring, changes: Partial<KeyRow>): Promise<Ring> {
    if (Object.keys(changes).length === 0) return ring
    this.touch(tx, ring.key)
    const key = { ...ring.key, ...changes }
    const latestAt = ring.versions.get(key.latestVersion)?.createdAt ?? this.#clock.wall()
    const rotateAt = rotationDue(key, latestAt)
    return { ...ring, key: await this.#database.table(keysTable).update(tx, ring.key, { ...changes, rotateAt }) }
  }

  /** Says that what a read of the key shows is replaced by this transaction. */
  touch(tx: Transaction, { mount, name }: Pick<KeyRow, 'mount' | 'name'>): void {
    tx.touch(cacheTable, cacheId(mount, name))
  }

  /**
   * Removes the versions below `version` and their wrapped material, for ever.
   * @throws ApiError 400 when there is no such key, or a minimum version is lower
   */
  async trim(mount: Mount, name: string, version: number): Promise<void> {
    await this.change(mount, name, 'invalid key name', async (tx, ring) => {
      const gone = [...ring.versions.keys()].filter((one) => one < version)
      await this.update(tx, ring, trimmed(ring.key, version))
      const { id: keyId } = ring.key
      await this.#materials.removeOwned(tx, { key: keyId, below: version })
      for (const one of gone) await this.#database.table(versionsTable).removeWhere(tx, { keyId, version: one })
    })
  }

  /** Removes the key, its versions and their wrapped material. */
  async remove(tx: Transaction, { key }: Ring): Promise<void> {
    await this.#materials.removeOwned(tx, { key: key.id })
    await this.#database.table(versionsTable).removeWhere(tx, { keyId: key.id })
    await this.#database.table(keysTable).remove(tx, key)
    this.touch(tx, key)
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

  /** This worker looks at the mount's cache size anew, and has nothing cached. */
  reload(mount: Mount): void {
    this.#caches.reload(mount)
    this.#inventories.clear()
  }

  /** Whether the mount holds no key. */
  async empty(mount: Mount): Promise<boolean> {
    return (await this.names(mount, '', 1)).length === 0
  }

  /**
   * Makes the parts of a version: the key and, unless it is one itself, its HMAC secret.
   * @param bring brings parts from elsewhere; those it leaves out are made
   */
  async prepare(of: Origin, createdBy: string, bring: Partial<Record<'key' | 'hmac', MakePart>> = {}): Promise<Drafts> {
    const make: MakePart = (wanted) => this.#materials.prepare(wanted)
    const { keySize, derived } = of
    const part = { exportable: mayLeave(of), createdBy }
    const sizeBytes = keySize === 0 ? undefined : keySize
    const key = await (bring.key ?? make)({ ...part, algorithm: of.type, part: 'key', sizeBytes, derived })
    const prk = derived ? await this.#extracting.prepare(key, of.kdf as Kdf) : undefined
    if (key.fields.algorithm === hmacType) return { key, prk, hmac: undefined }
    const secret = { ...part, algorithm: hmacType, part: 'hmac', sizeBytes: hmacSecretBytes } as const
    return { key, prk, hmac: await (bring.hmac ?? make)(secret) }
  }

  /** Takes back what was made for a version and nothing has stored; what was stored stays. Never rejects. */
  abandon({ key }: Pick<Drafts, 'key'>): Promise<void> {
    return this.#materials.abandon(key)
  }

  /** Puts a whole key in the place of a version's public half. */
  async complete(tx: Transaction, ring: Ring, version: number, draft: Draft): Promise<void> {
    const { id: key, mount } = ring.key
    await this.#materials.removeOwned(tx, { key, version, part: 'key' })
    const { id: material } = await this.#materials.insert(tx, draft, { mount, key, version })
    await this.changeVersion(tx, ring, version, { material })
  }

  /** @throws Error when the ring has no such version */
  async changeVersion(tx: Transaction, { key }: Ring, version: number, changes: VersionChanges): Promise<void> {
    const versions = this.#database.table(versionsTable)
    const row = await versions.find(tx, { keyId: key.id, version })
    if (row === undefined) throw new Error(`key ${key.id} has no version ${version}`)
    await versions.update(tx, row, changes)
    this.touch(tx, key)
  }

  /** Stores a version in the transaction that makes it the key's. @param facts what it brings from elsewhere */
  async addVersion(
    tx: Transaction,
    key: KeyRow,
    version: number,
    drafts: Drafts,
    facts: VersionFacts = {},
  ): Promise<VersionRow> {
    const owner = { mount: key.mount, key: key.id, version }
    const material = await this.#materials.insert(tx, drafts.key, owner)
    const hmac = drafts.hmac ? await this.#materials.insert(tx, drafts.hmac, owner) : null
    const prk = drafts.prk ? await this.#materials.insert(tx, drafts.prk, owner) : null
    return this.#database.table(versionsTable).insert(tx, {
      mount: key.mount,
      keyId: key.id,
      version,
      material: material.id,
      hmacMaterial: hmac?.id ?? null,
      prkMaterial: prk?.id ?? null,
      convergentVersion: convergenceOfNew(key),
      createdAt: this.#clock.wall(),
      ...facts,
    })
  }
}

/** Whether a change needs what the key is made of under the KEK of what may leave. */
const releases = (changes: Partial<KeyRow>): boolean =>
  changes.exportable === true || changes.allowPlaintextBackup === true

const hmacType = 'hmac'

type VersionChanges = Partial<Pick<VersionRow, 'material' | 'certificateChain'>>
