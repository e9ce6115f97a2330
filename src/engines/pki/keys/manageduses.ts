import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { pages } from '../../../store/pages.ts'
import { keysTable } from '../authority/tables.ts'

const pageRows = 100

/**
 * Where a managed key is in use: keys of these mounts. What is left of removed mounts counts no more.
 * @param managedKey uuid @param most @returns paths, such as `pki/key/ca`
 */
export async function managedKeyUses(
  database: Database,
  managedKey: string,
  mounts: readonly Mount[],
  most: number,
): Promise<string[]> {
  const paths = new Map(mounts.map(({ uuid, path }) => [uuid, path]))
  const uses: string[] = []
  const page = { by: 'id', limit: pageRows } as const
  for await (const rows of pages(database, database.table(keysTable), { managedKey }, page)) {
    for (const { mount, id, name } of rows) {
      const path = paths.get(mount)
      if (path !== undefined) uses.push(`${path}key/${name ?? id}`)
      if (uses.length >= most) return uses
    }
  }
  return uses
}
