import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { runDirectory } from '../support/directory.ts'
import { createToken, type TestToken } from '../support/token.ts'

/** A token, a database and the configuration file that names them, as before `init`. */
export interface Site extends AsyncDisposable {
  readonly directory: string
  readonly file: string
  readonly pinFile: string
  readonly token: TestToken
  readonly database: TestDatabase
  /** Writes the configuration again with other fields. */
  configure(fields: object): void
}

export async function createSite(fields: object = {}): Promise<Site> {
  const [token, database] = await Promise.all([createToken(), createDatabase()])
  const directory = mkdtempSync(join(runDirectory(), 'site-'))
  const file = join(directory, 'strongroom.yaml')
  const pinFile = join(directory, 'pin')
  writeFileSync(pinFile, `${token.pin}\n`, { mode: 0o600 })
  const configure = (more: object) => {
    const config = {
      listeners: [{ address: '127.0.0.1:0' }],
      database: { url: database.url },
      pkcs11: {
        library: token.library,
        token: { label: token.label },
        pin: { file: pinFile },
        environment: { SOFTHSM2_CONF: process.env.SOFTHSM2_CONF },
      },
      stateDirectory: join(directory, 'state'),
      ...more,
    }
    writeFileSync(file, JSON.stringify(config))
  }
  configure(fields)
  return {
    directory,
    file,
    pinFile,
    token,
    database,
    configure,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
