import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config.ts'
import { ConfigError } from './problems.ts'

/** @throws ConfigError naming each listener whose certificates cannot be read or do not belong to their keys */
export function requireListenerTls({ listeners }: Pick<Config, 'listeners'>): void {
  const problems = listeners.flatMap(({ tls }, index) => {
    if (!tls) return []
    try {
      createSecureContext({
        cert: readFileSync(tls.certificate),
        key: readFileSync(tls.key),
        ...(tls.clientCa === undefined ? {} : { ca: readFileSync(tls.clientCa) }),
      })
      return []
    } catch (error) {
      return [`listeners.${index}.tls: ${(error as Error).message}`]
    }
  })
  if (problems.length > 0) throw new ConfigError(problems)
}
