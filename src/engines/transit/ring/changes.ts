import type { Clock } from '../../../clock.ts'
import { badRequest } from '../../../errors.ts'
import type { Materials } from '../../../keys/materials/materials.ts'
import type { MakeExportable } from '../../../keys/transfer/makeexportable.ts'
import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import { type Inventory, inventoryOf, type Ring } from './readring.ts'
import { touchRing } from './ringcaches.ts'
import type { Rings } from './rings.ts'
import { rotationDue, trimmed } from './rules.ts'
import { type KeyRow, keysTable, versionsTable } from './tables.ts'

/** Changes to existing keys, one transaction each. They return the key as they left it, regardless of later changes. */
export class KeyChanges {
  readonly #database: Database
  readonly #materials: Materials
  readonly #makeExportable: MakeExportable
  readonly #rings: Rings
  readonly #clock: Clock

  constructor(options: {
    database: Database
    materials: Materials
    makeExportable: MakeExportable
    rings: Rings
    clock: Clock
  }) {
    this.#database = options.database
    this.#materials = options.materials
    this.#makeExportable = options.makeExportable
    this.#rings = options.rings
    this.#clock = options.clock
  }

  /** @throws ApiError 400 `missing` when the key does not exist */
  change<T>(
    mount: Pick<Mount, 'uuid'>,
    name: string,
    missing: string,
    work: (tx: Transaction, ring: Ring) => Promise<T>,
  ): Promise<T> {
    return this.#database.transaction(async (tx) => {
      const ring = await this.#rings.lock(tx, mount, name)
      if (ring === undefined) throw badRequest(missing)
      return work(tx, ring)
    })
  }

  /** As change, with the key's parts. */
  #changeInventory<T>(
    mount: Mount,
    name: string,
    missing: string,
    work: (tx: Transaction, inventory: Inventory) => Promise<T>,
  ): Promise<T> {
    return this.#database.assuming(this.#rings.changing(mount, name, missing, work))
  }

  /**
   * Writes changed attributes and the resulting time of the next automatic rotation; the versions stay. Without changes
   * it only makes the transaction wait: an earlier one of the same may not be known to every worker yet.
   */
  async update(tx: Transaction, ring: Ring, changes: Partial<KeyRow>): Promise<Ring> {
    touchRing(tx, ring.key)
    if (Object.keys(changes).length === 0) return ring
    const key = { ...ring.key, ...changes }
    const latestAt = ring.versions.get(key.latestVersion)?.createdAt ?? this.#clock.wall()
    const rotateAt = rotationDue(key, latestAt)
    return { ...ring, key: await this.#database.table(keysTable).update(tx, ring.key, { ...changes, rotateAt }) }
  }

  /**
   * Changes attributes as `decide` says for the current row. A key that becomes exportable is rewrapped first.
   * @returns the key as this change left it
   * @throws ApiError 400 `missing` when the key does not exist, and any error of `decide`
   */
  async configure(
    mount: Mount,
    name: string,
    missing: string,
    decide: (key: KeyRow) => Partial<KeyRow>,
  ): Promise<Inventory> {
    const guess = this.#rings.peekInventory(mount, name)
    // Refused before it shares a transaction with others.
    for (let leaves = guess !== undefined && startsToLeave(decide(guess.ring.key)); ; leaves = true) {
      // Bypasses the cache: a rotation of KEKs rewraps the parts and touches no cached key.
      const leaving = leaves ? await this.#rings.readInventory(mount, name) : undefined
      const rewrapped = await this.#makeExportable.prepare([...(leaving?.parts.values() ?? [])])
      const change = this.#rings.changing(mount, name, missing, async (tx, { ring, parts }) => {
        const changes = decide(ring.key)
        if (startsToLeave(changes)) {
          const { id, latestVersion } = ring.key
          // Either not rewrapped yet, or replaced, rotated or completed meanwhile: then a new part was not rewrapped.
          if (leaving?.ring.key.id !== id || leaving.ring.key.latestVersion !== latestVersion) return undefined
          if ([...parts.keys()].some((part) => !leaving.parts.has(part))) return undefined
          await this.#makeExportable.apply(tx, rewrapped)
        }
        const changed = await this.update(tx, ring, changes)
        const left = leaving ? await this.#materials.listAll(tx, ring.key.id) : parts.values()
        return this.#rings.keep(tx, inventoryOf(changed, [...left]))
      })
      const configured = await this.#database.assuming(leaving ? { ...change, blind: undefined } : change)
      if (configured) return configured
    }
  }

  /**
   * Soft-deletes the key or restores it. @returns the key, and whether that changed anything
   * @throws ApiError 400 when the key does not exist
   */
  setSoftDeleted(
    mount: Mount,
    name: string,
    softDeleted: boolean,
  ): Promise<{ readonly changed: boolean; readonly key: Inventory }> {
    const missing = `no existing key named ${name} could be found`
    return this.#changeInventory(mount, name, missing, async (tx, { ring, parts }) => {
      const changed = ring.key.softDeleted !== softDeleted
      const current = await this.update(tx, ring, changed ? { softDeleted } : {})
      return { changed, key: this.#rings.keep(tx, { ring: current, parts }) }
    })
  }

  /**
   * Removes the versions below `version` and their wrapped material, for ever.
   * @throws ApiError 400 when the key does not exist, or a minimum version is lower
   */
  trim(mount: Mount, name: string, version: number): Promise<Inventory> {
    return this.change(mount, name, 'invalid key name', async (tx, ring) => {
      const { key } = await this.update(tx, ring, trimmed(ring.key, version))
      const { id: keyId } = key
      await this.#materials.removeOwned(tx, { key: keyId, below: version })
      const versions = new Map(ring.versions)
      for (const one of ring.versions.keys()) {
        if (one >= version) continue
        await this.#database.table(versionsTable).discard(tx, { keyId, version: one })
        versions.delete(one)
      }
      return inventoryOf({ key, versions }, await this.#materials.listAll(tx, keyId))
    })
  }
}

/** Whether a change makes a key exportable, so that its material must lie under the export KEK. */
const startsToLeave = (changes: Partial<KeyRow>): boolean =>
  changes.exportable === true || changes.allowPlaintextBackup === true
