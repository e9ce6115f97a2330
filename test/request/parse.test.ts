import { Type } from 'typebox'
import { expect, test } from 'vitest'
import { boolean, commaList, duration, integer, map, raw, text } from '../../src/field.ts'
import { compileFields, convertFields, normaliseNames } from '../../src/request/parse.ts'

const fields = compileFields(
  {
    type: text({ about: 'a', values: ['one', 'two'] }),
    bytes: integer({ about: 'a', minimum: 1, maximum: 32 }),
    hash: text({ about: 'a', aliases: ['hash_algorithm', 'algorithm'] }),
    derived: boolean({ about: 'a' }),
    ttl: duration({ about: 'a' }),
    names: commaList({ about: 'a' }),
    metadata: map({ about: 'a' }),
    items: raw({ about: 'a' }),
    limit: integer({ about: 'a', initial: 7 }),
  },
  ['name'],
)
const read = (input: Record<string, unknown>) => {
  const named = normaliseNames(fields, input)
  return { body: { ...convertFields(fields, named.values) }, warnings: named.warnings }
}

test('values come out converted, and only those that were sent', () => {
  expect(read({ bytes: '0x10', derived: 'T', ttl: '1h', names: 'a, b', items: [{ a: null }], type: 'two' })).toEqual({
    body: { bytes: 16, derived: true, ttl: 3600, names: ['a', 'b'], items: [{ a: null }], type: 'two' },
    warnings: [],
  })
})

test('an explicit null is absent', () => {
  expect(read({ type: null, bytes: null, hash: null, algorithm: 'x', name: null, items: null })).toEqual({
    body: { hash: 'x' },
    warnings: [],
  })
})

test('an explicit null stands for the initial value of a field that has one', () => {
  expect(read({ limit: null })).toEqual({ body: { limit: 7 }, warnings: [] })
  expect(read({})).toEqual({ body: {}, warnings: [] })
})

test('of a name and its aliases the name counts, then the first declared alias', () => {
  expect(read({ algorithm: 'c', hash_algorithm: 'b', hash: 'a' }).body).toEqual({ hash: 'a' })
  expect(read({ algorithm: 'c', hash_algorithm: 'b' }).body).toEqual({ hash: 'b' })
  expect(read({ algorithm: 'c' })).toEqual({ body: { hash: 'c' }, warnings: [] })
})

test('unknown parameters and those the URL gives are left out with the reference’s warnings', () => {
  expect(read({ foo: 1, bar: null, name: 'other', derived: true })).toEqual({
    body: { derived: true },
    warnings: [
      'Endpoint ignored these unrecognized parameters: [bar foo]',
      "Endpoint replaced the value of these parameters with the values captured from the endpoint's path: [name]",
    ],
  })
})

test('a flood of unknown names is not sent back whole', () => {
  const input = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`n${i}${'x'.repeat(500)}`, 1]))
  expect(read(input).warnings.join('').length).toBeLessThan(20_000)
})

test('members named like parts of every object are unknown parameters and nothing else', () => {
  const { body, warnings } = read(
    JSON.parse('{"__proto__":{"derived":true},"constructor":1,"toString":2,"hasOwnProperty":3}'),
  )
  expect(body).toEqual({})
  expect(warnings).toEqual([
    'Endpoint ignored these unrecognized parameters: [__proto__ constructor hasOwnProperty toString]',
  ])
})

test.each([
  [
    { derived: 'S3CRET' },
    'error converting input for field "derived": expected a boolean (true or false), got other text',
  ],
  [{ bytes: [] }, 'error converting input for field "bytes": expected an integer, got a list'],
  [{ ttl: '-5' }, `error converting input for field "ttl": cannot provide negative value '-5'`],
  [{ algorithm: {} }, 'error converting input for field "hash": expected a string, got an object'],
  [{ bytes: 0 }, 'field "bytes" must be at least 1'],
  [{ bytes: 33 }, 'field "bytes" must be at most 32'],
  [{ type: 'S3CRET' }, 'field "type" must be one of one, two'],
])('%j is refused, naming the field and its bounds', (input, reason) => {
  expect(() => read(input)).toThrow(`Field validation failed: ${reason}`)
})

test('a declaration that is not made of fields, or names one twice, fails at start', () => {
  expect(() => compileFields({ a: Type.String() }, [])).toThrow('field a was not made by field.ts')
  expect(() => compileFields({ a: text({ about: '' }), b: text({ about: '', aliases: ['a'] }) }, [])).toThrow(
    'answer to the name a',
  )
})
