import { createCipheriv, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { Capabilities } from '../../src/hsm/capabilities.ts'
import { CKK, CKM, CKR } from '../../src/hsm/constants.ts'
import { HsmRefusal } from '../../src/hsm/faults.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { group } from './support/fault.ts'
import { openFaulty } from './support/faulty.ts'
import { aesTemplate, hmac256, macTemplate, newAes, newDirectory, openHsm } from './support/open.ts'

test('the proven number is RFC 5649: OpenSSL wraps what the token unwraps; the other number is not', async () => {
  await using open = await openHsm()
  const { hsm } = open
  const { kwp } = hsm.capabilities
  const other = kwp === CKM.AES_KEY_WRAP_KWP ? CKM.AES_KEY_WRAP_PAD : CKM.AES_KEY_WRAP_KWP
  const value = randomBytes(32)
  const kek = await hsm.create(aesTemplate(['wrap', 'unwrap'], { value }))
  const cipher = createCipheriv('id-aes256-wrap-pad', value, Buffer.from('a65959a6', 'hex'))
  const secret = randomBytes(33)
  const blob = Buffer.concat([cipher.update(secret), cipher.final()])
  const key = await hsm.unwrap(kek, kwp, blob, macTemplate({ sensitive: false, extractable: true }))
  expect(await hsm.attributes(key, ['value'])).toEqual({ value: secret })
  await expect((async () => hsm.unwrap(kek, other, blob, macTemplate()))()).rejects.toBeInstanceOf(HsmRefusal)
})

/** Something to do for which a capability is the condition. */
const deeds: Record<string, (hsm: Hsm) => Promise<unknown>> = {
  sha3: async (hsm) =>
    hsm.sign(
      await hsm.create(macTemplate({ value: randomBytes(64) })),
      { type: CKM.SHA3_256_HMAC },
      Buffer.from('m'),
      32,
    ),
  eddsa: async (hsm) => newEd25519(hsm),
  'wrap-ed25519': async (hsm) => {
    const { privateKey } = await newEd25519(hsm)
    return hsm.wrap(await newAes(hsm, ['wrap', 'unwrap']), hsm.capabilities.kwp, privateKey)
  },
  'data-object': async (hsm) =>
    hsm.destroy(await hsm.create({ class: 'data', token: true, label: 'x', usages: [], value: Buffer.from('v') })),
}
const newEd25519 = (hsm: Hsm) =>
  hsm.generateKeyPair(
    CKM.EC_EDWARDS_KEY_PAIR_GEN,
    { class: 'public', keyType: CKK.EC_EDWARDS, ecParameters: Buffer.from('06032b6570', 'hex'), usages: [] },
    { class: 'private', keyType: CKK.EC_EDWARDS, usages: ['sign'], extractable: true },
  )

test.each(Object.entries(deeds))('%s is done where it is supported and refused where it is not', async (name, deed) => {
  await using open = await openHsm()
  const { hsm } = open
  const ability = name as Parameters<Capabilities['supports']>[0]
  if (hsm.capabilities.supports(ability)) await deed(hsm)
  else {
    await expect(deed(hsm)).rejects.toBeInstanceOf(HsmRefusal)
    expect(() => hsm.capabilities.require(ability)).toThrow(hsm.capabilities.missing(ability))
    expect(hsm.healthy).toBe(true)
  }
})

test('secrets up to the proven length survive a wrap, as every HMAC key must', async () => {
  await using open = await openHsm()
  const { hsm } = open
  const { kwp, maxSecretBytes } = hsm.capabilities
  expect(maxSecretBytes).toBeGreaterThanOrEqual(64)
  const kek = await newAes(hsm, ['wrap', 'unwrap'])
  for (const bytes of [32, 33, 64, maxSecretBytes]) {
    const value = randomBytes(bytes)
    const key = await hsm.create(macTemplate({ value, extractable: true }))
    const copy = await hsm.unwrap(kek, kwp, await hsm.wrap(kek, kwp, key), macTemplate())
    expect(await hsm.sign(copy, hmac256, value, 32)).toEqual(await hsm.sign(key, hmac256, value, 32))
  }
})

test('what every token here must have is proven, and nothing is left behind by the proof', async () => {
  await using open = await openHsm({ stateDirectory: newDirectory() })
  const { hsm } = open
  const needed = ['aes-gcm', 'hmac-sha256', 'ecdsa-p256', 'ecdsa-p521', 'rsa-pkcs1', 'rsa-pss', 'rsa-raw'] as const
  const wrapped = ['wrap-aes', 'wrap-generic', 'wrap-p256', 'wrap-p384', 'wrap-p521', 'wrap-rsa', 'digest-key'] as const
  for (const ability of [...needed, ...wrapped])
    expect([ability, hsm.capabilities.supports(ability)]).toEqual([ability, true])
  expect(await hsm.find({ token: true, label: 'strongroom self-test' })).toEqual([])
  expect(await hsm.find({ token: false })).toEqual([])
})

test('a refusal names the mechanism', () => {
  const dialect = { modifiableOnUnwrap: true, copyableOnToken: true, pointOnUnwrap: false }
  const capabilities = new Capabilities({ kwp: 0x210b, proven: ['aes-gcm'], maxSecretBytes: 256, dialect })
  expect(() => capabilities.require('eddsa')).toThrow(ApiError)
  expect(() => capabilities.require('eddsa')).toThrow('CKM_EDDSA')
  expect(() => capabilities.require('aes-gcm')).not.toThrow()
})

test('an ordinary start tests nothing again; a state file that is broken only costs a test', async () => {
  const stateDirectory = newDirectory()
  const pairsOf = async (): Promise<number> => {
    const open = await openFaulty({ stateDirectory })
    const { pairs } = open.shim.read()
    await open[Symbol.asyncDispose]()
    return pairs
  }
  const first = await pairsOf()
  expect(first).toBeGreaterThan(3)
  expect(await pairsOf()).toBe(first)
  const [name = ''] = readdirSync(stateDirectory).filter((file) => file.startsWith('self-test-'))
  const kept = readFileSync(`${stateDirectory}/${name}`, 'utf8')
  writeFileSync(`${stateDirectory}/${name}`, kept.slice(0, 20))
  expect(await pairsOf()).toBeGreaterThan(first)
  expect(readFileSync(`${stateDirectory}/${name}`, 'utf8')).toBe(kept)
})

test('a token that goes away during its test proves nothing and nothing is kept', async () => {
  const { shim } = await openFaulty({ stateDirectory: newDirectory() }).then(async (open) => {
    await open[Symbol.asyncDispose]()
    return open
  })
  const stateDirectory = newDirectory()
  shim.set({ groups: group.digest, rv: CKR.DEVICE_REMOVED })
  const opening = openFaultyWithout(stateDirectory, shim.library)
  await expect(opening).rejects.toMatchObject({ status: 503 })
  shim.clear()
  expect(readdirSync(stateDirectory)).toEqual([])
})
const openFaultyWithout = (stateDirectory: string, library: string) => openHsm({ stateDirectory, library })
