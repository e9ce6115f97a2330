import { createCipheriv, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CKK } from '../../src/hsm/constants.ts'
import { HsmRefusal } from '../../src/hsm/faults.ts'
import type { Handle } from '../../src/hsm/handle.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { makeStrictKek } from '../../src/hsm/strict/strict.ts'
import { aesTemplate, gcm, newAes, type OpenHsm, openHsm } from './support/open.ts'

let open: OpenHsm
let hsm: Hsm
beforeAll(async () => {
  open = await openHsm()
  hsm = open.hsm
})
afterAll(() => open[Symbol.asyncDispose]())

/** Makes a strict KEK; undefined where the token has no such thing, and then it must have said so and kept nothing. */
async function make(value?: Buffer): Promise<Handle | undefined> {
  const id = randomBytes(12)
  const refusal = await makeStrictKek(hsm, { label: 'strict', id, value }).catch((error: Error) => error)
  const found = await hsm.find({ class: 'secret', id, token: true })
  if (refusal instanceof Error) {
    expect(refusal.message).toMatch(/CKA_UNWRAP_TEMPLATE/)
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
  const leaks = [{ extractable: true }, { sensitive: false }, { sensitive: false, extractable: true }]
  for (const leak of leaks) {
    const call = async () => hsm.unwrap(kek, kwp, blob, aesTemplate(['decrypt'], leak))
    await expect(call()).rejects.toBeInstanceOf(HsmRefusal)
  }
  const copy = await hsm.unwrap(kek, kwp, blob, aesTemplate(['decrypt']))
  const iv = randomBytes(12)
  const sealed = await hsm.encrypt(key, gcm(iv), Buffer.from('m'))
  expect((await hsm.decrypt(copy, gcm(iv), sealed)).toString()).toBe('m')
  await expect((async () => hsm.wrap(kek, kwp, copy))()).rejects.toBeInstanceOf(HsmRefusal)
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
