import { randomBytes, randomUUIDv7 } from 'node:crypto'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import { mountPath, mountsTable } from './mount.ts'
import { createMountSet } from './rows.ts'
import { readTuning } from './tuning.ts'

/**
 * The mounts of a new installation: the set's head and, pristine until enabled, transit/ and pki/. May be called by a
 * second initialisation after a crash of the first.
 * @param now milliseconds
 */
export async function createInitialMounts(database: Database, tx: Transaction, now: number): Promise<void> {
  const table = database.table(mountsTable)
  if (await table.exists(tx, {})) return
  await createMountSet(database, tx)
  const rows = []
  for (const { type, config } of first) {
    const accessor = `${type}_${randomBytes(4).toString('hex')}`
    const settings = { description: '', config: readTuning(config), options: null, local: false, sealWrap: false }
    const row = {
      ...settings,
      id: randomUUIDv7(),
      path: mountPath(type),
      type,
      accessor,
      touched: false,
      createdAt: now,
    }
    rows.push(await table.insert(tx, row))
  }
  await database.head('mounts').advance(tx, rows)
}

const first = [
  { type: 'transit', config: {} },
  {
    type: 'pki',
    config: { passthrough_request_headers: ['If-Modified-Since'], allowed_response_headers: ['Last-Modified'] },
  },
]
