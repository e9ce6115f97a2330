import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Lenient } from '../../src/field.ts'
import { convert } from '../../src/request/convert.ts'

const as = (kind: Lenient, value: unknown): unknown => {
  try {
    return convert(kind, value, (reason) => {
      throw new RangeError(reason)
    })
  } catch (error) {
    if (error instanceof RangeError) return `refused: ${error.message}`
    throw error
  }
}
const refused = (kind: Lenient, value: unknown) => String(as(kind, value)).startsWith('refused: ')

test.each([
  ...['1', 't', 'T', 'true', 'TRUE', 'True', 1, -7, 0.5, true].map((value) => [value, true]),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False', '', 0, false].map((value) => [value, false]),
])('%j is the boolean %j', (value, expected) => {
  expect(as('boolean', value)).toBe(expected)
})

test.each(['yes', 'tRUE', ' true', 'on', [], {}, [true]])('%j is no boolean', (value) => {
  expect(refused('boolean', value)).toBe(true)
})

test.each([
  ['0x1F', 31],
  ['0X1f', 31],
  ['017', 15],
  ['0o17', 15],
  ['0b101', 5],
  ['-12', -12],
  ['+12', 12],
  ['', 0],
  ['0', 0],
  ['-0', 0],
  [-0, 0],
  [true, 1],
  [false, 0],
  [1e3, 1000],
  ['9007199254740991', 9007199254740991],
])('%j is the integer %j', (value, expected) => {
  expect(as('integer', value)).toBe(expected)
})

test.each([1.5, '1.5', '09', '1e3', ' 1', '0x', '--1', 'abc', [], {}, '١', '1_000'])('%j is no integer', (value) => {
  expect(refused('integer', value)).toBe(true)
})

test('an integer that a double would round is refused, never rounded', () => {
  for (const text of ['9007199254740993', '-9007199254740993', '18446744073709551615', '0xffffffffffffffff', '1e400']) {
    expect(refused('integer', text)).toBe(true)
    expect(refused('integer', JSON.parse(text.startsWith('0x') ? '9007199254740993' : text))).toBe(true)
  }
})

test.each([
  ['9007199254740993', 'the number is out of range'],
  ['-9007199254740993', 'the number is out of range'],
  [9007199254740992, 'the number is out of range'],
  ['9'.repeat(81), 'the number is out of range'],
  [`0x${'f'.repeat(1_000_000)}`, 'the number is out of range'],
  ['1000.0', 'expected an integer without fraction or exponent'],
  ['1e3', 'expected an integer without fraction or exponent'],
  [1.5, 'expected an integer without fraction or exponent'],
  ['09', 'expected an integer, got a string'],
])('%j is not an integer, and the refusal gives the reason: %s', (value, reason) => {
  expect(as('integer', value)).toBe(`refused: ${reason}`)
})

test('every safe integer is itself, as number, decimal, hexadecimal and octal text', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (number) => {
      const sign = number < 0 ? '-' : ''
      const size = Math.abs(number)
      for (const form of [number, String(number), `${sign}0x${size.toString(16)}`, `${sign}0${size.toString(8)}`]) {
        expect(as('integer', form)).toBe(number)
      }
    }),
  )
})

test('any string stays unchanged', () => {
  fc.assert(fc.property(fc.string(), (text) => as('string', text) === text))
  expect(as('string', 12)).toBe('12')
  expect(as('string', 1.5)).toBe('1.5')
  expect([as('string', true), as('string', false)]).toEqual(['1', '0'])
  for (const value of [[], {}, ['a']]) expect(refused('string', value)).toBe(true)
})

test.each([
  [90, 90],
  ['90', 90],
  ['1h30m', 5400],
  ['250ms', 1],
  ['1500ms', 1],
  ['1.5h', 5400],
  ['.5m', 30],
  ['7d', 604800],
  ['0', 0],
  ['', 0],
  ['-0s', 0],
  ['+10s', 10],
  ['1µs', 1],
  ['0ms', 0],
  ['2562047h47m16s', 9223372036],
])('%j lasts %j seconds', (value, expected) => {
  expect(as('duration', value)).toBe(expected)
})

