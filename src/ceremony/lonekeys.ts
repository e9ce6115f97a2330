import { keysTable as pkiKeysTable } from '../engines/pki/authority/tables.ts'
import { keysTable as transitKeysTable } from '../engines/transit/ring/tables.ts'
import type { Hsm } from '../hsm/hsm.ts'
import { managedKeysTable } from '../keys/managed/table.ts'
import { type MaterialRow, materialsTable } from '../keys/tables.ts'
import { mountsTable } from '../request/mounts/mount.ts'
import type { Database } from '../store/database.ts'
import { pages } from '../store/pages.ts'
import type { Where } from '../store/table.ts'

const rowsAtOnce = 200

/** A key that components cannot restore. */
export interface LoneKey {
  /** Its name for users, with mount and version. */
  readonly name: string
  /** Whether this token holds it. */
  readonly here: boolean
}

/**
 * Keys that exist only in one token, not in the database. Their rows are read unverified: the list is for operators.
 */
export async function loneKeys(database: Database, hsm: Hsm): Promise<LoneKey[]> {
  const found: LoneKey[] = []
  for await (const row of materials(database, { residence: 'token' })) {
    const { ckaId } = row
    const here = ckaId !== null && (await hsm.find({ class: 'private', id: ckaId, token: true })).length > 0
    found.push({ name: await nameOf(database, row), here })
  }
  return found
}

/** The names of keys that are wrapped by a KEK. */
export async function keysUnder(database: Database, kek: string): Promise<string[]> {
  const names: string[] = []
  for await (const row of materials(database, { kek })) names.push(await nameOf(database, row))
  return names
}

async function* materials(database: Database, where: Where<typeof materialsTable>): AsyncGenerator<MaterialRow, void> {
  const rows = database.unverified(materialsTable)
  for await (const page of pages(database, rows, where, { by: 'id', limit: rowsAtOnce })) yield* page
}

/** For example `transit/ key orders, version 2 (rsa-2048)`. */
function nameOf(database: Database, { id, owner, mount, version, part, algorithm }: MaterialRow): Promise<string> {
  return database.read(async (q) => {
    const place = await database.unverified(mountsTable).find(q, { id: mount })
    const at = place?.path ?? ''
    const key = await database.unverified(transitKeysTable).find(q, { id: owner })
    if (key) return `${at} key ${key.name}, version ${version} (${part === 'key' ? algorithm : part})`
    const authority = await database.unverified(pkiKeysTable).find(q, { id: owner })
    if (authority) return `${at} key ${authority.name ?? authority.id} (${algorithm})`
    const managed = await database.unverified(managedKeysTable).find(q, { id: owner })
    if (managed) return `the PIN of managed key ${managed.name}`
    return place ? `${at} ${part} ${id} (${algorithm})` : `material ${id} (${algorithm})`
  })
}
