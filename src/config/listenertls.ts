import { X509Certificate } from 'node:crypto'
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
      })
      if (tls.clientCa !== undefined) requireCertificate(tls.clientCa)
      return []
    } catch (error) {
      return [`listeners.${index}.tls: ${(error as Error).message}`]
    }
  })
  if (problems.length > 0) throw new ConfigError(problems)
}

/** OpenSSL takes a file without any. @throws Error when the first certificate of a file cannot be read */
function requireCertificate(path: string): void {
  try {
    new X509Certificate(readFileSync(path))
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`)
  }
}
