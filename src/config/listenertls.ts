import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config.ts'
import { readPem } from '../crypto/pem.ts'
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
      if (tls.clientCa !== undefined) requireCertificates(tls.clientCa)
      return []
    } catch (error) {
      return [`listeners.${index}.tls: ${(error as Error).message}`]
    }
  })
  if (problems.length > 0) throw new ConfigError(problems)
}

/** OpenSSL takes a file without any. @throws Error when a PEM file has none, or one that cannot be read */
function requireCertificates(path: string): void {
  const found = readPem(readFileSync(path, 'utf8'), ['CERTIFICATE', 'X509 CERTIFICATE'])
  if (found.length === 0) throw new Error(`${path} has no certificate in PEM`)
  for (const der of found) new X509Certificate(der)
}
