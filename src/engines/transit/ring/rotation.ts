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
  /** Called with the current key inside the transaction; false leaves the key unchanged. */
  readonly isDue?: (tx: Transaction, key: KeyRow) => MaybePromise<boolean>
  /** Makes the new version of a key of type managed_key. @throws ApiError 400 when the request names no such version */
  readonly managedFor?: (key: KeyRow) => Promise<ManagedDraft | undefined>
}

const always = (): boolean => true

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
    { isDue = always, managedFor = async () => undefined }: RotationOptions = {},
  ): Promise<Inventory> {
    const read = () => this.#rings.readKey(mount, name)
    // Read whole, it need not be read again by the change, which then shares its transaction with others.
    const readWhole = async () => (await this.#rings.inventory(mount, name))?.ring.key
    const readFirst = isDue === always ? readWhole : read
    const cached = this.#rings.peekInventory(mount, name)?.ring.key
    const recalled = cached ?? this.#rings.recall(mount, name)
    const guess = recalled?.type === managedType ? undefined : recalled
    let mayBeOld = guess !== undefined && cached === undefined
    for (let before = guess ?? (await readFirst()); ; before = await read(), mayBeOld = false) {
      if (before === undefined) throw badRequest('key not found')
      // Refused before the token does useless work, unless the row may be old.
      if (!mayBeOld) rotated(name, before)
      const drafting = this.#draft(before, createdBy, managedFor)
      const drafted = await drafting.catch((error: unknown) => {
        // The old row may forbid a rotation that the current row allows. A failure of the token is no reason to ask it
        // again.
        if (mayBeOld && error instanceof ApiError && error.status === 400) return undefined
        throw error
      })
      if (drafted === undefined) continue
      const { draft, managed } = drafted
      const change = this.#rings.changing(mount, name, 'key not found', async (tx, found) => {
        const { ring } = found
        // Replaced by another key, or reconfigured meanwhile: the draft was made for the former one.
        if (ring.key.id !== before.id || !sameMaking(ring.key, before)) return undefined
        if (!(await isDue(tx, ring.key))) return found
        const { key } = await this.#changes.update(tx, ring, rotated(name, ring.key))
        const added = await this.#versions.insert(tx, key, key.latestVersion, draft, managedFields(managed))
        return this.#rings.keep(tx, withVersion(found, key, added))
      })
      const reads = isDue !== always || managed !== undefined || draft.key.intent !== undefined
      const rotatedKey = await this.#versions.commit([draft], reads ? { ...change, blind: undefined } : change)
      if (rotatedKey) return rotatedKey
    }
  }

  async #draft(key: KeyRow, createdBy: string, managedFor: (key: KeyRow) => Promise<ManagedDraft | undefined>) {
    const managed = await managedFor(key)
    if (key.type === managedType && managed === undefined) {
      throw badRequest('each rotation of a key of type managed_key must name a managed key')
    }
    const draft = await this.#versions.prepare(key, createdBy, managed && { key: async () => managed.draft })
    return { draft, managed }
  }
}
