import { expect, test } from 'vitest'
import { passRequestHeaders, restrictResponseHeaders } from '../../src/request/headers.ts'
import { Answer, type Mount } from '../../src/route.ts'

const mount = (config: Mount['config'], uuid = 'u'): Mount => ({ uuid, path: 'pki/', type: 'pki', config })
const sent = {
  'if-modified-since': 'yesterday',
  accept: 'a/b',
  'x-many': ['1', '2'],
  'x-vault-token': 'S3CRET',
  authorization: 'Bearer S3CRET',
}

test('an engine sees no request header until its mount names it, in any case', () => {
  expect(passRequestHeaders(mount({}), sent)).toEqual({})
  const names = ['If-Modified-Since', 'X-MANY', 'absent']
  expect(passRequestHeaders(mount({ passthrough_request_headers: names }), sent)).toEqual({
    'if-modified-since': 'yesterday',
    'x-many': '1, 2',
  })
})

test('the credential is passed to no engine, even if its mount names it', () => {
  const names = ['X-Vault-Token', 'Authorization', 'accept']
  expect(passRequestHeaders(mount({ passthrough_request_headers: names }), sent)).toEqual({ accept: 'a/b' })
})

const answer = new Answer({ status: 304, data: { a: 1 }, headers: { 'Last-Modified': 'today', 'Set-Cookie': 'c' } })

test('an engine answers with the headers that its mount allows, and everything else of its answer stays', () => {
  const allowed = restrictResponseHeaders(mount({ allowed_response_headers: ['last-modified'] }), answer)
  expect(allowed).toBeInstanceOf(Answer)
  expect(allowed).toEqual(new Answer({ status: 304, data: { a: 1 }, headers: { 'Last-Modified': 'today' } }))
  expect(restrictResponseHeaders(mount({}), answer)).toMatchObject({ status: 304, headers: {} })
})

test('sys/ and auth/ set the headers they like', () => {
  expect(restrictResponseHeaders(mount({}, ''), answer)).toBe(answer)
  for (const outcome of [undefined, { a: 1 }]) expect(restrictResponseHeaders(mount({}), outcome)).toBe(outcome)
})
