import { expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { CKR } from '../../src/hsm/constants.ts'
import { ckrOf, Failure, fateOf, HsmRefusal, outcome } from '../../src/hsm/faults.ts'
import { StaleHandle } from '../../src/hsm/handle.ts'

test.each([
  ['SESSION_HANDLE_INVALID', 'session'],
  ['OPERATION_ACTIVE', 'session'],
  ['DEVICE_MEMORY', 'retry'],
  ['KEY_HANDLE_INVALID', 'stale'],
  ['OBJECT_HANDLE_INVALID', 'stale'],
  ['DEVICE_REMOVED', 'lost'],
  ['CRYPTOKI_NOT_INITIALIZED', 'lost'],
  ['USER_NOT_LOGGED_IN', 'lost'],
  ['ENCRYPTED_DATA_INVALID', 'refuse'],
  ['WRAPPED_KEY_INVALID', 'refuse'],
  ['DEVICE_ERROR', 'doubt'],
  ['GENERAL_ERROR', 'doubt'],
  ['SESSION_COUNT', 'retry'],
  ['CANCEL', 'retry'],
  ['TEMPLATE_INCONSISTENT', 'refuse'],
] as const)('CKR_%s means %s', (name, fate) => {
  expect(fateOf(CKR[name])).toBe(fate)
})

test('a code of the vendor is doubtful; a code that nobody knows is our bug', () => {
  expect(fateOf(0x80000001)).toBe('doubt')
  expect(fateOf(0xce534351)).toBe('doubt')
  expect(fateOf(0x777)).toBe('bug')
})

test('no PIN error has a fate that repeats a call', () => {
  const pins = (['PIN_INCORRECT', 'PIN_INVALID', 'PIN_LEN_RANGE', 'PIN_EXPIRED', 'PIN_LOCKED'] as const).map(
    (n) => CKR[n],
  )
  for (const code of pins) expect(fateOf(code)).toBe('bug')
})

test('the code is found in both forms in which pkcs11js throws', () => {
  const wrapped = Object.assign(new Error('CKR_GENERAL_ERROR'), { code: 5 })
  expect(ckrOf(wrapped)).toBe(5)
  expect(ckrOf(new Error('CKR_VENDOR_DEFINED:2147483649'))).toBe(0x80000001)
  expect(ckrOf(new TypeError('Argument 2 has wrong type'))).toBeUndefined()
  expect(ckrOf(Object.assign(new Error('no'), { code: 5 }))).toBeUndefined()
  expect(ckrOf('CKR_GENERAL_ERROR:5')).toBeUndefined()
})

test('callers see a refusal, a stale handle or a 503, never a code in a text for clients', () => {
  expect(outcome(new Failure('refuse', 0x40, 'decrypt'))).toBeInstanceOf(HsmRefusal)
  expect(outcome(new Failure('refuse', 0x40, 'decrypt'))).toMatchObject({ code: 0x40 })
  expect(outcome(new Failure('stale', 0x82, 'sign'))).toBeInstanceOf(StaleHandle)
  for (const fate of ['lost', 'retry', 'session', 'stale'] as const) {
    const error = outcome(new Failure(fate, 0x32, 'sign'))
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ status: 503, retryAfterSeconds: 1 })
    expect(error.message).not.toMatch(/CKR|sign/)
  }
  expect(outcome(new Failure('bug', 0x54, 'sign'))).not.toBeInstanceOf(ApiError)
})
