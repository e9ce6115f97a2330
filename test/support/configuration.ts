import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestDatabase } from './database.ts'
import type { TestToken } from './token.ts'

export interface NodeSettings {
  readonly workers?: number
  /** Merged into the configuration's top level. */
  readonly config?: Readonly<Record<string, unknown>>
  /** The PKCS#11 module, when it is not the token's own. */
  readonly library?: string
}

/** A node's state directory, in the directory with its files. */
export const stateDirectoryOf = (directory: string): string => join(directory, 'state')

/** Writes a node's configuration, and the file with its PIN if there is none yet. @returns the configuration's path */
export function writeConfiguration(
  directory: string,
  { token, database }: { readonly token: TestToken; readonly database: TestDatabase },
  { library = token.library, workers = 1, config = {} }: NodeSettings = {},
  address = '127.0.0.1:0',
): string {
  const pinFile = join(directory, 'pin')
  const file = join(directory, 'config.json')
  // A test may have written another PIN there.
  if (!existsSync(pinFile)) writeFileSync(pinFile, `${token.pin}\n`, { mode: 0o600 })
  const fields = {
    listeners: [{ address }],
    database: { url: database.url },
    pkcs11: { library, token: { label: token.label }, pin: { file: pinFile } },
    stateDirectory: stateDirectoryOf(directory),
    workers,
    // Each test has audit files in a directory of its own.
    audit: { directory: '/' },
    ...config,
  }
  writeFileSync(file, JSON.stringify(fields))
  return file
}
