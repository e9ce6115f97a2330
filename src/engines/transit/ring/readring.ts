import type { Materials } from '../../../keys/materials/materials.ts'
import type { MaterialRow, Part } from '../../../keys/tables.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Reader } from '../../../store/reader.ts'
import type { Ring as PureRing, Version } from './ring.ts'
import { type KeyRow, keysTable, versionsTable } from './tables.ts'

/** A ring as it is stored. */
export type Ring = PureRing<KeyRow>

/**
 * Reads a key and all its versions. The key row says which versions must exist, so a missing row is damage.
 * @param mount uuid
 */
export async function readRing(database: Database, q: Reader, mount: string, name: string): Promise<Ring | undefined> {
  const key = await database.table(keysTable).find(q, { mount, name })
  if (key === undefined) return undefined
  const table = database.table(versionsTable)
  const rows = await allPages((after, limit) =>
    table.list(q, { mount, keyId: key.id }, { by: 'version', after, limit }),
  )
  const versions = new Map<number, Version>(rows.map((row) => [row.version, row]))
  for (let version = Math.max(1, key.minAvailableVersion); version <= key.latestVersion; version++) {
    if (!versions.has(version)) throw new DamagedRow(keysTable.name, key.id, `version ${version} is missing`)
  }
  return { key, versions }
}

/** A ring and all its key parts by id, as they were at one moment. */
export interface Inventory {
  readonly ring: Ring
  readonly parts: ReadonlyMap<string, MaterialRow>
}

/** A part of the key by its id. @throws DamagedRow when it is missing */
export function partOf({ ring, parts }: Inventory, id: string): MaterialRow {
  const part = parts.get(id)
  if (part === undefined) throw new DamagedRow('materials', id, `it is missing, and key ${ring.key.id} names it`)
  return part
}

const parts: readonly Part[] = ['key', 'hmac', 'prk']

/** @param q consistent */
export async function readInventory(
  database: Database,
  materials: Materials,
  q: Reader,
  mount: string,
  name: string,
): Promise<Inventory | undefined> {
  const ring = await readRing(database, q, mount, name)
  if (ring === undefined) return undefined
  const found: MaterialRow[] = []
  for (const part of parts) {
    found.push(...(await allPages((after, limit) => materials.list(q, { key: ring.key.id, part }, { after, limit }))))
  }
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
