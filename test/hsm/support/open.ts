import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../src/clock.ts'
import { CKK, CKM } from '../../../src/hsm/constants.ts'
import type { Handle } from '../../../src/hsm/handle.ts'
import { Hsm, type HsmOptions } from '../../../src/hsm/hsm.ts'
import type { Mechanism } from '../../../src/hsm/mechanism.ts'
import type { KeyTemplate } from '../../../src/hsm/template.ts'
import { createLog } from '../../../src/log.ts'
import { runDirectory } from '../../support/directory.ts'
import { createToken, type TestToken } from '../../support/token.ts'

let made: Promise<TestToken> | undefined
/** The test file's one token. It must be there before the first C_Initialize, and NSS has one for each process. */
export const theToken = (): Promise<TestToken> => {
  made ??= createToken('hsm')
  return made
}

export interface OpenHsm extends AsyncDisposable {
  readonly hsm: Hsm
  /** Resolves with the reason why the process would have exited. */
  readonly fatal: Promise<Error>
}

/** An Hsm on the file's token, with a state directory of its own unless one is given. */
export async function openHsm(options: Partial<HsmOptions> = {}): Promise<OpenHsm> {
  const token = await theToken()
  const { promise: fatal, resolve: onFatal } = Promise.withResolvers<Error>()
  const { library, libraryParameters, label, pin } = token
  const hsm = await Hsm.open({
    library,
    ...(libraryParameters === undefined ? {} : { libraryParameters }),
    token: { label },
    pin,
    stateDirectory: stateDirectory(),
    log: createLog('silent'),
    clock: systemClock,
    onFatal,
    ...options,
  })
  return { hsm, fatal, [Symbol.asyncDispose]: () => hsm[Symbol.asyncDispose]() }
}

let shared: string | undefined
/** One for the file, so that the self-test runs once. */
export function stateDirectory(): string {
  shared ??= newDirectory()
  return shared
}
export const newDirectory = (): string => mkdtempSync(join(runDirectory(), 'hsm-'))

export const executors = ['inline', 'threads'] as const

export const aesTemplate = (usages: KeyTemplate['usages'], more: Partial<KeyTemplate> = {}): KeyTemplate => ({
  class: 'secret',
  keyType: CKK.AES,
  usages,
  ...more,
})
export const macTemplate = (more: Partial<KeyTemplate> = {}): KeyTemplate => ({
  class: 'secret',
  keyType: CKK.GENERIC_SECRET,
  usages: ['sign', 'verify'],
  ...more,
})

export const gcm = (iv: Uint8Array, aad?: Uint8Array): Mechanism => ({
  type: CKM.AES_GCM,
  gcm: { iv, aad, tagBits: 128 },
})
export const hmac256: Mechanism = { type: CKM.SHA256_HMAC }

export const newAes = (hsm: Hsm, usages: KeyTemplate['usages'], more: Partial<KeyTemplate> = {}): Promise<Handle> =>
  hsm.generateKey(CKM.AES_KEY_GEN, aesTemplate(usages, { valueLength: 32, ...more }))

export const newRsa = (hsm: Hsm) =>
  hsm.generateKeyPair(
    CKM.RSA_PKCS_KEY_PAIR_GEN,
    { class: 'public', keyType: CKK.RSA, modulusBits: 2048, publicExponent: Buffer.from([1, 0, 1]), usages: [] },
    { class: 'private', keyType: CKK.RSA, usages: ['sign', 'decrypt'], extractable: true },
  )

export const p256 = Buffer.from('06082a8648ce3d030107', 'hex')
export const newP256 = (hsm: Hsm) =>
  hsm.generateKeyPair(
    CKM.EC_KEY_PAIR_GEN,
    { class: 'public', keyType: CKK.EC, ecParameters: p256, usages: [] },
    { class: 'private', keyType: CKK.EC, usages: ['sign'], extractable: true },
  )
