import type { Clock } from '../../../clock.ts'
import { holdManagedKey } from '../../../keys/managed/hold.ts'
import { nameUses, type WantedUses } from '../../../keys/managed/uses.ts'
import type { Draft } from '../../../keys/materials/draft.ts'
import type { Materials } from '../../../keys/materials/materials.ts'
import type { Kdf } from '../../../keys/use/derivation.ts'
import type { Assuming } from '../../../store/assuming.ts'
import type { Database } from '../../../store/database.ts'
import { DuplicateRow } from '../../../store/faults.ts'
import { pages, within } from '../../../store/pages.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import { convergenceOfNew, hmacSecretBytes, mayLeave } from './newkey.ts'
import type { Ring, StoredVersion } from './readring.ts'
import { touchRing } from './ringcaches.ts'
import { type KeyRow, keysTable, type VersionRow, versionsTable } from './tables.ts'
import type { KeySpecification, PreparePart, VersionDraft, VersionFields } from './versiondraft.ts'

const hmacType = 'hmac'
/** To store a key of a name that others make and delete at the same time. */
const attempts = 20
const pageRows = 100

/**
 * The versions of keys: their parts are made in the token before the transaction that stores them, and removed if it
 * fails.
 */
export class VersionStore {
  readonly #database: Database
  readonly #materials: Materials
  readonly #clock: Clock

  constructor(options: { database: Database; materials: Materials; clock: Clock }) {
    this.#database = options.database
    this.#materials = options.materials
    this.#clock = options.clock
  }

  /**
   * Makes the parts of a version: the key, the root of a derived key, and the HMAC secret unless the key itself is one.
   * @param imported functions that import parts; the other parts are made
   */
  async prepare(
    of: KeySpecification,
    createdBy: string,
    imported: Partial<Record<'key' | 'hmac', PreparePart>> = {},
  ): Promise<VersionDraft> {
    const { keySize, derived, hmacInHsmOnly } = of
    const make: PreparePart = (specification) =>
      this.#materials.prepare({ ...specification, hmacInHsmOnly: hmacInHsmOnly === true })
    const part = { exportable: mayLeave(of), createdBy }
    const sizeBytes = keySize === 0 ? undefined : keySize
    const key = await (imported.key ?? make)({ ...part, algorithm: of.type, part: 'key', sizeBytes, derived })
    try {
      const prk = derived ? await this.#materials.extract(key, of.kdf as Kdf) : undefined
      if (key.fields.algorithm === hmacType) return { key, prk, hmac: undefined }
      const secret = { ...part, algorithm: hmacType, part: 'hmac', sizeBytes: hmacSecretBytes } as const
      return { key, prk, hmac: await (imported.hmac ?? make)(secret) }
    } catch (error) {
      await this.discard({ key })
      throw error
    }
  }

  /** Discards a draft unless it was stored. Never rejects. */
  discard({ key }: Pick<VersionDraft, 'key'>): Promise<void> {
    return this.#materials.abandon(key)
  }

  /** Runs the change that stores the drafts, then discards those that were not stored. */
  async commit<T>(drafts: readonly VersionDraft[], { name, blind, reading }: Assuming<T>): Promise<T> {
    const expecting = async (tx: Transaction): Promise<T> => {
      const result = reading(tx)
      // Sent together with the first reads of `reading`, but after them: a lock comes first.
      for (const { key, hmac, prk } of drafts) this.#materials.expect(tx, [key, hmac, prk])
      return result
    }
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.#database.assuming({ name, blind, reading: expecting })
        } catch (error) {
          // Others make and delete keys of this name: the key that was in the way is gone already.
          if (!(error instanceof DuplicateRow) || attempt === attempts) throw error
        }
      }
    } finally {
      for (const draft of drafts) await this.discard(draft)
    }
  }

  /** Stores a version, in the transaction that makes it the key's. */
  async insert(
    tx: Transaction,
    key: KeyRow,
    version: number,
    draft: VersionDraft,
    fields: VersionFields = {},
  ): Promise<StoredVersion> {
    const owner = { mount: key.mount, key: key.id, version }
    if (fields.managedKey) await holdManagedKey(this.#database, tx, fields.managedKey)
    const material = await this.#materials.insert(tx, draft.key, owner)
    const hmac = draft.hmac ? await this.#materials.insert(tx, draft.hmac, owner) : null
    const prk = draft.prk ? await this.#materials.insert(tx, draft.prk, owner) : null
    const row = await this.#database.table(versionsTable).insert(tx, {
      mount: key.mount,
      keyId: key.id,
      version,
      material: material.id,
      hmacMaterial: hmac?.id ?? null,
      prkMaterial: prk?.id ?? null,
      convergentVersion: convergenceOfNew(key),
      createdAt: this.#clock.wall(),
      ...fields,
    })
    return { row, parts: [material, hmac, prk].filter((part) => part !== null) }
  }

  /** @throws Error when the ring lacks the version */
  async update(tx: Transaction, { key }: Ring, version: number, changes: VersionChanges): Promise<void> {
    const versions = this.#database.table(versionsTable)
    const row = await versions.find(tx, { keyId: key.id, version })
    if (row === undefined) throw new Error(`key ${key.id} has no version ${version}`)
    await versions.update(tx, row, changes)
    touchRing(tx, key)
  }

  /** Replaces the public key of a version by the whole key. */
  async complete(tx: Transaction, ring: Ring, version: number, draft: Draft): Promise<void> {
    const { id: key, mount } = ring.key
    await this.#materials.removeOwned(tx, { key, version, part: 'key' })
    const { id: material } = await this.#materials.insert(tx, draft, { mount, key, version })
    await this.update(tx, ring, version, { material })
  }
}

type VersionChanges = Partial<Pick<VersionRow, 'material' | 'certificateChain'>>

/**
 * The versions of keys in these mounts that use a managed key.
 * @returns names such as `transit/keys/payments version 3`
 */
export function versionsOfManaged(database: Database, q: Reader, wanted: WantedUses): Promise<string[]> {
  const [where, by] = [{ managedKey: wanted.managedKey }, ['keyId', 'version'] as const]
  const rows = pages(within(q), database.table(versionsTable), where, { by, limit: pageRows })
  return nameUses(rows, wanted, async ({ keyId, version }) => {
    const key = await database.table(keysTable).get(q, keyId)
    return key && `keys/${key.name} version ${version}`
  })
}
