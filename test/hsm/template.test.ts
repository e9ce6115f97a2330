import fc from 'fast-check'
import { expect, test } from 'vitest'
import { answered } from '../../src/hsm/attribute.ts'
import { CKA, CKK } from '../../src/hsm/constants.ts'
import { type Dialect, type KeyTemplate, search, spell, spellPair, type Usage } from '../../src/hsm/template.ts'

const plain: Dialect = { modifiableOnUnwrap: true, copyableOnToken: true, pointOnUnwrap: false }
const usages: Usage[] = ['encrypt', 'decrypt', 'sign', 'verify', 'wrap', 'unwrap', 'derive']
const numbers = [CKA.ENCRYPT, CKA.DECRYPT, CKA.SIGN, CKA.VERIFY, CKA.WRAP, CKA.UNWRAP, CKA.DERIVE]
const value = (list: readonly { type: number; value?: unknown }[], type: number) => {
  const fitting = list.filter((one) => one.type === type)
  expect(fitting.length).toBeLessThan(2)
  return fitting[0]?.value
}

test('every usage of a secret key is said, true or false, whatever was asked for', () => {
  fc.assert(
    fc.property(fc.subarray(usages), fc.constantFrom('generate', 'create', 'unwrap' as const), (wanted, purpose) => {
      const list = spell({ class: 'secret', keyType: CKK.AES, usages: wanted }, purpose as 'create', plain)
      usages.forEach((usage, index) => {
        expect(value(list, numbers[index] ?? 0)).toBe(wanted.includes(usage))
      })
    }),
  )
})

test('what a template does not say about its guards is the strict choice', () => {
  const list = spell({ class: 'private', keyType: CKK.EC, usages: ['sign'] }, 'generate', plain)
  expect(value(list, CKA.SENSITIVE)).toBe(true)
  expect(value(list, CKA.EXTRACTABLE)).toBe(false)
  expect(value(list, CKA.MODIFIABLE)).toBe(false)
  expect(value(list, CKA.COPYABLE)).toBe(false)
  expect(value(list, CKA.TOKEN)).toBe(false)
  expect(value(list, CKA.PRIVATE)).toBe(true)
  expect(value(list, CKA.SIGN_RECOVER)).toBe(false)
})

test('a guard is left out only where the token proved that it refuses it', () => {
  const template: KeyTemplate = { class: 'secret', keyType: CKK.AES, usages: [] }
  const unwrapped = spell(template, 'unwrap', { ...plain, modifiableOnUnwrap: false })
  expect(value(unwrapped, CKA.MODIFIABLE)).toBeUndefined()
  expect(value(spell(template, 'generate', { ...plain, modifiableOnUnwrap: false }), CKA.MODIFIABLE)).toBe(false)
  const kept = { ...template, token: true }
  expect(value(spell(kept, 'create', { ...plain, copyableOnToken: false }), CKA.COPYABLE)).toBeUndefined()
  expect(value(spell(template, 'create', { ...plain, copyableOnToken: false }), CKA.COPYABLE)).toBe(false)
})

test('an unwrapped key takes its contents from the blob alone', () => {
  const template: KeyTemplate = {
    class: 'private',
    keyType: CKK.EC,
    usages: ['sign'],
    valueLength: 32,
    value: Buffer.alloc(32),
    ecParameters: Buffer.alloc(5),
    ecPoint: Buffer.alloc(65, 4),
  }
  const list = spell(template, 'unwrap', plain)
  for (const type of [CKA.VALUE, CKA.VALUE_LEN, CKA.EC_PARAMS, CKA.NSS_DB]) expect(value(list, type)).toBeUndefined()
  expect(value(spell(template, 'unwrap', { ...plain, pointOnUnwrap: true }), CKA.NSS_DB)).toBe(template.ecPoint)
})

test('a search names what was given and nothing else', () => {
  expect(search({ class: 'secret', label: 'a' })).toEqual([
    { type: CKA.CLASS, value: 4 },
    { type: CKA.LABEL, value: 'a' },
  ])
})

test('the public half may do the counterpart of what the private half may', () => {
  const [open, hidden] = spellPair(
    { class: 'public', keyType: CKK.RSA, usages: [] },
    { class: 'private', keyType: CKK.RSA, usages: ['sign', 'decrypt'] },
    plain,
  )
  expect([CKA.VERIFY, CKA.ENCRYPT, CKA.WRAP].map((type) => value(open, type))).toEqual([true, true, false])
  expect([CKA.SIGN, CKA.DECRYPT, CKA.UNWRAP].map((type) => value(hidden, type))).toEqual([true, true, false])
})

test('a point is read bare, whether the token wraps it in an OCTET STRING or not', () => {
  const size = fc.constantFrom(32, 57, 65, 97, 133)
  const bare = size.chain((length) => fc.uint8Array({ minLength: length, maxLength: length }))
  fc.assert(
    fc.property(bare, (bytes) => {
      const point = Buffer.from(bytes)
      if (point.length > 32) point[0] = 4
      const header = point.length > 127 ? [4, 0x81, point.length] : [4, point.length]
      for (const form of [point, Buffer.concat([Buffer.from(header), point])]) {
        expect(answered(['ecPoint'], [form]).ecPoint).toEqual(point)
      }
    }),
  )
})
