import { accessSync, constants } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { Config } from './schema.ts'

/**
 * Every file that the configuration names and this process cannot read, a line each; those of secrets are looked at where
 * they are read.
 */
export function missingFiles({ listeners, database, pkcs11, pkcs11Libraries }: Config): string[] {
  const named: [field: string, path: string | undefined][] = listeners.flatMap(({ tls }, index) =>
    fieldsOf(`listeners.${index}.tls`, { certificate: tls?.certificate, key: tls?.key, clientCa: tls?.clientCa }),
  )
  const { ca, certificate, key } = database.tls ?? {}
  named.push(...fieldsOf('database.tls', { ca, certificate, key }))
  named.push(['pkcs11.library', pkcs11.library])
  for (const [index, { library }] of pkcs11Libraries.entries())
    named.push([`pkcs11Libraries.${index}.library`, library])
  return named.flatMap(([field, path]) => (path === undefined ? [] : problemOf(field, path)))
}

const fieldsOf = (section: string, paths: Record<string, string | undefined>): [string, string | undefined][] =>
  Object.entries(paths).map(([name, path]) => [`${section}.${name}`, path])

function problemOf(field: string, path: string): string[] {
  // The loader looks for a module without a directory in places of its own.
  if (field.endsWith('library') && !isAbsolute(path)) return []
  try {
    accessSync(path, constants.R_OK)
    return []
  } catch (error) {
    return [`${field}: ${(error as Error).message}`]
  }
}
