import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { parseJsonObject } from '../../src/request/json/parse.ts'

const longest = 100_000
const parse = async (text: string) => parseJsonObject(Buffer.from(text), longest)
const failure = async (text: string) => {
  const error = await parse(text).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return error instanceof ApiError ? `${error.status} ${error.message}` : String(error)
}
/** Elements of 1,000 bytes: a list of more than 66 of them has several groups. */
const element = (index: number): string => `{"n":${index},"text":"${'x'.repeat(980)}"}`
const elements = (count: number): string[] => Array.from({ length: count }, (_, index) => element(index))

test('a long list reads as if it had been parsed in one go, between other members and other lists', async () => {
  const big = `[${elements(300).join(' ,\n')}]`
  const text = `{"a":1,"first":${big},"b":[[1],[2,[3]]],"second" : ${big} ,"c":"]}"}`
  const read = parseJsonObject(Buffer.from(text), longest)
  expect(read).toBeInstanceOf(Promise)
  expect(await read).toEqual(JSON.parse(text))
  expect(Object.keys(await read)).toEqual(['a', 'first', 'b', 'second', 'c'])
})

test('of two members of one name the last one counts, and __proto__ is a member', async () => {
  const big = `[${elements(100).join()}]`
  expect(await parse(`{"a":${big},"a":7}`)).toEqual({ a: 7 })
  expect(await parse(`{"a":7,"a":${big}}`)).toEqual(JSON.parse(`{"a":${big}}`))
  const odd = await parse(`{"__proto__":${big},"a":1}`)
  expect(Object.getPrototypeOf(odd)).toBe(Object.prototype)
  expect(Object.getOwnPropertyDescriptor(odd, '__proto__')?.value).toHaveLength(100)
})

test.each([
  ['a comma too many at the end', `{"a":[${elements(100).join()},]}`],
  ['two commas', `{"a":[${elements(100).join()},,${element(0)}]}`],
  ['a comma too many at the start', `{"a":[,${elements(100).join()}]}`],
  ['another bracket at the end', `{"a":[${elements(100).join()}}}`],
  ['a word for an element', `{"a":[${elements(100).join()},S3CRET]}`],
  ['nothing between two elements', `{"a":[${elements(100).join()} ${element(1)}]}`],
  ['something behind the list', `{"a":[${elements(100).join()}]S3CRET}`],
  ['no name', `{[${elements(100).join()}]}`],
])('%s is refused, and not repeated', async (_title, text) => {
  expect(() => JSON.parse(text)).toThrow()
  expect(await failure(text)).toMatch(/^400 failed to decode JSON input: (invalid syntax|unexpected EOF)$/)
})

test('a comma too many where a group ends is refused', async () => {
  // The cut is made at the first comma after 64 KiB, so that the second comma begins the next group.
  for (const tail of [',', ',,', `,,${elements(70).join()}`, `, ,${elements(70).join()}`]) {
    expect(await failure(`{"a":[${elements(70).join()}${tail}]}`)).toMatch('400 failed to decode JSON input')
    expect(await failure(`{"a":[${elements(66).join()}${tail}]}`)).toMatch('400 failed to decode JSON input')
  }
})

test('half a surrogate pair becomes U+FFFD in each group', async () => {
  const strings = Array.from({ length: 200 }, () => `["${'y'.repeat(990)}\\ud800"]`)
  expect(await parse(`{"a":[${strings.join()}]}`)).toEqual({ a: strings.map(() => [`${'y'.repeat(990)}\ufffd`]) })
})

test.each([
  ['texts', `"${'x'.repeat(90)}"`],
  ['lone surrogates', `"${'\\ud800'.repeat(15)}"`],
  ['numbers that a double rounds', '9'.repeat(92)],
])('others have a turn for every 64 KiB of a long list of %s', async (_title, text) => {
  const body = `{"a":[${Array(50_000).fill(text).join()}]}`
  let turns = 0
  let timer = setImmediate(function count() {
    turns++
    timer = setImmediate(count)
  })
  await parse(body)
  clearImmediate(timer)
  expect(turns).toBeGreaterThan(body.length / 2 ** 16 - 2)
})

test('a list may have as many elements as its route allows, each of them small, but no list inside one may', async () => {
  const zeros = (count: number): string => `[${Array(count).fill('0').join()}]`
  expect(await failure(`{"a":${zeros(longest)}}`)).toBe('undefined')
  expect(await failure(`{"a":${zeros(longest + 1)}}`)).toContain('a list of more than 100000 elements')
  expect(await failure(`{"a":{"b":${zeros(10_001)}}}`)).toContain('a list of more than 10000 elements')
  expect(await failure(`[${zeros(10_001)}]`)).toContain('a list of more than 10000 elements')
  expect(await failure(`{"a":[${zeros(990)}]}`)).toBe('undefined')
  expect(await failure(`{"a":[0,${zeros(1001)}]}`)).toContain('more than 1000 values in one element of a list')
  const lists = Array.from({ length: 11 }, (_, index) => `"l${index}":${zeros(99_999)}`)
  expect(await failure(`{${lists.join()}}`)).toContain('more than 1000000 values')
})

test('any value in any place of a list is found again', async () => {
  const padding = Array(70).fill(JSON.stringify('z'.repeat(1000)))
  await fc.assert(
    fc.asyncProperty(fc.array(fc.jsonValue(), { maxLength: 8 }), fc.nat(70), async (values, at) => {
      const texts = [...padding]
      texts.splice(at, 0, ...values.map((value) => JSON.stringify(value)))
      const text = `{"a":[${texts.join()}]}`
      expect(await parse(text)).toEqual(JSON.parse(text))
    }),
    { numRuns: 200 },
  )
})
