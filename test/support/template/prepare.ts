import { systemClock as clock } from '../../../src/clock.ts'
import { Hsm } from '../../../src/hsm/hsm.ts'
import { initialise } from '../../../src/keys/initialise.ts'
import { createLog } from '../../../src/log.ts'
import { Database } from '../../../src/store/database.ts'
import type { TestToken } from '../token.ts'

/** The order to this script, in JSON as its only argument. */
export interface Preparation {
  readonly token: TestToken
  /** A migrated schema, for the keys of a cluster; without it the token stays empty. */
  readonly url?: string
}

/**
 * Run as a script: has the token tested, with the results in its directory, and makes a cluster's keys in it. In a
 * process of its own, since SoftHSM reads only once where its tokens are.
 */
if (import.meta.main) {
  const { token, url }: Preparation = JSON.parse(process.argv[2] ?? '')
  const { library, serial, pin, directory: stateDirectory } = token
  const log = createLog('silent')
  const onFatal = (reason: Error): void => {
    throw reason
  }
  await using hsm = await Hsm.open({ library, token: { serial }, pin, stateDirectory, log, clock, onFatal })
  if (url !== undefined) {
    await using database = await Database.open({ url, poolSize: 4, log, clock })
    const limits = { strict: false, fips: false, handleLimit: 100, residentLimit: 3 }
    await initialise({ hsm, database, clock, log, ...limits, kek: 'generate', name: 'test' })
  }
}
