import { readFile } from 'node:fs/promises'
import type { Clock } from './clock.ts'
import { type Config, databaseUrl, type Secrets } from './config.ts'
import { Hsm } from './hsm/hsm.ts'
import type { Custody } from './keys/custody.ts'
import { Guests } from './keys/managed/guests.ts'
import type { Logger } from './log.ts'
import type { Metrics } from './metrics.ts'
import { Database } from './store/database.ts'

/** What a process that touches token and database is given. */
export interface Ground {
  readonly config: Config
  readonly secrets: Secrets
  readonly log: Logger
  readonly clock: Clock
  /** Absent in commands, whom nobody asks. */
  readonly metrics?: Metrics
}

/** @throws Error when the database cannot be reached or refuses */
export async function openDatabase(ground: Ground, nudge?: () => void): Promise<Database> {
  const { config, secrets, log, clock, metrics } = ground
  return Database.open({
    url: databaseUrl(config, secrets),
    poolSize: config.database.poolSize,
    log,
    clock,
    ...(metrics ? { metrics } : {}),
    ...(nudge ? { nudge } : {}),
    ...(await tlsOf(config)),
  })
}

async function tlsOf({ database }: Config) {
  if (database.tls === undefined) return {}
  const { ca, certificate, key } = database.tls
  const read = (path: string | undefined) => (path === undefined ? undefined : readFile(path, 'utf8'))
  const [caText, certText, keyText] = await Promise.all([read(ca), read(certificate), read(key)])
  return {
    tls: {
      ...(caText === undefined ? {} : { ca: caText }),
      ...(certText === undefined ? {} : { cert: certText }),
      ...(keyText === undefined ? {} : { key: keyText }),
    },
  }
}

/** Loads the module and logs in. @throws Error in words when token, PIN or module are not as configured */
export function openHsm(ground: Ground, onFatal: (reason: Error) => void): Promise<Hsm> {
  const { config, secrets, log, clock, metrics } = ground
  const { library, libraryParameters, token, executor, threads, callDeadlineSeconds } = config.pkcs11
  return Hsm.open({
    library,
    ...(libraryParameters === undefined ? {} : { libraryParameters }),
    token: { ...token },
    pin: secrets.reveal().pin,
    executor,
    threads,
    callDeadlineMilliseconds: callDeadlineSeconds * 1000,
    stateDirectory: config.stateDirectory,
    log,
    clock,
    ...(metrics ? { metrics } : {}),
    onFatal,
  })
}

/** The tokens of managed keys; none of them is opened before it is needed. */
export function openGuests(ground: Ground, own: Hsm, custody: Custody, onFatal: (reason: Error) => void): Guests {
  const { config, log, clock } = ground
  const libraries = config.pkcs11Libraries.map(({ name, callDeadlineSeconds, ...library }) => ({
    ...library,
    name: name.toLowerCase(),
    callDeadlineMilliseconds: callDeadlineSeconds * 1000,
  }))
  return new Guests({
    ...{ libraries, own, log, clock, onFatal },
    ownAllowed: config.pkcs11.managedKeys,
    stateDirectory: config.stateDirectory,
    ownIds: () => custody.kekIds(),
  })
}
