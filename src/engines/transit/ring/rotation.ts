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

interface RotationOptions {
  /** The key as it was read already. */
  readonly before?: KeyRow
  /** Asked about the current key inside the transaction; false leaves the key as it is. */
  readonly isDue?: (tx: Transaction, key: KeyRow) => MaybePromise<boolean>
  /** The new version, for keys of type managed_key and for them alone. */
  readonly managed?: ManagedDraft | undefined
}

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
   * @returns the key as this rotation left it
   * @throws ApiError 400 when there is no such key, or it must not rotate
   */
  async rotate(
    mount: Pick<Mount, 'uuid'>,
    name: string,
    createdBy: string,
    { before: known, isDue = () => true, managed }: RotationOptions = {},
  ): Promise<Inventory> {
    const read = () => this.#rings.readKey(mount, name)
    for (let before = known ?? (await read()); ; before = await read()) {
      if (before === undefined) throw badRequest('key not found')
      // Refused before the token works for nothing.
      rotated(name, before)
      if ((before.type === managedType) !== (managed !== undefined)) {
        throw badRequest('the key was replaced by one of another type')
      }
      const draft = await this.#versions.prepare(before, createdBy, managed && { key: async () => managed.draft })
      const rotatedKey = await this.#versions.commit([draft], async (tx) => {
        const found = await this.#rings.lockInventory(tx, mount, name)
        if (found === undefined) throw badRequest('key not found')
        const { ring } = found
        // Replaced by another key, or made exportable meanwhile: the draft was made for the former one.
        if (ring.key.id !== before.id || mayLeave(ring.key) !== mayLeave(before)) return undefined
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
