import type { Clock } from '../../../clock.ts'
import { badRequest } from '../../../errors.ts'
import { holdManagedKey } from '../../../keys/managed/hold.ts'
import { nameUses, type WantedUses } from '../../../keys/managed/uses.ts'
import type { Draft } from '../../../keys/materials/draft.ts'
import type { Materials } from '../../../keys/materials/materials.ts'
import type { Database } from '../../../store/database.ts'
import { pages, within } from '../../../store/pages.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { Authority } from '../authority/authority.ts'
import { checkName } from '../authority/names.ts'
import { type KeyRow, type KeyType, keysTable } from '../authority/tables.ts'

const mostKeys = 10_000
const pageRows = 100

/** A key that was made or imported, and is not stored yet. */
export interface NewKey {
  readonly draft: Draft
  readonly type: KeyType
  readonly bits: number
  /** Uuid of the managed key; null for other keys. */
  readonly managedKey: string | null
}

/** SHA-256 of its public key. */
export function fingerprintOf({ draft }: NewKey): Buffer {
  const { fingerprint } = draft.fields
  if (fingerprint == null) throw new Error('a key of an authority must be a pair')
  return fingerprint
}

/** The rows of an authority's keys, written in transactions that change it. */
export class KeyRows {
  readonly #options: { readonly database: Database; readonly materials: Materials; readonly clock: Clock }

  constructor(options: { readonly database: Database; readonly materials: Materials; readonly clock: Clock }) {
    this.#options = options
  }

  /** The authority's existing row with the same public key, if there is one. */
  find(before: Authority, key: NewKey): KeyRow | undefined {
    return before.keyWith(fingerprintOf(key))
  }

  /** @param name '' for no name @throws ApiError 400 for a name that is invalid or taken */
  async insert(tx: Transaction, before: Authority, key: NewKey, name: string): Promise<KeyRow> {
    if (before.keys.size >= mostKeys) throw badRequest(`a mount has at most ${mostKeys} keys`)
    if (name !== '') checkName('key', name, before.keyNamed(name) !== undefined)
    const { database, materials, clock } = this.#options
    const { mount } = before.settings
    if (key.managedKey !== null) await holdManagedKey(database, tx, key.managedKey)
    const row = await database.table(keysTable).insert(tx, {
      mount,
      name: name === '' ? null : name,
      type: key.type,
      bits: key.bits,
      createdAt: clock.wall(),
      material: key.draft.fields.id ?? '',
      managedKey: key.managedKey,
      fingerprint: fingerprintOf(key),
    })
    await materials.insert(tx, key.draft, { mount, key: row.id, version: 1 })
    return row
  }

  /** Removes the key and its material, in the token or wrapped. @param row of the authority before the change */
  async remove(tx: Transaction, row: KeyRow): Promise<void> {
    const { database, materials } = this.#options
    await database.table(keysTable).remove(tx, row)
    await materials.removeOwned(tx, { key: row.id })
  }
}

/**
 * The keys of these mounts that use a managed key.
 * @returns paths, such as `pki/key/ca`
 */
export function keysOfManaged(database: Database, q: Reader, wanted: WantedUses): Promise<string[]> {
  const where = { managedKey: wanted.managedKey }
  const rows = pages(within(q), database.table(keysTable), where, { by: 'id', limit: pageRows })
  return nameUses(rows, wanted, ({ id, name }) => `key/${name ?? id}`)
}
