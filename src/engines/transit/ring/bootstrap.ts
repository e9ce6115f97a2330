import { mountsTable } from '../../../request/mount.ts'
import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import { headsTable } from '../../../store/sealed/heads.ts'
import { createSettings } from './settings.ts'

/** A head without members: that the token remembers it says that every transit mount has had its settings since. */
export const settingsSet = 'transit settings'

const mountsAtOnce = 10_000

/**
 * The settings of the mounts there are; later ones get theirs when they are made. Only at initialisation, and for a cluster
 * that the token remembers without them: elsewhere missing settings are damage.
 */
export async function createInitialSettings(database: Database, tx: Transaction): Promise<void> {
  if ((await database.table(headsTable).count(tx, { set: settingsSet })) > 0) return
  await database.head(settingsSet).create(tx)
  const page = { by: 'path', limit: mountsAtOnce } as const
  for (const { id } of await database.table(mountsTable).list(tx, { type: 'transit' }, page)) {
    await createSettings(database, tx, id)
  }
}
