import type { Hsm } from '../hsm/hsm.ts'
import type { Custody } from '../keys/custody.ts'
import type { Vouched } from '../open.ts'
import type { Database } from '../store/database.ts'
import { type OpenedSettings, openSettings } from './settings.ts'

/**
 * Opens the cluster's keys for one command and closes everything afterwards.
 * @throws Error with an explanation when token, PIN or database are not as configured
 */
export async function withCustody(
  options: { readonly config?: string; readonly force?: boolean } & Vouched,
  work: (custody: Custody, database: Database, settings: OpenedSettings, hsm: Hsm) => Promise<void>,
): Promise<void> {
  const { acceptRestore = false, beginEpoch = false } = options
  const settings = await openSettings(options)
  // Imported here, so that the supervisor, which shares this entry, does not load it.
  const { openCustody, openDatabase, openHsm } = await import('../open.ts')
  await using database = await openDatabase(settings)
  await using hsm = await openHsm(settings, (reason) => {
    throw reason
  })
  using custody = await openCustody(settings, database, hsm, { acceptRestore, beginEpoch })
  await work(custody, database, settings, hsm)
}

/** As withCustody, but only the token, whatever database the configuration names. */
export async function withHsm(
  options: { readonly config?: string; readonly force?: boolean },
  work: (hsm: Hsm) => Promise<void>,
): Promise<void> {
  const settings = await openSettings(options)
  const { openHsm } = await import('../open.ts')
  await using hsm = await openHsm(settings, (reason) => {
    throw reason
  })
  await work(hsm)
}
