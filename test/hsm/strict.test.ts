import { createCipheriv, randomBytes } from 'node:crypto'
import { readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CKK, CKM } from '../../src/hsm/constants.ts'
import { HsmRefusal } from '../../src/hsm/faults.ts'
import type { Handle } from '../../src/hsm/handle.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { strictHelper } from '../../src/hsm/strict/helper.ts'
import { makeStrictKek } from '../../src/hsm/strict/strict.ts'
import type { KeyTemplate, Usage } from '../../src/hsm/template.ts'
import { aesTemplate, gcm, newAes, newDirectory, type OpenHsm, openHsm } from './support/open.ts'

let open: OpenHsm
let hsm: Hsm
beforeAll(async () => {
  open = await openHsm()
  hsm = open.hsm
})
afterAll(() => open[Symbol.asyncDispose]())

/** Makes a strict KEK; undefined if the token does not support one, which it must then report, and keep nothing. */
async function make(value?: Buffer): Promise<Handle | undefined> {
  const id = randomBytes(12)
  const refusal = await makeStrictKek(hsm, { label: 'strict', id, value }).catch((error: Error) => error)
  const found = await hsm.find({ class: 'secret', id, token: true })
  if (refusal instanceof Error) {
    expect(refusal.message).toMatch(/CKA_UNWRAP_TEMPLATE/)
    // SoftHSM supports it.
    expect(process.env.STRONGROOM_TEST_HSM).toBe('nss')
    expect(found).toEqual([])
    return undefined
  }
  expect(found).toHaveLength(1)
  return found[0]
}

test('a strict KEK wraps and unwraps, and the token shows nothing else that it may do', async () => {
  const kek = await make()
  if (kek === undefined) return
  const names = [
    'label',
    'wrap',
    'unwrap',
    'encrypt',
    'decrypt',
    'sign',
    'modifiable',
    'copyable',
    'extractable',
  ] as const
  expect(await hsm.attributes(kek, [...names, 'local'])).toEqual({
    label: 'strict',
    wrap: true,
    unwrap: true,
    encrypt: false,
    decrypt: false,
    sign: false,
    modifiable: false,
    copyable: false,
    extractable: false,
    local: true,
  })
  await expect((async () => hsm.encrypt(kek, gcm(randomBytes(12)), Buffer.alloc(1)))()).rejects.toBeInstanceOf(
    HsmRefusal,
  )
})

test('the token itself lets nothing out again that it unwraps under a strict KEK', async () => {
  const kek = await make()
  if (kek === undefined) return
  const { kwp } = hsm.capabilities
  const key = await newAes(hsm, ['encrypt', 'decrypt'], { extractable: true })
  const blob = await hsm.wrap(kek, kwp, key)
  const leaks: readonly Partial<KeyTemplate>[] = [
    ...[{ extractable: true }, { sensitive: false }, { sensitive: false, extractable: true }],
    // Keys derived from it, or unwrapped by it, would be under no template.
    ...([{ usages: ['derive'] }, { usages: ['decrypt', 'unwrap'] }, { modifiable: true }] as const),
  ]
  for (const leak of leaks) {
    const call = async () => hsm.unwrap(kek, kwp, blob, aesTemplate(['decrypt'], leak))
    await expect(call(), JSON.stringify(leak)).rejects.toBeInstanceOf(HsmRefusal)
  }
  const copy = await hsm.unwrap(kek, kwp, blob, aesTemplate(['decrypt']))
  const iv = randomBytes(12)
  const sealed = await hsm.encrypt(key, gcm(iv), Buffer.from('m'))
  expect((await hsm.decrypt(copy, gcm(iv), sealed)).toString()).toBe('m')
  await expect((async () => hsm.wrap(kek, kwp, copy))()).rejects.toBeInstanceOf(HsmRefusal)
})

test('a private key that a strict KEK unwraps signs, neither derives nor unwraps, and is not changed or shown', async () => {
  const kek = await make()
  if (kek === undefined) return
  const { kwp } = hsm.capabilities
  const ecParameters = Buffer.from('06082a8648ce3d030107', 'hex')
  const pair = await hsm.generateKeyPair(
    CKM.EC_KEY_PAIR_GEN,
    { class: 'public', keyType: CKK.EC, ecParameters, usages: [] },
    { class: 'private', keyType: CKK.EC, usages: ['sign'], extractable: true },
  )
  const blob = await hsm.wrap(kek, kwp, pair.privateKey)
  const unwrap = async (usages: readonly Usage[], more: Partial<KeyTemplate> = {}) =>
    hsm.unwrap(kek, kwp, blob, { class: 'private', keyType: CKK.EC, usages, ...more })
  expect(await hsm.sign(await unwrap(['sign']), { type: CKM.ECDSA }, randomBytes(32), 64)).toHaveLength(64)
  for (const usage of ['derive', 'unwrap'] as const) {
    await expect(unwrap(['sign', usage]), usage).rejects.toBeInstanceOf(HsmRefusal)
  }
  const leaks: readonly Partial<KeyTemplate>[] = [{ modifiable: true }, { extractable: true }, { sensitive: false }]
  for (const leak of leaks)
    await expect(unwrap(['sign'], leak), JSON.stringify(leak)).rejects.toBeInstanceOf(HsmRefusal)
})

test('what the server unwraps wraps nothing, which no template can forbid to private keys', async () => {
  const kek = await newAes(hsm, ['wrap', 'unwrap'])
  const { kwp } = hsm.capabilities
  const blob = await hsm.wrap(kek, kwp, await newAes(hsm, ['encrypt'], { extractable: true }))
  const copy = await hsm.unwrap(kek, kwp, blob, aesTemplate(['encrypt', 'decrypt']))
  expect(await hsm.attributes(copy, ['wrap'])).toEqual({ wrap: false })
})

test('the helper is never compiled by the server: where it is missing or old, set-up is named', () => {
  const directory = newDirectory()
  expect(() => strictHelper(directory)).toThrow(`${join(directory, 'strict-kek')} is missing`)
  expect(() => strictHelper(directory)).toThrow('node scripts/setup.mjs')
  writeFileSync(join(directory, 'strict-kek'), '')
  utimesSync(join(directory, 'strict-kek'), 1, 1)
  expect(() => strictHelper(directory)).toThrow('is older than its source')
  expect(readdirSync(directory)).toEqual(['strict-kek'])
})

test('a strict KEK from components is the key that the components say', async () => {
  const value = randomBytes(32)
  const kek = await make(value)
  if (kek === undefined) return
  const secret = randomBytes(24)
  const key = await hsm.create({
    class: 'secret',
    keyType: CKK.GENERIC_SECRET,
    usages: [],
    value: secret,
    extractable: true,
  })
  const cipher = createCipheriv('id-aes256-wrap-pad', value, Buffer.from('a65959a6', 'hex'))
  const expected = Buffer.concat([cipher.update(secret), cipher.final()])
  expect(await hsm.wrap(kek, hsm.capabilities.kwp, key)).toEqual(expected)
})

test('a value of the wrong length makes no KEK', async () => {
  const id = randomBytes(12)
  await expect(makeStrictKek(hsm, { label: 'strict', id, value: randomBytes(16) })).rejects.toThrow()
  await expect(makeStrictKek(hsm, { label: 'strict', id: Buffer.alloc(0) })).rejects.toThrow()
  expect(await hsm.find({ class: 'secret', id, token: true })).toEqual([])
})
