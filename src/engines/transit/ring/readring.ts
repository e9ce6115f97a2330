import type { Materials } from '../../../keys/materials/materials.ts'
import type { MaterialRow } from '../../../keys/tables.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Reader } from '../../../store/reader.ts'
import type { Ring as PureRing, Version } from './ring.ts'
import { type KeyRow, keysTable, type VersionRow, versionsTable } from './tables.ts'

/** A ring with its stored row. */
export type Ring = PureRing<KeyRow>

/**
 * Makes a ring from a key's row and its versions. The row implies which versions must exist, so a missing one is
 * damage.
 * @param expected the id that the key probably has: its versions are then read together with the row
 */
export async function readRing(
  database: Database,
  q: Reader,
  reading: Promise<KeyRow | undefined>,
  expected: string | undefined,
): Promise<Ring | undefined> {
  const [key, guessed] = await Promise.all([reading, expected ? versionsOf(database, q, expected) : undefined])
  if (key === undefined) return undefined
  const rows = guessed && key.id === expected ? guessed : await versionsOf(database, q, key.id)
  const versions = new Map<number, Version>(
    rows.filter(({ mount }) => mount === key.mount).map((row) => [row.version, row]),
  )
  for (let version = Math.max(1, key.minAvailableVersion); version <= key.latestVersion; version++) {
    if (!versions.has(version)) throw new DamagedRow(keysTable.name, key.id, `version ${version} is missing`)
  }
  return { key, versions }
}

function versionsOf(database: Database, q: Reader, keyId: string): Promise<VersionRow[]> {
  const table = database.table(versionsTable)
  return allPages((after, limit) => table.list(q, { keyId }, { by: 'version', after, limit }))
}

/** A ring and all its key parts by id, at one moment. */
export interface Inventory {
  readonly ring: Ring
  readonly parts: ReadonlyMap<string, MaterialRow>
}

/** A version with its key parts, as stored. */
export interface StoredVersion {
  readonly row: VersionRow
  readonly parts: readonly MaterialRow[]
}

/** The inventory with a changed key row and one more version. */
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

/** As readRing, with the key's parts. @param q consistent */
export async function readInventory(
  database: Database,
  materials: Materials,
  q: Reader,
  reading: Promise<KeyRow | undefined>,
  expected: string | undefined,
): Promise<Inventory | undefined> {
  const [ring, guessed] = await Promise.all([
    readRing(database, q, reading, expected),
    expected ? materials.listAll(q, expected) : undefined,
  ])
  if (ring === undefined) return undefined
  const { id } = ring.key
  return inventoryOf(ring, guessed && id === expected ? guessed : await materials.listAll(q, id))
}

/** A ring and the parts that were read with it. One may be missing: a change can still remove its version, or the key. */
export const inventoryOf = (ring: Ring, parts: readonly MaterialRow[]): Inventory => ({
  ring,
  parts: new Map(parts.map((row) => [row.id, row])),
})

/** The inventory without the versions that lack a part. */
export function withoutDamaged({ ring, parts }: Inventory): Inventory {
  const isWhole = ({ material, hmacMaterial, prkMaterial }: Version): boolean =>
    [material, hmacMaterial, prkMaterial].every((id) => id === null || parts.has(id))
  const versions = new Map([...ring.versions].filter(([, version]) => isWhole(version)))
  return { ring: { ...ring, versions }, parts }
}

const pageRows = 1000

/** Every row of a listing by version, page by page. */
async function allPages<R extends { readonly version: number }>(
  list: (after: number, limit: number) => Promise<R[]>,
): Promise<R[]> {
  const rows: R[] = []
  for (;;) {
    const page = await list(rows.at(-1)?.version ?? 0, pageRows)
    rows.push(...page)
    if (page.length < pageRows) return rows
  }
}
