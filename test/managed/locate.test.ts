import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CKM } from '../../src/hsm/constants.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { locate, type Wanted } from '../../src/keys/managed/locate.ts'
import { aesTemplate } from '../hsm/support/open.ts'
import { openHsm } from '../keys/support.ts'
import { createTestedToken } from '../support/template/keys.ts'

/** What is believed of a key in somebody else's token. */

let hsm: Hsm
beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('locate'))
  const aes = (label: string) => aesTemplate(['encrypt', 'decrypt'], { token: true, label })
  await hsm.generateKey(CKM.AES_KEY_GEN, { ...aes('generated'), valueLength: 32 })
  await hsm.create({ ...aes('brought'), value: randomBytes(32) })
}, 60_000)
afterAll(() => hsm?.[Symbol.asyncDispose]())

const wanted = (keyLabel: string): Wanted => {
  return { name: 'key', keyLabel, keyId: '', mechanism: CKM.AES_GCM, keyBits: 256 }
}
const made = { local: true, neverExtractable: true, alwaysSensitive: true, everPlaintext: false }
const unknown = { local: false, neverExtractable: false, alwaysSensitive: false, everPlaintext: true }

/** The same token, which does not show these attributes. */
const hiding = (...hidden: readonly string[]): Hsm =>
  new Proxy(hsm, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]) => {
        const given: unknown = await value.apply(target, args)
        if (name !== 'attributes') return given
        return Object.fromEntries(Object.entries(given as object).filter(([attribute]) => !hidden.includes(attribute)))
      }
    },
  })

test('a key that the token made itself, and never showed, has that history', async () => {
  expect((await locate(hsm, wanted('generated'), true))?.history).toEqual(made)
})

test('a key that was brought there has been in the clear', async () => {
  expect((await locate(hsm, wanted('brought'), true))?.history).toEqual(unknown)
})

test.each([
  ['local', { ...made, local: false, everPlaintext: true }],
  ['neverExtractable', { ...made, neverExtractable: false }],
  ['alwaysSensitive', { ...made, alwaysSensitive: false }],
])('nothing good is believed of a key whose %s the token does not show', async (attribute, history) => {
  expect((await locate(hiding(attribute), wanted('generated'), true))?.history).toEqual(history)
})

test.each(['sensitive', 'extractable'])(
  'strict mode takes no key whose %s the token does not show',
  async (attribute) => {
    await expect(locate(hiding(attribute), wanted('generated'), true)).rejects.toThrow('would let this key leave')
    expect((await locate(hiding(attribute), wanted('generated'), false))?.history).toEqual(made)
  },
)
