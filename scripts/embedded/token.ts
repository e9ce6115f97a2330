import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const library = '/usr/lib/softhsm/libsofthsm2.so'
const label = 'strongroom'

/** The token's settings in the server's configuration. */
export interface EmbeddedToken {
  readonly library: string
  readonly label: string
  readonly pinFile: string
  readonly environment: { readonly SOFTHSM2_CONF: string }
}

/**
 * The SoftHSM token in `directory`, made on first use. Its PIN is random and lies beside it, readable by us alone; its
 * SO PIN is forgotten, because it could only replace the PIN.
 */
export function embeddedToken(directory: string): EmbeddedToken {
  const tokens = join(directory, 'tokens')
  const conf = join(directory, 'softhsm2.conf')
  const pinFile = join(directory, 'pin')
  const environment = { SOFTHSM2_CONF: conf }
  const first = !existsSync(directory)
  mkdirSync(tokens, { recursive: true, mode: 0o700 })
  // Written at every start: the data directory may have been moved.
  writeFileSync(conf, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`)
  if (first) {
    const pin = randomBytes(16).toString('hex')
    initialise(environment, { label, pin, soPin: randomBytes(16).toString('hex') })
    writeFileSync(pinFile, `${pin}\n`, { mode: 0o600 })
  }
  return { library, label, pinFile, environment }
}

function initialise(environment: NodeJS.ProcessEnv, input: { label: string; pin: string; soPin: string }): void {
  const script = join(import.meta.dirname, 'inittoken.ts')
  const { status, stderr } = spawnSync(process.execPath, [script, library], {
    env: { ...process.env, ...environment },
    input: JSON.stringify(input),
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`the SoftHSM token could not be made: ${stderr}`)
}
