import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { parseJsonObject } from '../../src/request/json/parse.ts'

const json = (text: string) => parseJsonObject(Buffer.from(text))
const reason = (text: string): string => {
  try {
    json(text)
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
  return 'accepted'
}

describe('a number of a JSON body', () => {
  test.each([
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['123456789012345678901234567890', '123456789012345678901234567890'],
    ['-1.2345678901234567e-100', -1.2345678901234567e-100],
    ['9'.repeat(33), '9'.repeat(33)],
    [`0.${'1'.repeat(40)}`, `0.${'1'.repeat(40)}`],
    ['1000.0', '1000.0'],
    ['1e3', '1e3'],
    ['1E+400', '1E+400'],
    ['-0', '-0'],
    ['-0.50', '-0.50'],
    ['9007199254740992', 9007199254740992],
    ['1234567890123456', 1234567890123456],
    ['1.5', 1.5],
    ['-7', -7],
    ['0', 0],
  ])('%s is %j: text where a double would not give it back', (number, value) => {
    for (const around of [number, ` ${number}\n`]) {
      expect(json(`{"a":${around},"b":[${around},{"c":${around}}]}`)).toEqual({ a: value, b: [value, { c: value }] })
    }
  })

  test('in a string, or in the name of a member, is not touched', () => {
    expect(json('{"1.0":"1.0","a\\"1.0":"\\\\","b":1.0}')).toEqual({ '1.0': '1.0', 'a"1.0': '\\', b: '1.0' })
    expect(json('{"é":"é","b":1.0}')).toEqual({ é: 'é', b: '1.0' })
  })

  test('is refused at its place if it is invalid, whatever precedes it', () => {
    expect(reason('{"a":1.0,"b":01}')).toBe('failed to decode JSON input: invalid syntax at character 14')
    expect(reason('{"a":1.0')).toBe('failed to decode JSON input: unexpected EOF')
    for (const text of ['{1.0:2}', '{1.0 :2}', '{"a":1.}', '{"a":1.0.0}', '{"a":1e}', '{"a":--1.0}', '{"a":1.0 1.0}']) {
      expect(reason(text)).toMatch(/^failed to decode JSON input: invalid syntax/)
    }
  })

  test('never makes valid JSON of an invalid text, nor another value', () => {
    const piece = fc.constantFrom(
      ...['{', '}', '[', ']', ':', ',', '"', '\\', ' ', '-', '.', 'e', '+', '0', '1', '1.0', '"a":'],
    )
    const parsed = (read: () => unknown): string => {
      try {
        return JSON.stringify(read(), (_, value) =>
          typeof value === 'string' && /^-?\d/.test(value) ? Number(value) : value,
        )
      } catch {
        return 'refused'
      }
    }
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = `{"a":${pieces.join('')}}`
        expect(parsed(() => json(text))).toBe(parsed(() => JSON.parse(text)))
      }),
      { numRuns: 5000 },
    )
  })

  test('of a megabyte is read, and refused where it has no end', () => {
    const digits = '1'.repeat(2 ** 20 - 10)
    expect(json(`{"a":${digits}}`)).toEqual({ a: digits })
    expect(reason(`{"a":${digits}.}`)).toMatch(/^failed to decode JSON input: invalid syntax/)
    expect(reason(`{"a":0${digits}}`)).toMatch(/^failed to decode JSON input: invalid syntax/)
  })
})
