import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { pages } from '../../../store/pages.ts'
import { keysTable, versionsTable } from './tables.ts'

const pageRows = 100

/**
 * Where a managed key is in use: versions of keys in these mounts. What is left of removed mounts counts no more.
 * @param managedKey uuid @param most @returns paths, such as `transit/keys/payments version 3`
 */
export async function managedKeyUses(
  database: Database,
  managedKey: string,
  mounts: readonly Mount[],
  most: number,
): Promise<string[]> {
  const paths = new Map(mounts.map(({ uuid, path }) => [uuid, path]))
  const uses: string[] = []
  const by = ['keyId', 'version'] as const
  for await (const page of pages(database, database.table(versionsTable), { managedKey }, { by, limit: pageRows })) {
    for (const { mount, keyId, version } of page) {
      const path = paths.get(mount)
      const key = path === undefined ? undefined : await database.read((q) => database.table(keysTable).get(q, keyId))
      if (key !== undefined) uses.push(`${path}keys/${key.name} version ${version}`)
      if (uses.length >= most) return uses
    }
  }
  return uses
}
