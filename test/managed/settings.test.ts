import { describe, expect, test } from 'vitest'
import { mechanismOf } from '../../src/keys/managed/mechanism.ts'
import { generatedType, type Settings, settle, type Wanted } from '../../src/keys/managed/settings.ts'

/** The settings of a managed key by themselves, without a token. */

const ecdsa = '0x1041'
const least: Wanted = { library: 'softhsm', token_label: 'token', key_label: 'key', mechanism: ecdsa }
const settled = (more: Wanted, before?: Settings): Settings => settle(before, { ...least, ...more })

describe('a setting of the longest length is taken, and one more refused:', () => {
  test.each([
    ['key_label', 'keyLabel', 'x', 255, 'key_label must be 255 bytes at most'],
    ['token_label', 'tokenLabel', 'x', 32, 'token_label must be 32 bytes at most'],
    ['key_id', 'keyId', '0a', 255, 'key_id must be a CKA_ID in hexadecimal'],
  ] as const)('%s', (field, name, unit, most, text) => {
    expect(settled({ [field]: unit.repeat(most) })[name]).toBe(unit.repeat(most))
    expect(() => settled({ [field]: unit.repeat(most + 1) })).toThrow(text)
  })

  test('slot', () => {
    expect(settled({ slot: '9'.repeat(15) }).slot).toBe(999_999_999_999_999)
    expect(() => settled({ slot: '9'.repeat(16) })).toThrow('slot must be a decimal number')
  })

  test('labels by their bytes, not by their letters', () => {
    expect(settled({ key_label: `${'ü'.repeat(127)}x` }).keyLabel).toHaveLength(128)
    expect(() => settled({ key_label: 'ü'.repeat(128) })).toThrow('key_label must be 255 bytes at most')
    expect(settled({ token_label: 'ü'.repeat(16) }).tokenLabel).toHaveLength(16)
    expect(() => settled({ token_label: `${'ü'.repeat(16)}x` })).toThrow('token_label must be 32 bytes at most')
  })
})

test('max_parallel is 1 or more', () => {
  expect(settled({ max_parallel: 1 }).maxParallel).toBe(1)
  expect(() => settled({ max_parallel: 0 })).toThrow('max_parallel must be 1 or more')
})

test.each([
  ['P256', 'ecdsa-p256'],
  ['p-384', 'ecdsa-p384'],
  ['P-521', 'ecdsa-p521'],
])('the curve %s, however it is written, makes keys of type %s', (curve, type) => {
  const settings = settled({ curve, allow_generate_key: true })
  expect(generatedType(settings, mechanismOf(settings.mechanism))).toBe(type)
})

test.each([2048, 3072, 4096])('key_bits %i make RSA keys of that size', (key_bits) => {
  const settings = settled({ mechanism: '0x1', key_bits, allow_generate_key: true })
  expect(generatedType(settings, mechanismOf(settings.mechanism))).toBe(`rsa-${key_bits}`)
})

test('one of label and id, and one of slot and token label, is needed and is enough', () => {
  expect(settled({ key_label: '', key_id: '0x0A' })).toMatchObject({ keyLabel: '', keyId: '0a' })
  expect(settled({ token_label: '', slot: '0' })).toMatchObject({ tokenLabel: null, slot: 0 })
  expect(() => settled({ key_label: '' })).toThrow('one of key_label and key_id is required')
  expect(() => settled({ token_label: '' })).toThrow('one of slot and token_label is required')
})

test('what a request leaves out stays as it was', () => {
  const all: Wanted = {
    ...{ key_id: '0b', slot: '7', curve: 'P384', key_bits: 2048, usages: ['sign'], any_mount: true },
    ...{ allow_generate_key: true, allow_replace_key: true, allow_store_key: true },
    ...{ force_rw_session: true, max_parallel: 3 },
  }
  const before = settled(all)
  expect(settle(before, {})).toEqual(before)
  expect(settle(before, { max_parallel: 4 })).toEqual({ ...before, maxParallel: 4 })
})
