import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runDirectory } from './directory.ts'

const run = promisify(execFile)
let home: string | undefined
const copied = new Set<string>()

/** Whether tokens are SoftHSM's, and not NSS's. */
export const onSoftHsm = process.env.STRONGROOM_TEST_HSM !== 'nss'

const randomPin = (): string => randomBytes(8).toString('hex')

/** A PKCS#11 token made for one test file. */
export interface TestToken {
  readonly library: string
  /** C_Initialize parameters, where the module needs some (NSS: they name the directory). */
  readonly libraryParameters?: string
  readonly label: string
  readonly serial: string
  readonly pin: string
  readonly soPin: string
  /** Holds the token's files. */
  readonly directory: string
}

/** A new, empty token: of SoftHSM, or of NSS where STRONGROOM_TEST_HSM says so. */
export const createToken = (name = 'test'): Promise<TestToken> => {
  const label = `${name}-${randomBytes(4).toString('hex')}`
  const pin = randomPin()
  return onSoftHsm ? softhsmToken(label, pin) : nssToken(label, pin)
}

/**
 * All SoftHSM tokens of a process share one directory, named in SOFTHSM2_CONF before the first C_Initialize, which
 * reads it once; child processes inherit it.
 */
function softhsmToken(label: string, pin: string): Promise<TestToken> {
  home ??= softhsmHome()
  return initToken(home, label, pin)
}

function softhsmHome(): string {
  const directory = createHome()
  process.env.SOFTHSM2_CONF = configurationOf(directory)
  return directory
}

/** A directory for SoftHSM tokens, with a configuration that names it. */
export function createHome(): string {
  const directory = mkdtempSync(join(runDirectory(), 'token-'))
  mkdirSync(tokensOf(directory))
  const text = `directories.tokendir = ${tokensOf(directory)}\nobjectstore.backend = file\nlog.level = ERROR\n`
  writeFileSync(configurationOf(directory), text)
  return directory
}

/** The file that SOFTHSM2_CONF names. */
export const configurationOf = (directory: string): string => join(directory, 'softhsm2.conf')
const tokensOf = (directory: string): string => join(directory, 'tokens')

/** Initialises a SoftHSM token in such a directory. */
export async function initToken(directory: string, label: string, pin = randomPin()): Promise<TestToken> {
  const soPin = randomPin()
  const options = { env: { ...process.env, SOFTHSM2_CONF: configurationOf(directory) } }
  await run('softhsm2-util', ['--init-token', '--free', '--label', label, '--pin', pin, '--so-pin', soPin], options)
  const { stdout } = await run('softhsm2-util', ['--show-slots'], options)
  const serial = new RegExp(`Serial number:\\s*(\\S+)(?:(?!Slot ).)*?Label:\\s*${label}\\s`, 's').exec(stdout)?.[1]
  if (serial === undefined) throw new Error(`softhsm2-util does not show the token ${label}`)
  return { library: '/usr/lib/softhsm/libsofthsm2.so', label, serial, pin, soPin, directory }
}

/**
 * Copies a SoftHSM token, alone in its directory, to those of this process, with its label, serial, PINs and the
 * results of its self-test.
 * @returns undefined when this process has a copy: of two tokens with one label nobody would know which is meant
 */
export function copyToken(token: TestToken): TestToken | undefined {
  if (copied.has(token.label)) return undefined
  copied.add(token.label)
  home ??= softhsmHome()
  cpSync(tokensOf(token.directory), tokensOf(home), { recursive: true })
  const results = readdirSync(token.directory).filter((name) => name.startsWith('self-test-'))
  for (const name of results) cpSync(join(token.directory, name), join(home, name))
  return { ...token, directory: home }
}

/** A database token of NSS in a directory of its own; it is the second slot of its module and has no SO PIN. */
async function nssToken(label: string, pin: string): Promise<TestToken> {
  const directory = mkdtempSync(join(runDirectory(), 'nss-'))
  const pinFile = join(directory, 'pin')
  writeFileSync(pinFile, `${pin}\n`)
  await run('certutil', ['-N', '-d', `sql:${directory}`, '-f', pinFile])
  const triplet = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'
  const prefixes = "certPrefix='' keyPrefix='' secmod='secmod.db' flags=''"
  const names = `dbTokenDescription='${label}' cryptoTokenDescription='${label}-crypto'`
  return {
    library: `/usr/lib/${triplet}/libsoftokn3.so`,
    libraryParameters: `configdir='sql:${directory}' ${prefixes} ${names}`,
    label,
    serial: '0000000000000000',
    pin,
    soPin: '',
    directory,
  }
}
