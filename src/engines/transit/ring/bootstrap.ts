import { mountsTable } from '../../../request/mounts/mount.ts'
import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import { headsTable } from '../../../store/sealed/heads.ts'
import { createSettings } from './settings.ts'

/** A head without members. Once the anchor includes it, every transit mount must have settings. */
export const settingsSet = 'transit settings'

const mountsAtOnce = 10_000

/**
 * Creates the settings of existing mounts; later mounts get theirs when they are made. Done only at initialisation and
 * for a cluster older than the settings: otherwise missing settings are damage.
 */
export async function createInitialSettings(database: Database, tx: Transaction): Promise<void> {
  if (await database.table(headsTable).exists(tx, { set: settingsSet })) return
  await database.head(settingsSet).create(tx)
  const page = { by: 'path', limit: mountsAtOnce } as const
  for (const { id } of await database.table(mountsTable).list(tx, { type: 'transit' }, page)) {
    await createSettings(database, tx, id)
  }
}
