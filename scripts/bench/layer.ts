import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pkcs11js from 'pkcs11js'
import { systemClock } from '../../src/clock.ts'
import { CKK, CKM } from '../../src/hsm/constants.ts'
import { Hsm } from '../../src/hsm/hsm.ts'
import { createLog } from '../../src/log.ts'
import { embeddedToken } from '../embedded/token.ts'
import { message } from './operation.ts'
import { spread } from './statistics.ts'

const calls = 1000
const rounds = 15

/**
 * The CPU that src/hsm adds to one AES-GCM call of pkcs11js: both in turn, on a token of their own in a new directory.
 */
export async function layer(directory: string): Promise<string> {
  const { library, label, pinFile, environment } = embeddedToken(directory)
  Object.assign(process.env, environment)
  await using hsm = await Hsm.open({
    ...{ library, token: { label }, pin: readFileSync(pinFile, 'utf8').trim(), executor: 'inline' },
    ...{ log: createLog('silent'), clock: systemClock, stateDirectory: directory },
    onFatal: (reason) => {
      throw reason
    },
  })
  const template = { class: 'secret', keyType: CKK.AES, usages: ['encrypt'], valueLength: 32 } as const
  const key = await hsm.generateKey(CKM.AES_KEY_GEN, template)
  const lib = new pkcs11js.PKCS11()
  lib.load(library)
  const session = lib.C_OpenSession(hsm.token.slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION)
  const iv = randomBytes(12)
  const bare = (): void => {
    const parameter = { type: pkcs11js.CK_PARAMS_AES_GCM_v240, iv, ivBits: 96, tagBits: 128 }
    lib.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_GCM, parameter }, key.value)
    lib.C_Encrypt(session, message, Buffer.allocUnsafe(message.length + 16))
  }
  const ours = (): unknown =>
    hsm.encrypt(key, { type: CKM.AES_GCM, gcm: { iv, aad: undefined, tagBits: 128 } }, message)
  const added = Array.from({ length: rounds }, () => cost(ours) - cost(bare))
  const { median, lowerQuartile, upperQuartile } = spread(added)
  const [most, low, high] = [median, lowerQuartile, upperQuartile].map((one) => one.toFixed(2))
  return `\nsrc/hsm adds ${most} µs (${low} to ${high}) CPU to an AES-GCM call of pkcs11js`
}

/** Processor time of one call in µs. */
function cost(work: () => unknown): number {
  const before = process.cpuUsage()
  for (let call = 0; call < calls; call++) work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / calls
}
