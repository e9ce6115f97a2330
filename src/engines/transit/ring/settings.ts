import type { MaybePromise, Mount } from '../../../route.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import { type SettingsRow, settingsTable } from './tables.ts'

const mountsHeld = 10_000

/** The settings that a caller may change. */
export type Setting = Partial<Pick<SettingsRow, 'disableUpsert' | 'cacheSize'>>

/**
 * The settings of each transit mount. Their row is made with the mount: a missing row is damage, and never means the
 * defaults, which allow upserts.
 */
export class Settings {
  readonly #database: Database
  readonly #cache: CoherentCache<SettingsRow>

  constructor(database: Database) {
    this.#database = database
    this.#cache = database.cache({
      table: settingsTable.name,
      limit: mountsHeld,
      load: (q, mount) => this.#read(q, mount),
    })
  }

  /** The current settings, never older than the last acknowledged write; synchronous when they are cached. */
  of(mount: Pick<Mount, 'uuid'>): MaybePromise<SettingsRow> {
    const found = this.#cache.get(mount.uuid)
    return found instanceof Promise ? found.then((row) => present(row, mount.uuid)) : present(found, mount.uuid)
  }

  /** When it resolves, every worker uses the new settings. */
  change(mount: Mount, changes: Setting): Promise<SettingsRow> {
    return this.#database.transaction(async (tx) => {
      const row = present(await this.#read(tx, mount.uuid), mount.uuid)
      tx.touch(settingsTable.name, mount.uuid)
      return this.#database.table(settingsTable).update(tx, row, changes)
    })
  }

  #read(q: Reader, mount: string): Promise<SettingsRow | undefined> {
    return this.#database.table(settingsTable).find(q, { mount })
  }
}

/** Creates the settings of a new mount. @param mount uuid */
export async function createSettings(database: Database, tx: Transaction, mount: string): Promise<void> {
  await database.table(settingsTable).insert(tx, { mount, disableUpsert: false, cacheSize: 0 })
}

function present(row: SettingsRow | undefined, mount: string): SettingsRow {
  if (row === undefined) throw new DamagedRow(settingsTable.name, mount, 'the settings of a mount are missing')
  return row
}