test.each(['1.5', 1.5, '1x', '1h30', 'd', '1.5d', '1d12h', 'h', '.s', true, [], {}, '9223372037s', 1e300, Number.NaN])(
  '%j is no duration',
  (value) => {
    expect(refused('duration', value)).toBe(true)
  },
)

test('a negative duration is refused in the words of the reference', () => {
  expect(as('duration', -5)).toBe("refused: cannot provide negative value '-5'")
  expect(as('duration', '-1h')).toBe("refused: cannot provide negative value '-1h'")
})

test('hours, minutes and seconds add up', () => {
  const part = fc.nat(1000)
  fc.assert(
    fc.property(part, part, part, (h, m, s) => {
      expect(as('duration', `${h}h${m}m${s}s`)).toBe(h * 3600 + m * 60 + s)
      expect(as('duration', `${s}s${h}h`)).toBe(h * 3600 + s)
    }),
  )
})

test('a time is RFC 3339 text or seconds, and a day that no calendar has is refused', () => {
  expect(as('time', '2024-02-29T12:00:00Z')).toBe(Date.UTC(2024, 1, 29, 12))
  expect(as('time', '2024-02-29T12:00:00.123456789+01:00')).toBe(Date.UTC(2024, 1, 29, 11, 0, 0, 123))
  expect(as('time', '2024-02-29t12:00:00z')).toBe(Date.UTC(2024, 1, 29, 12))
  expect(as('time', 1700000000)).toBe(1700000000000)
  expect(as('time', '1700000000')).toBe(1700000000000)
  for (const value of [
    '2023-02-29T12:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-01-01',
    'now',
    '2024-01-01T25:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T23:00:00+24:00',
    {},
    true,
  ]) {
    expect(refused('time', value)).toBe(true)
  }
})

test('lists: a scalar is a list of one, commas part a comma list, nothing is the empty comma list', () => {
  expect(as('list', 'a,b')).toEqual(['a,b'])
  expect(as('list', ['a', 1, true])).toEqual(['a', '1', '1'])
  expect(as('commaList', ' a, b ,c')).toEqual(['a', 'b', 'c'])
  expect(as('commaText', ' a, b ,c')).toEqual(['a', 'b', 'c'])
  expect(refused('commaText', ['a'])).toBe(true)
  expect(as('commaList', ['a,b ', 7])).toEqual(['a,b', '7'])
  expect(as('commaList', '')).toEqual([])
  expect(as('commaList', 7)).toEqual(['7'])
  for (const value of [[['a']], [{}], {}, [null]]) {
    expect(refused('list', value)).toBe(true)
    expect(refused('commaList', value)).toBe(true)
  }
})

test('maps: an object, or pairs with an equals sign; a key named __proto__ is only a key', () => {
  expect({ ...(as('map', { a: 1, b: 'x' }) as object) }).toEqual({ a: '1', b: 'x' })
  expect({ ...(as('map', ['a=1', 'b=c=d']) as object) }).toEqual({ a: '1', b: 'c=d' })
  expect({ ...(as('map', 'a=') as object) }).toEqual({ a: '' })
  for (const value of [['a'], '=a', { a: {} }, 7]) expect(refused('map', value)).toBe(true)
  const evil = as('map', JSON.parse('{"__proto__":"x","constructor":"y"}')) as Record<string, string>
  expect(Object.keys(evil)).toEqual(['__proto__', 'constructor'])
  expect(Object.getPrototypeOf(evil)).toBe(null)
  expect(({} as Record<string, unknown>).x).toBe(undefined)
})

test('no conversion of any JSON value throws anything but its refusal, or repeats a text it was given', () => {
  const kinds: Lenient[] = ['string', 'integer', 'boolean', 'duration', 'list', 'commaList', 'map', 'time', 'raw']
  fc.assert(
    fc.property(fc.constantFrom(...kinds), fc.jsonValue(), (kind, value) => {
      as(kind, value)
    }),
    { numRuns: 1000 },
  )
  for (const kind of kinds) {
    const outcome = as(kind, 'S3CRET-plaintext')
    if (String(outcome).startsWith('refused')) expect(outcome).not.toContain('S3CRET')
  }
})
