import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createShim, type Shim } from '../hsm/support/fault.ts'
import { runDirectory } from '../support/directory.ts'
import type { TestToken } from '../support/token.ts'

const run = promisify(execFile)

/** pkcs11-tool (OpenSC) on a token, as its owner would use it: logged in, with these words. */
export async function tool(token: Foreign | TestToken, ...words: readonly string[]): Promise<string> {
  const env = { ...process.env, ...('environment' in token ? token.environment : {}) }
  const login = ['--module', token.library, '--token-label', token.label, '--login', '--pin', token.pin]
  const { stdout } = await run('pkcs11-tool', [...login, ...words], { env })
  return stdout
}

export const makeRsa = (token: Foreign | TestToken, label: string, id: string, bits = 2048) =>
  tool(
    token,
    '--keypairgen',
    '--key-type',
    `rsa:${bits}`,
    '--label',
    label,
    '--id',
    id,
    '--usage-sign',
    '--usage-decrypt',
  )
export const makeEc = (token: Foreign | TestToken, label: string, id: string, curve = 'secp256r1') =>
  tool(token, '--keypairgen', '--key-type', `EC:${curve}`, '--label', label, '--id', id, '--usage-sign')
export const makeAes = (token: Foreign | TestToken, label: string, id: string, bytes = 32) =>
  tool(token, '--keygen', '--key-type', `AES:${bytes}`, '--label', label, '--id', id, '--sensitive')

/** A token that the server reaches by a module of its own: a copy of SoftHSM's, with other settings. */
export interface Foreign {
  readonly library: string
  readonly environment: Readonly<Record<string, string>>
  readonly label: string
  readonly serial: string
  readonly pin: string
  readonly directory: string
}

/** A fresh token in a directory of its own, and a copy of the module that sees that directory. */
export async function createForeign(label = 'foreign'): Promise<Foreign> {
  const directory = mkdtempSync(join(runDirectory(), 'foreign-'))
  const library = join(directory, 'libforeign.so')
  copyFileSync('/usr/lib/softhsm/libsofthsm2.so', library)
  mkdirSync(join(directory, 'tokens'))
  const conf = join(directory, 'softhsm2.conf')
  writeFileSync(
    conf,
    `directories.tokendir = ${join(directory, 'tokens')}\nobjectstore.backend = file\nlog.level = ERROR\n`,
  )
  const environment = { SOFTHSM2_CONF: conf }
  const env = { ...process.env, ...environment }
  const pin = '987654'
  await run('softhsm2-util', ['--init-token', '--free', '--label', label, '--pin', pin, '--so-pin', pin], { env })
  const { stdout } = await run('softhsm2-util', ['--show-slots'], { env })
  const serial = /Serial number:\s*(\S+)/.exec(stdout)?.[1] ?? ''
  return { library, environment, label, serial, pin, directory }
}

/** The fault shim in front of a foreign token's module, and the environment in which that module meets the token. */
export async function createFaulty(foreign: Foreign): Promise<{ shim: Shim; environment: Record<string, string> }> {
  const shim = await createShim(foreign.library)
  const { P11FAULT_MODULE = '', P11FAULT_FILE = '' } = process.env
  // The server's own module must not meet them.
  delete process.env.P11FAULT_MODULE
  delete process.env.P11FAULT_FILE
  return { shim, environment: { ...foreign.environment, P11FAULT_MODULE, P11FAULT_FILE } }
}
