import { createCipheriv, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { Capabilities } from '../../src/hsm/capabilities.ts'
import { CKK, CKM, CKR } from '../../src/hsm/constants.ts'
import { HsmRefusal } from '../../src/hsm/faults.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { group, type Shim } from './support/fault.ts'
import { openFaulty, theShim } from './support/faulty.ts'
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

/** Operations by the capability that each requires. */
const deeds: Record<string, (hsm: Hsm) => Promise<unknown>> = {
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

/** Every HMAC mechanism, and the bytes of its hash. */
const hmacs = [
  ...([
    [CKM.SHA_1_HMAC, 20],
    [CKM.SHA224_HMAC, 28],
    [CKM.SHA256_HMAC, 32],
    [CKM.SHA384_HMAC, 48],
  ] as const),
  ...([
    [CKM.SHA512_HMAC, 64],
    [CKM.SHA3_224_HMAC, 28],
    [CKM.SHA3_256_HMAC, 32],
    [CKM.SHA3_384_HMAC, 48],
  ] as const),
  [CKM.SHA3_512_HMAC, 64],
] as const

test('the shortest key of every HMAC mechanism is taken, and none that is shorter', async () => {
  await using open = await openHsm()
  const { hsm } = open
  const takes = async (type: number, hashBytes: number, keyBytes: number): Promise<boolean> => {
    const key = await hsm.create(macTemplate({ value: randomBytes(keyBytes) }))
    const signing = async () => hsm.sign(key, { type }, Buffer.from('m'), hashBytes)
    return signing().then(
      () => true,
      (error) => {
        expect(error).toBeInstanceOf(HsmRefusal)
        return false
      },
    )
  }
  for (const [type, hashBytes] of hmacs) {
    const shortest = hsm.capabilities.shortestHmacKey(type)
    if (shortest === undefined) expect([type, await takes(type, hashBytes, 64)]).toEqual([type, false])
    else {
      expect([type, await takes(type, hashBytes, shortest)]).toEqual([type, true])
      if (shortest > 16) expect([type, await takes(type, hashBytes, shortest - 1)]).toEqual([type, false])
    }
  }
  expect(hsm.capabilities.shortestHmacKey(CKM.SHA256_HMAC)).toBeLessThanOrEqual(32)
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
  const capabilities = new Capabilities({
    kwp: 0x210b,
    proven: ['aes-gcm'],
    maxSecretBytes: 256,
    hmacKeys: {},
    dialect,
  })
  expect(() => capabilities.require('eddsa')).toThrow(ApiError)
  expect(() => capabilities.require('eddsa')).toThrow('CKM_EDDSA')
  expect(() => capabilities.require('aes-gcm')).not.toThrow()
})

test.each<[string, Parameters<Shim['careless']>]>([
  ['readable', [1, 0]],
  ['extractable', [0, 1]],
])('a token that unwraps keys as %s, whatever it is told, is no use', async (_, careless) => {
  const shim = await theShim()
  shim.clear()
  shim.careless(...careless)
  try {
    await expect(openHsm({ library: shim.library, stateDirectory: newDirectory() })).rejects.toThrow(
      'the token does not keep a key that it unwraps sensitive and not extractable, as it is told to',
    )
  } finally {
    shim.careless(0, 0)
  }
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
