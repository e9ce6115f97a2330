import { join } from 'node:path'
import type { Config } from './schema.ts'
import type { Secrets } from './secrets.ts'
import { withPassword } from './url.ts'

/*
 * What workers take from a configuration. They are handed theirs, and load nothing that reads one.
 */

/** database.url with the password put back, as the store takes it. */
export function databaseUrl(config: Config, secrets: Secrets): string {
  const { databasePassword } = secrets.reveal()
  return databasePassword === undefined ? config.database.url : withPassword(config.database.url, databasePassword)
}

/** The only directory that may hold audit files. */
export const auditDirectory = ({ audit, stateDirectory }: Config): string =>
  audit.directory ?? join(stateDirectory, 'audit')
