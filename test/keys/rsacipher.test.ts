import { constants, publicEncrypt, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Ability } from '../../src/hsm/capabilities.ts'
import { CKR } from '../../src/hsm/constants.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { Custody } from '../../src/keys/custody.ts'
import type { Material } from '../../src/keys/material.ts'
import { RsaCipher } from '../../src/keys/use/rsacipher.ts'
import { createShim, group, type Shim } from '../hsm/support/fault.ts'
import { createTestedToken } from '../support/template/keys.ts'
import type { TestToken } from '../support/token.ts'
import { makeKey, openCluster, openHsm, Place, reopen } from './support.ts'

let token: TestToken
let shim: Shim
let place: Place

beforeAll(async () => {
  token = await createTestedToken('rsacipher')
  shim = await createShim(token.library)
  token = { ...token, library: shim.library }
  place = await Place.fresh()
  await using hsm = await openHsm(token)
  using _ = await openCluster(hsm, place)
  for (const path of findings()) proven = JSON.parse(readFileSync(path, 'utf8')).proven
}, 60_000)

afterAll(async () => {
  await place[Symbol.asyncDispose]()
  shim[Symbol.dispose]()
})

const wrong = 'failed to RSA decrypt the ciphertext: crypto/rsa: decryption error'
const uniform = { status: 400, messages: [wrong] }

/** The findings of the token's self-test. */
let proven: readonly Ability[]

const findings = (): string[] =>
  readdirSync(token.directory)
    .filter((file) => file.startsWith('self-test-'))
    .map((name) => join(token.directory, name))

/** Replaces the remembered findings. */
function remember(abilities: readonly Ability[]): void {
  for (const path of findings()) {
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), proven: abilities }))
  }
}

/** The refusal of a decryption that must not succeed. */
const refusal = async (custody: Custody, key: Material, ciphertext: Uint8Array): Promise<unknown> => {
  try {
    await custody.operations.rsaCipher.decrypt(key, ciphertext)
  } catch (error) {
    return error
  }
  throw new Error('it was decrypted')
}

const outside = (key: Material, message: Uint8Array): Buffer =>
  publicEncrypt({ key: key.publicKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }, message)

describe('RSA-OAEP around the raw operation of a token', () => {
  let hsm: Hsm
  let custody: Custody
  let key: Material
  beforeAll(async () => {
    remember(proven)
    hsm = await openHsm(token)
    custody = await reopen(hsm, place)
    key = await makeKey(custody, place.database, 'rsa-2048')
  }, 60_000)
  afterAll(async () => {
    shim.clear()
    custody.close()
    await hsm[Symbol.asyncDispose]()
  })

  it('opens what OpenSSL encrypted, at every length', async () => {
    for (let length = 0; length <= 190; length += 19) {
      const message = randomBytes(length)
      expect(await custody.operations.rsaCipher.decrypt(key, outside(key, message))).toEqual(message)
      expect(
        await custody.operations.rsaCipher.decrypt(key, custody.operations.rsaCipher.encrypt(key, message)),
      ).toEqual(message)
    }
  })

  it('says the same of every answer by which a token refuses', async () => {
    const ciphertext = outside(key, Buffer.from('hello'))
    for (const rv of [CKR.ENCRYPTED_DATA_INVALID, CKR.ENCRYPTED_DATA_LEN_RANGE, CKR.DATA_INVALID, CKR.ARGUMENTS_BAD]) {
      shim.set({ groups: group.cipher, rv })
      expect(await refusal(custody, key, ciphertext)).toMatchObject(uniform)
    }
    shim.clear()
  })

  it('does not take a token that is short of memory for a wrong ciphertext', async () => {
    shim.set({ groups: group.cipher, rv: CKR.DEVICE_MEMORY })
    expect(await refusal(custody, key, outside(key, Buffer.from('hello')))).toMatchObject({ status: 503 })
    shim.clear()
  })

  it('asks the token nothing about a number that is none of the key’s', async () => {
    shim.set({ groups: group.cipher, rv: CKR.DEVICE_REMOVED })
    for (const ciphertext of [Buffer.alloc(256, 0xff), Buffer.alloc(255), Buffer.alloc(257), Buffer.alloc(0)]) {
      expect(await refusal(custody, key, ciphertext)).toMatchObject(uniform)
    }
    expect(shim.read().hit).toBe(0)
    shim.clear()
  })
})

describe('RSA-OAEP by a token’s own mechanism', () => {
  it('says the same of every answer by which a token refuses', async () => {
    remember([...proven, 'oaep-sha256'])
    await using hsm = await openHsm(token)
    using custody = await reopen(hsm, place)
    expect(hsm.capabilities.supports('oaep-sha256')).toBe(true)
    const key = await makeKey(custody, place.database, 'rsa-2048')
    // SoftHSM lacks the mechanism that it is believed to have: it refuses every ciphertext in its own way.
    for (const ciphertext of [outside(key, Buffer.from('hello')), Buffer.concat([Buffer.alloc(1), randomBytes(255)])]) {
      expect(await refusal(custody, key, ciphertext)).toMatchObject(uniform)
    }
  }, 60_000)

  it('is not used where the key’s own token was found to lack it, whatever the module is believed to have', async () => {
    remember([...proven, 'oaep-sha256'])
    await using hsm = await openHsm(token)
    using custody = await reopen(hsm, place)
    const key = await makeKey(custody, place.database, 'rsa-2048')
    const { handles } = custody.objects
    const message = Buffer.from('hello')
    const believing = new RsaCipher({ hsm, handles })
    await expect((async () => believing.decrypt(key, outside(key, message)))()).rejects.toMatchObject(uniform)
    const found = new RsaCipher({ hsm, handles, oaepInToken: false })
    expect(await found.decrypt(key, outside(key, message))).toEqual(message)
  }, 60_000)

  it('is refused by its name where the token has neither OAEP with SHA-256 nor the raw operation', async () => {
    remember(proven.filter((ability) => ability !== 'oaep-sha256' && ability !== 'rsa-raw'))
    await using hsm = await openHsm(token)
    using custody = await reopen(hsm, place)
    const key = await makeKey(custody, place.database, 'rsa-2048')
    const refused = { status: 400, messages: ['the HSM lacks CKM_RSA_PKCS_OAEP with SHA-256'] }
    expect(await refusal(custody, key, outside(key, Buffer.from('hello')))).toMatchObject(refused)
  }, 60_000)
})
