import { expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { bodyInput, methodOf, queryInput } from '../../src/request/input.ts'
import { parseJsonObject } from '../../src/request/json/parse.ts'

const failure = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    if (error instanceof ApiError) return `${error.status} ${error.message}`
    throw error
  }
  return 'accepted'
}
const json = (text: string) => parseJsonObject(Buffer.from(text)) as Readonly<Record<string, unknown>>
const query = (text: string) => new URLSearchParams(text)

test.each(['', ' \n', 'null', '{}', ' { } '])('%j is a body without parameters', (text) => {
  expect(json(text)).toEqual({})
})

test.each([
  ['[1]', 'json: cannot unmarshal array into Go value of type map[string]interface {}'],
  ['"S3CRET"', 'json: cannot unmarshal string into Go value of type map[string]interface {}'],
  ['7', 'json: cannot unmarshal number into Go value of type map[string]interface {}'],
  ['true', 'json: cannot unmarshal bool into Go value of type map[string]interface {}'],
  ['{"plaintext":"S3CRET"', 'unexpected EOF'],
  ['{"plaintext":"S3CRET', 'unexpected EOF'],
  ['S3CRET', 'invalid syntax'],
  ['{"a":S3CRET}', 'invalid syntax'],
  ['{"a":1} S3CRET', 'invalid syntax at character 8'],
  ["{'a':'S3CRET'}", 'invalid syntax at character 1'],
  ['\ufeff{}', 'invalid syntax'],
])('%j is refused without repeating it', (text, reason) => {
  expect(failure(() => json(text))).toBe(`400 failed to decode JSON input: ${reason}`)
})

test('nesting and number of values are bounded before anything is built', () => {
  expect(failure(() => json(`{"a":${'['.repeat(1e6)}`))).toBe(
    '400 refused JSON input due to high complexity: nested deeper than 64 levels',
  )
  expect(failure(() => json(`{"a":${'{"a":'.repeat(64)}1${'}'.repeat(65)}`))).toContain('deeper')
  expect(failure(() => json(`{"a":${'{"a":'.repeat(63)}1${'}'.repeat(64)}`))).toBe('accepted')
  expect(failure(() => json(`{"a":[${'[],'.repeat(9_999)}[]]}`))).toBe('accepted')
  expect(failure(() => json(`{"a":[${'[],'.repeat(10_000)}[]]}`))).toContain('a list of more than 10000 elements')
  const members = (count: number) => Array.from({ length: count }, (_, index) => `"m${index}":0`).join()
  expect(failure(() => json(`{${members(10_000)}}`))).toBe('accepted')
  expect(failure(() => json(`{"a":{${members(10_001)}}}`))).toContain('an object of more than 10000 members')
  const lists = `[${'0,'.repeat(9_000)}0]`
  expect(failure(() => json(`{"a":[${Array(10).fill(lists).join()}]}`))).toBe('accepted')
  expect(failure(() => json(`{"a":[${Array(12).fill(lists).join()}]}`))).toContain('more than 100000 values')
  // Brackets and commas inside strings do not count.
  expect(failure(() => json(`{"a":"${'[{,\\"'.repeat(400_000)}"}`))).toBe('accepted')
})

test('__proto__ and constructor in a body are ordinary members', () => {
  const body = json(
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"a":{"__proto__":{"polluted":1}}}',
  )
  expect(({} as Record<string, unknown>).polluted).toBe(undefined)
  expect(Object.getPrototypeOf(body)).toBe(Object.prototype)
  expect((body.a as Record<string, unknown>).polluted).toBe(undefined)
})

test('half a surrogate pair becomes U+FFFD, as in Go', () => {
  expect(json('{"a":"\\ud800x","b":"\\uD83D\\uDE00","c":"\\\\ud800"}')).toEqual({ a: '\ufffdx', b: '😀', c: '\\ud800' })
})

test('a body is JSON with any content type, unless it is declared as a form and looks like one', () => {
  const form = 'application/x-www-form-urlencoded; charset=utf-8'
  for (const type of ['', 'text/plain', 'application/json', form]) {
    expect(bodyInput('POST', type, Buffer.from(' {"a":"b"}'))).toEqual({ a: 'b' })
  }
  expect({ ...bodyInput('POST', form, Buffer.from('a=b+c&a=d&e=%26')) }).toEqual({ a: 'b c,d', e: '&' })
  expect(bodyInput('POST', form, Buffer.alloc(0))).toEqual({})
  expect(failure(() => bodyInput('POST', 'text/plain', Buffer.from('a=b')))).toContain(
    '400 failed to decode JSON input',
  )
  expect(failure(() => bodyInput('POST', form, Buffer.from('[1]')))).toContain('cannot unmarshal array')
  expect(failure(() => bodyInput('POST', form, Buffer.alloc(2 << 20, '&')))).toContain('send JSON')
})

test('PATCH takes merge-patch, JSON or no content type, and nothing else', () => {
  for (const type of ['', 'application/merge-patch+json', 'Application/JSON; charset=utf-8']) {
    expect(bodyInput('PATCH', type, Buffer.from('{"a":1}'))).toEqual({ a: 1 })
  }
  expect(failure(() => bodyInput('PATCH', 'text/plain', Buffer.from('{}')))).toBe(
    '415 PATCH requires Content-Type of application/merge-patch+json, provided text/plain',
  )
})

test('PUT is POST, GET with list is LIST, and the words of a bool are those of Go', () => {
  expect(methodOf('PUT', undefined)).toBe('POST')
  expect(methodOf('GET', undefined)).toBe('GET')
  for (const word of ['1', 't', 'T', 'TRUE', 'true', 'True'])
    expect(methodOf('GET', query(`list=${word}`))).toBe('LIST')
  for (const word of ['0', 'f', 'F', 'FALSE', 'false', 'False', ''])
    expect(methodOf('GET', query(`list=${word}`))).toBe('GET')
  expect(failure(() => methodOf('GET', query('list=yes')))).toBe('400 ')
  expect(methodOf('DELETE', query('list=true'))).toBe('DELETE')
  expect(failure(() => methodOf('OPTIONS', undefined))).toBe('400 cannot handle internal-only request operation')
  for (const method of ['LINK', 'TRACE', 'list', 'HELP', ''])
    expect(failure(() => methodOf(method, undefined))).toBe('405 ')
})

test('a repeated query key is a list, list and help are the protocol’s own', () => {
  const input = queryInput(query('a=1&b=2&a=3&list=true&help=1&__proto__=x&a=4'))
  expect(Object.entries(input)).toEqual([
    ['a', ['1', '3', '4']],
    ['b', '2'],
    ['__proto__', 'x'],
  ])
})
