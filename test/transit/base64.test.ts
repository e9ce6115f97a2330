import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeBase64 } from '../../src/crypto/base64.ts'

const fault = (text: string) => {
  try {
    decodeBase64(text)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

describe('strict base64', () => {
  test('decoding an encoded text gives it back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(decodeBase64(Buffer.from(bytes).toString('base64'))).toEqual(Buffer.from(bytes))
      }),
    )
  })

  test('no text with a character outside the alphabet is decoded', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        fc.pre(/[^A-Za-z0-9+/=\r\n]/.test(text))
        expect(fault(text)).toMatch(/^illegal base64 data at input byte \d+$/)
      }),
    )
  })

  test('what is decoded at once is what the alphabet and its padding allow, however long it is', () => {
    const alphabet = fc.constantFrom(...'AZaz09+/', '=', '==', '-', '_', ' ', '\n', 'é', '\u0141', '\ud800', '=AAA')
    const parts = fc.oneof({ weight: 9, arbitrary: fc.constant('QUJD') }, { weight: 1, arbitrary: alphabet })
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 60 }), (some) => {
        const text = some.join('')
        const digits = text.replaceAll(/[\r\n]/g, '')
        const isWhole = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(digits)
        expect(fault(text) === undefined).toBe(isWhole)
        if (isWhole) expect(decodeBase64(text)).toEqual(Buffer.from(digits, 'base64'))
      }),
      { numRuns: 2000 },
    )
  })

  test.each([
    ['!!!!', 0],
    ['YWJj-', 4],
    ['YWJjZA', 4],
    ['YWJjZA=', 7],
    ['YWJjZA==x', 8],
    ['YW=j', 3],
    ['Y===', 1],
    ['=', 0],
    ['\u0141\u0141\u0141\u0141', 0],
    ['YWJ_', 3],
    ['YWJ-', 3],
  ])('%j is refused at byte %i, where the reference refuses it', (text, at) => {
    expect(fault(text)).toBe(`illegal base64 data at input byte ${at}`)
  })

  test('line breaks inside are skipped, as the reference does', () => {
    expect(decodeBase64('YWJj\r\nZGVm\n').toString()).toBe('abcdef')
  })

  test('the empty text is the empty value', () => {
    expect(decodeBase64('')).toHaveLength(0)
  })
})
