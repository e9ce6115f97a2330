import type { Clock } from '../../../clock.ts'
import { badRequest } from '../../../errors.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import type { Materials } from '../../../keys/materials/materials.ts'
import type { Mount } from '../../../route.ts'
import { markWritten } from '../../../settings/written.ts'
import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { New } from '../../../store/table.ts'
import { type KeyTemplate, newKey } from './newkey.ts'
import { type Inventory, type Ring, withVersion } from './readring.ts'
import { ringCacheId, touchRing } from './ringcaches.ts'
import type { Rings } from './rings.ts'
import { rotationDue } from './rules.ts'
import { type KeyRow, keysTable, settingsTable, versionsTable } from './tables.ts'
import { type ImportedVersion, type ManagedDraft, managedFields } from './versiondraft.ts'
import type { VersionStore } from './versionstore.ts'

const longestName = 512

function checkName(name: string): void {
  if (name.length > longestName) throw badRequest(`a key name has at most ${longestName} characters`)
}

/** Settling an intent and holding a managed key read. */
const needsReading = ({ draft, fields }: Pick<ImportedVersion, 'draft' | 'fields'>): boolean =>
  draft.key.intent !== undefined || Boolean(fields?.managedKey)

/** Whether making such a key takes no longer than a query, and leaves nothing in the token. */
const isQuick = (type: string): boolean => algorithmOf(type).kind !== 'rsa' && algorithmOf(type).kind !== 'ed25519'

/** Creates and removes keys with all their versions. */
export class Keys {
  readonly #database: Database
  readonly #materials: Materials
  readonly #rings: Rings
  readonly #versions: VersionStore
  readonly #clock: Clock

  constructor(options: {
    database: Database
    materials: Materials
    rings: Rings
    versions: VersionStore
    clock: Clock
  }) {
    this.#database = options.database
    this.#materials = options.materials
    this.#rings = options.rings
    this.#versions = options.versions
    this.#clock = options.clock
  }

  /**
   * Makes the key unless one with that name exists, which then stays unchanged.
   * @param prepareManaged makes the first version of a key of type managed_key; not called if the key exists
   * @returns the key that this call made or found
   */
  async create(
    mount: Mount,
    template: KeyTemplate,
    createdBy: string,
    prepareManaged?: () => Promise<ManagedDraft>,
  ): Promise<Inventory> {
    const find = async () => this.#rings.inventory(mount, template.name)
    checkName(template.name)
    // A name never read here is probably new: then only the transaction checks for an existing key.
    const guessed =
      prepareManaged === undefined && isQuick(template.type) && !this.#rings.mayExist(mount, template.name)
    const existing = guessed ? undefined : await find()
    if (existing) return existing
    const managed = await prepareManaged?.()
    const row = newKey(mount, template, this.#clock.wall())
    const preparing = this.#versions.prepare(row, createdBy, managed && { key: async () => managed.draft })
    const draft = await preparing.catch(async (error: unknown) => {
      const found = guessed ? await find() : undefined
      if (found === undefined) throw error
      return found
    })
    if ('ring' in draft) return draft
    const fields = managedFields(managed)
    const insert = async (tx: Transaction): Promise<Inventory> => {
      const key = await this.#insert(tx, row)
      const stored = await this.#versions.insert(tx, key, 1, draft, fields)
      return withVersion({ ring: { key, versions: new Map() }, parts: new Map() }, key, stored)
    }
    return this.#versions.commit([draft], {
      name: ringCacheId(mount.uuid, template.name),
      blind: needsReading({ draft, fields }) ? undefined : insert,
      reading: async (tx) => (await this.#rings.findInventory(tx, mount, template.name)) ?? insert(tx),
    })
  }

  /**
   * Stores an imported or restored key with its versions, all or nothing.
   * @param replace throws unless an existing key with that name may be replaced
   */
  async add(
    row: New<typeof keysTable> & { readonly mount: string },
    versions: readonly ImportedVersion[],
    replace: (key: KeyRow) => void,
  ): Promise<void> {
    const drafts = versions.map(({ draft }) => draft)
    const mount = { uuid: row.mount }
    const { uuid } = mount
    const store = async (tx: Transaction): Promise<void> => {
      const key = await this.#insert(tx, row)
      for (const { version, draft, fields } of versions) await this.#versions.insert(tx, key, version, draft, fields)
    }
    // A name never read here is probably new. Many rows would make others wait who share the commit.
    const guessed = !this.#rings.mayExist(mount, row.name) && versions.length === 1 && !versions.some(needsReading)
    // A lock on a missing key would hold up every other new name.
    const exists = !guessed && (await this.#rings.read(mount, row.name)) !== undefined
    const reading = async (tx: Transaction): Promise<void> => {
      const found = await (exists ? this.#rings.lock(tx, mount, row.name) : this.#rings.find(tx, mount, row.name))
      if (found) {
        replace(found.key)
        await this.remove(tx, found)
      }
      await store(tx)
    }
    const blind = guessed ? store : undefined
    return this.#versions.commit(drafts, { name: ringCacheId(uuid, row.name), blind, reading })
  }

  async #insert(tx: Transaction, row: New<typeof keysTable>): Promise<KeyRow> {
    checkName(row.name)
    const rotateAt = row.rotateAt ?? rotationDue(row, this.#clock.wall())
    const key = await this.#database.table(keysTable).insert(tx, { ...row, rotateAt })
    // The name may have belonged to a deleted key that another worker still has in its cache.
    touchRing(tx, key)
    return key
  }

  /** Removes the key, its versions and their wrapped material: the key's row first, as in every change of a key. */
  async remove(tx: Transaction, { key }: Ring): Promise<void> {
    await this.#database.table(keysTable).remove(tx, key)
    await this.#materials.removeOwned(tx, { key: key.id })
    await this.#database.table(versionsTable).discard(tx, { keyId: key.id })
    await markWritten(this.#database, tx, settingsTable, key.mount)
    touchRing(tx, key)
  }
}
