import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { tlsFiles } from './files.ts'
import type { Config } from './schema.ts'
import type { Secrets } from './secrets.ts'

/**
 * A text that changes with everything a worker reads when it starts: the configuration, the secrets, and the contents
 * of the certificate and key files that the configuration names. It is a hash of secrets, so it is kept in memory
 * alone.
 * @throws Error when a certificate or a key cannot be read
 */
export function fingerprint(config: Config, secrets: Secrets): string {
  const files = tlsFiles(config).map(([field, path]) => [field, readFileSync(path, 'base64')])
  return createHash('sha256')
    .update(JSON.stringify([config, secrets.reveal(), files]))
    .digest('hex')
}
