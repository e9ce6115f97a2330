import { accessSync, constants } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { Config } from './schema.ts'

type NamedFile = readonly [field: string, path: string]

/**
 * Every file named in the configuration that this process cannot read, a line each; files of secrets are checked where
 * they are read.
 */
export function missingFiles(config: Config): string[] {
  const { pkcs11, pkcs11Libraries } = config
  const libraries = pkcs11Libraries.map(({ library }, index) => [`pkcs11Libraries.${index}.library`, library] as const)
  const named: NamedFile[] = [...tlsFiles(config), ['pkcs11.library', pkcs11.library], ...libraries]
  return named.flatMap(([field, path]) => problemOf(field, path))
}

/** The certificates and keys that the configuration names. */
export function tlsFiles({ listeners, database }: Config): NamedFile[] {
  const { ca, certificate, key } = database.tls ?? {}
  return [
    ...listeners.flatMap(({ tls }, index) =>
      fieldsOf(`listeners.${index}.tls`, { certificate: tls?.certificate, key: tls?.key, clientCa: tls?.clientCa }),
    ),
    ...fieldsOf('database.tls', { ca, certificate, key }),
  ]
}

const fieldsOf = (section: string, paths: Record<string, string | undefined>): NamedFile[] =>
  Object.entries(paths).flatMap(([name, path]) => (path === undefined ? [] : [[`${section}.${name}`, path]]))

function problemOf(field: string, path: string): string[] {
  // The loader searches its own directories for a module without a directory.
  if (field.endsWith('library') && !isAbsolute(path)) return []
  try {
    accessSync(path, constants.R_OK)
    return []
  } catch (error) {
    return [`${field}: ${(error as Error).message}`]
  }
}
