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
