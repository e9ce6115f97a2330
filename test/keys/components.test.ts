import { createDecipheriv, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { unwrapKey, wrapKey } from '../../src/crypto/keywrap.ts'
import { CKK, CKM } from '../../src/hsm/constants.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { combine, componentCheckValue } from '../../src/keys/kek/components.ts'
import { makeKek, planKek } from '../../src/keys/kek/kek.ts'
import { Kek } from '../../src/keys/kek/keks.ts'
import { kekPurposes } from '../../src/keys/tables.ts'
import { createToken } from '../support/token.ts'
import { component } from './custodians.ts'
import { openHsm } from './support.ts'

let hsm: Hsm

beforeAll(async () => {
  hsm = await openHsm(await createToken('components'))
}, 60_000)
afterAll(() => hsm[Symbol.asyncDispose]())

// With any module: a token of another maker must be able to take over from one that died.
it.each(kekPurposes)(
  'components make the %s KEK in a token, and it opens what another token wrapped',
  async (purpose) => {
    const components = [component(3), component(5)]
    const value = combine(components)
    const made = await makeKek(hsm, planKek('0199e7a4-0000-7000-8000-000000000001', purpose), {
      components,
      strict: false,
    })
    expect(made.checkValue).toEqual(componentCheckValue(value))

    const secret = randomBytes(32)
    const kek = new Kek(hsm, made, false)
    const key = await kek.unwrap(wrapKey(value, secret), { class: 'secret', keyType: CKK.AES, usages: ['encrypt'] })
    const iv = randomBytes(12)
    const sealed = await hsm.encrypt(key, { type: CKM.AES_GCM, gcm: { iv, tagBits: 128 } }, Buffer.from('kept'))
    const host = createDecipheriv('aes-256-gcm', secret, iv).setAuthTag(sealed.subarray(-16))
    expect(Buffer.concat([host.update(sealed.subarray(0, -16)), host.final()]).toString()).toBe('kept')
    const template = { class: 'secret', keyType: CKK.AES, valueLength: 32, extractable: true, usages: [] } as const
    const blob = await kek.wrap(await hsm.generateKey(CKM.AES_KEY_GEN, template))
    expect(unwrapKey(value, blob)).toHaveLength(32)
  },
)
