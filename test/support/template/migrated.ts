import { systemClock } from '../../../src/clock.ts'
import { createLog } from '../../../src/log.ts'
import { Database } from '../../../src/store/database.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { engine } from '../engine.ts'
import { oncePerRun } from './once.ts'
import { copyOf, original } from './schema.ts'

/**
 * A database whose tables are up to date. On MariaDB it is a copy of one that the run has migrated, for a quarter of
 * what the migrations cost.
 */
export async function createMigrated(): Promise<TestDatabase> {
  if (engine !== 'mariadb' && engine !== 'galera') return migrate()
  return copyOf(await oncePerRun('migrated', async () => original(await migrate())))
}

/** As createMigrated, on a server of the test's own. @param url of it */
export const createMigratedOn = (url: string): Promise<TestDatabase> => migrate(url)

async function migrate(apart?: string): Promise<TestDatabase> {
  const made = await createDatabase(undefined, apart)
  const log = createLog('silent')
  await using database = await Database.open({ url: made.urls.join(), poolSize: 1, log, clock: systemClock })
  await database.migrate()
  return made
}
