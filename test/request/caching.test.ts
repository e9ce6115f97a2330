import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cachingHeaders, isUnchanged } from '../../src/request/caching.ts'
import { readHttpDate } from '../../src/request/httpdate.ts'

const moment = Date.UTC(1994, 10, 6, 8, 49, 37)

test.each(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
  'the date %s is read (RFC 9110 section 5.6.7)',
  (text) => {
    expect(readHttpDate(text)).toBe(moment)
  },
)

test('the date that is written is read', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 253_402_300_799 }), (seconds) => {
      expect(readHttpDate(new Date(seconds * 1000).toUTCString())).toBe(seconds * 1000)
    }),
  )
})

test.each([
  '',
  'yesterday',
  '784111777',
  '1994-11-06T08:49:37Z',
  'Sun, 6 Nov 1994 08:49:37 GMT',
  'Sun, 06 Nov 1994 08:49:37',
  'Sun, 06 Nov 1994 08:49:37 +0100',
  'Sun, 31 Feb 1994 08:49:37 GMT',
  'Sun, 06 Nov 1994 24:00:00 GMT',
  'Sun, 06 nov 1994 08:49:37 GMT',
  ' Sun, 06 Nov 1994 08:49:37 GMT, x',
])('%j is not a date', (text) => {
  expect(readHttpDate(text)).toBe(undefined)
})

const lastModified = new Date(moment + 900)
const since = (milliseconds: number) => new Date(milliseconds).toUTCString()

test.each([
  ['an equal second', since(moment), true],
  ['a later second', since(moment + 1000), true],
  ['an earlier second', since(moment - 1000), false],
  ['no date', 'yesterday', false],
  ['no header', undefined, false],
])('If-Modified-Since with %s: %s is %s', (_title, ifModifiedSince, expected) => {
  expect(isUnchanged({ lastModified, etag: 'a' }, { ifModifiedSince, ifNoneMatch: undefined })).toBe(expected)
  expect(isUnchanged({ etag: 'a' }, { ifModifiedSince, ifNoneMatch: undefined })).toBe(false)
})

test.each([
  ['"a"', true],
  ['W/"a"', true],
  ['"b", W/"c" ,"a"', true],
  ['*', true],
  ['"b"', false],
  ['a', false],
  ['"b" "a"', false],
  ['"x,"a"', false],
  ['w/"a"', false],
  ['', false],
])('If-None-Match: %s is %s, for any If-Modified-Since', (ifNoneMatch, expected) => {
  for (const ifModifiedSince of [undefined, since(moment + 1000), since(0)]) {
    expect(isUnchanged({ lastModified, etag: 'a' }, { ifModifiedSince, ifNoneMatch })).toBe(expected)
  }
})

test('an answer without a tag is matched by "*" alone', () => {
  expect(isUnchanged({ lastModified }, { ifNoneMatch: '"a"', ifModifiedSince: since(moment) })).toBe(false)
  expect(isUnchanged({ lastModified }, { ifNoneMatch: '*', ifModifiedSince: undefined })).toBe(true)
})

test('the headers: whole seconds, no negative age, weak tags where bytes differ', () => {
  expect(cachingHeaders({ lastModified, etag: 'a-1', maxAgeSeconds: 59.9 }, false)).toEqual({
    'Cache-Control': 'public, max-age=59',
    ETag: '"a-1"',
    'Last-Modified': 'Sun, 06 Nov 1994 08:49:37 GMT',
  })
  expect(cachingHeaders({ etag: 'a', maxAgeSeconds: -5 }, true)).toEqual({
    'Cache-Control': 'public, max-age=0',
    ETag: 'W/"a"',
  })
  expect(cachingHeaders({}, false)).toEqual({})
  for (const etag of ['', 'a"b', 'a\r\nX: y', 'a b'])
    expect(() => cachingHeaders({ etag }, false)).toThrow('entity tag')
})
