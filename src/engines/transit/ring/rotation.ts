import { ApiError, badRequest } from '../../../errors.ts'
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
  /** The key, if it was already read. */
  readonly before?: KeyRow
  /** Called with the current key inside the transaction; false leaves the key unchanged. */
  readonly isDue?: (tx: Transaction, key: KeyRow) => MaybePromise<boolean>
  /** The new version; only for keys of type managed_key, and required for them. */
  readonly managed?: ManagedDraft | undefined
}

/** Whether the settings that affect a new version are the same. */
const sameMaking = (one: KeyRow, other: KeyRow): boolean =>
  mayLeave(one) === mayLeave(other) && (one.hmacInHsmOnly ?? false) === (other.hmacInHsmOnly ?? false)

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
   * @throws ApiError 400 when the key does not exist or must not rotate
   */
  async rotate(
    mount: Pick<Mount, 'uuid'>,
    name: string,
    createdBy: string,
    { before: known, isDue = () => true, managed }: RotationOptions = {},
  ): Promise<Inventory> {
    const read = () => this.#rings.readKey(mount, name)
    const recalled = this.#rings.recall(mount, name)
    const guess = recalled?.type === managedType ? undefined : recalled
    let mayBeOld = known === undefined && guess !== undefined
    for (let before = known ?? guess ?? (await read()); ; before = await read(), mayBeOld = false) {
      if (before === undefined) throw badRequest('key not found')
      // Refused before the token does useless work, unless the row may be old.
      if (!mayBeOld) rotated(name, before)
      if ((before.type === managedType) !== (managed !== undefined)) {
        throw badRequest('the key was replaced by a key of another type')
      }
      const preparing = this.#versions.prepare(before, createdBy, managed && { key: async () => managed.draft })
      const draft = await preparing.catch((error: unknown) => {
        // The old row may forbid a rotation that the current row allows. A failure of the token is no reason to ask it
        // again.
        if (mayBeOld && error instanceof ApiError && error.status === 400) return undefined
        throw error
      })
      if (draft === undefined) continue
      const rotatedKey = await this.#versions.commit([draft], async (tx) => {
        const found = await this.#rings.lockInventory(tx, mount, name)
        if (found === undefined) throw badRequest('key not found')
        const { ring } = found
        // Replaced by another key, or reconfigured meanwhile: the draft was made for the former one.
        if (ring.key.id !== before.id || !sameMaking(ring.key, before)) return undefined
        if (!(await isDue(tx, ring.key))) return found
        const { key } = await this.#changes.update(tx, ring, rotated(name, ring.key))
        const added = await this.#versions.insert(tx, key, key.latestVersion, draft, managedFields(managed))
        return this.#rings.keep(tx, withVersion(found, key, added))
      })
      if (rotatedKey) return rotatedKey
    }
  }
}
