import type { Database } from '../store/database.ts'
import type { Transaction } from '../store/reader.ts'
import { headsTable } from '../store/sealed/heads.ts'
import { devicesTable } from './devices.ts'

/** The name of the set of devices among the sealed heads. */
export const deviceSet = devicesTable.name

/**
 * Begins the set of devices, which is empty; begun is done already. Only at initialisation, and for a cluster that the
 * token remembers without one: elsewhere a missing set is damage, or somebody's way to end the audit.
 */
export async function createInitialDevices(database: Database, tx: Transaction): Promise<void> {
  const begun = await database.table(headsTable).count(tx, { set: deviceSet })
  if (begun === 0) await database.head(deviceSet).create(tx)
}
