import type { Database } from '../store/database.ts'
import type { Transaction } from '../store/reader.ts'
import { headsTable } from '../store/sealed/heads.ts'
import { devicesTable } from './devices.ts'

/** The name of the set of devices among the sealed heads. */
export const deviceSet = devicesTable.name

/**
 * Creates the empty set of devices; an existing one stays. Only at initialisation, and for a cluster that the token
 * remembers without one: elsewhere a missing set is damage, or an attack that would end the audit.
 */
export async function createInitialDevices(database: Database, tx: Transaction): Promise<void> {
  if (await database.table(headsTable).exists(tx, { set: deviceSet })) return
  await database.head(deviceSet).create(tx)
}
