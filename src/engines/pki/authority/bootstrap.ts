import type { Clock } from '../../../clock.ts'
import { mountsTable } from '../../../request/mounts/mount.ts'
import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import { headsTable } from '../../../store/sealed/heads.ts'
import { createAuthority } from './authorities.ts'

/** A head without members. Once the token remembers it, every PKI mount has settings. */
export const authoritySet = 'pki authorities'

const mountsAtOnce = 10_000

interface Stores {
  readonly database: Database
  readonly clock: Clock
}

/** Creates the settings of existing mounts, as Transit's bootstrap does; anywhere else missing settings are damage. */
export async function createInitialAuthorities(stores: Stores, tx: Transaction): Promise<void> {
  const { database } = stores
  if (await database.table(headsTable).exists(tx, { set: authoritySet })) return
  await database.head(authoritySet).create(tx)
  const page = { by: 'path', limit: mountsAtOnce } as const
  for (const { id } of await database.table(mountsTable).list(tx, { type: 'pki' }, page)) {
    await createAuthority(stores, tx, id)
  }
}
