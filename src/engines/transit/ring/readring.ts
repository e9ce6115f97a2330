import type { Materials } from '../../../keys/materials/materials.ts'
import type { MaterialRow } from '../../../keys/tables.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { Ring as PureRing, Version } from './ring.ts'
import { type KeyRow, keysTable, type VersionRow, versionsTable } from './tables.ts'

/** A ring as it is stored. */
export type Ring = PureRing<KeyRow>

/**
 * Reads a key and all its versions. The key row says which versions must exist, so a missing row is damage.
 * @param mount uuid
 */
export async function readRing(database: Database, q: Reader, mount: string, name: string): Promise<Ring | undefined> {
  const key = await database.table(keysTable).find(q, { mount, name })
  return key && { key, versions: await versionsOf(database, q, key) }
}

/**
 * The ring, which nobody else changes before the transaction ends: every change of a key locks its row first, so that no two
 * wait for each other. To be the transaction's first read.
 */
export async function lockRing(
  database: Database,
  tx: Transaction,
  mount: string,
  name: string,
): Promise<Ring | undefined> {
  const key = await database.table(keysTable).lock(tx, { mount, name })
  return key && { key, versions: await versionsOf(database, tx, key) }
}

async function versionsOf(database: Database, q: Reader, key: KeyRow): Promise<ReadonlyMap<number, Version>> {
  const table = database.table(versionsTable)
  const rows = await allPages((after, limit) =>
    table.list(q, { mount: key.mount, keyId: key.id }, { by: 'version', after, limit }),
  )
  const versions = new Map<number, Version>(rows.map((row) => [row.version, row]))
  for (let version = Math.max(1, key.minAvailableVersion); version <= key.latestVersion; version++) {
    if (!versions.has(version)) throw new DamagedRow(keysTable.name, key.id, `version ${version} is missing`)
  }
  return versions
}

/** A ring and all its key parts by id, as they were at one moment. */
export interface Inventory {
  readonly ring: Ring
  readonly parts: ReadonlyMap<string, MaterialRow>
}

/** A version with its key parts, as they were stored. */
export interface StoredVersion {
  readonly row: VersionRow
  readonly parts: readonly MaterialRow[]
}

/** The inventory under a changed key row, with one version more. */
export function withVersion({ ring, parts }: Inventory, key: KeyRow, added: StoredVersion): Inventory {
  return {
    ring: { key, versions: new Map([...ring.versions, [added.row.version, added.row]]) },
    parts: new Map([...parts, ...added.parts.map((part) => [part.id, part] as const)]),
  }
}

/** A part of the key by its id. @throws DamagedRow when it is missing */
export function partOf({ ring, parts }: Inventory, id: string): MaterialRow {
  const part = parts.get(id)
  if (part === undefined) throw new DamagedRow('materials', id, `it is missing, and key ${ring.key.id} names it`)
  return part
}

/** The ring with its key parts. @param q consistent, and the one that the ring was read from */
export async function inventoryOf(materials: Materials, q: Reader, ring: Ring): Promise<Inventory> {
  const found = await materials.listAll(q, ring.key.id)
  return { ring, parts: new Map(found.map((row) => [row.id, row])) }
}

const pageRows = 1000

/** Every row of a listing by version, page by page. */
export async function allPages<R extends { readonly version: number }>(
  list: (after: number, limit: number) => Promise<R[]>,
): Promise<R[]> {
  const rows: R[] = []
  for (;;) {
    const page = await list(rows.at(-1)?.version ?? 0, pageRows)
    rows.push(...page)
    if (page.length < pageRows) return rows
  }
}
