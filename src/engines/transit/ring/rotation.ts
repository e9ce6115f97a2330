import { badRequest } from '../../../errors.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { KeyChanges } from './changes.ts'
import { managedType } from './managedtype.ts'
import { mayLeave } from './newkey.ts'
import { type Inventory, withVersion } from './readring.ts'
import type { Rings } from './rings.ts'
import { rotated } from './rules.ts'
import type { KeyRow } from './tables.ts'
import { type ManagedDraft, managedFields } from './versiondraft.ts'
import type { VersionStore } from './versionstore.ts'

/** Rotates keys, for a caller or because their period is over. */
export class KeyRotation {
  readonly #rings: Rings
  readonly #changes: KeyChanges
  readonly #versions: VersionStore

  constructor(options: { rings: Rings; changes: KeyChanges; versions: VersionStore }) {
    this.#rings = options.rings
    this.#changes = options.changes
    this.#versions = options.versions
  }

  /**
   * Adds a version and makes it the latest.
   * @param isDue asked about the current key inside the transaction; false leaves the key as it is
   * @param managed the new version, for keys of type managed_key and for them alone
   * @returns the key as this rotation left it
   * @throws ApiError 400 when there is no such key, or it must not rotate
   */
  async rotate(
    mount: Pick<Mount, 'uuid'>,
    name: string,
    createdBy: string,
    isDue: (tx: Transaction, key: KeyRow) => MaybePromise<boolean> = () => true,
    managed?: ManagedDraft,
  ): Promise<Inventory> {
    for (let before = await this.#rings.get(mount, name); ; before = await this.#rings.read(mount, name)) {
      if (before === undefined) throw badRequest('key not found')
      // Refused before the token works for nothing.
      rotated(name, before.key)
      if ((before.key.type === managedType) !== (managed !== undefined)) {
        throw badRequest('the key was replaced by one of another type')
      }
      const draft = await this.#versions.prepare(before.key, createdBy, managed && { key: async () => managed.draft })
      const rotatedKey = await this.#versions.commit([draft], async (tx) => {
        const found = await this.#rings.lockInventory(tx, mount, name)
        if (found === undefined) throw badRequest('key not found')
        const { ring } = found
        // Replaced by another key, or made exportable meanwhile: the draft was made for the former one.
        if (ring.key.id !== before.key.id || mayLeave(ring.key) !== mayLeave(before.key)) return undefined
        if (!(await isDue(tx, ring.key))) return found
        const { key } = await this.#changes.update(tx, ring, rotated(name, ring.key))
        return withVersion(
          found,
          key,
          await this.#versions.insert(tx, key, key.latestVersion, draft, managedFields(managed)),
        )
      })
      if (rotatedKey) return rotatedKey
    }
  }
}
