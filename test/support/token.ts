import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runDirectory } from './directory.ts'

const run = promisify(execFile)
let home: string | undefined

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
  const pin = randomBytes(8).toString('hex')
  return process.env.STRONGROOM_TEST_HSM === 'nss' ? nssToken(label, pin) : softhsmToken(label, pin)
}

/**
 * All SoftHSM tokens of a process share one directory, named in SOFTHSM2_CONF before the first C_Initialize, which
 * reads it once; child processes inherit it.
 */
async function softhsmToken(label: string, pin: string): Promise<TestToken> {
  home ??= softhsmHome()
  const soPin = randomBytes(8).toString('hex')
  await run('softhsm2-util', ['--init-token', '--free', '--label', label, '--pin', pin, '--so-pin', soPin])
  const { stdout } = await run('softhsm2-util', ['--show-slots'])
  const serial = new RegExp(`Serial number:\\s*(\\S+)(?:(?!Slot ).)*?Label:\\s*${label}\\s`, 's').exec(stdout)?.[1]
  if (serial === undefined) throw new Error(`softhsm2-util does not show the token ${label}`)
  return { library: '/usr/lib/softhsm/libsofthsm2.so', label, serial, pin, soPin, directory: home }
}

function softhsmHome(): string {
  const directory = mkdtempSync(join(runDirectory(), 'token-'))
  const tokens = join(directory, 'tokens')
  mkdirSync(tokens)
  const conf = join(directory, 'softhsm2.conf')
  writeFileSync(conf, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`)
  process.env.SOFTHSM2_CONF = conf
  return directory
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
