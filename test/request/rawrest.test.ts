import fc from 'fast-check'
import { Type } from 'typebox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compileRoutes } from '../../src/request/dispatch.ts'
import { decodeRest, encodeRest, rawPrefixes, rawRest } from '../../src/request/rawrest.ts'
import type { Method, Route } from '../../src/route.ts'
import { type ServedAuthority, serveAuthority } from './authority.ts'

let served: ServedAuthority
beforeAll(async () => {
  served = await serveAuthority()
})
afterAll(() => served.listener.close(1000))

const anyText = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => text.isWellFormed())
const limited = { token: 'limited' }
const sees = async (path: string) => (await served.ask('GET', path, { token: '' })).json

test('every rest has a segment of its own, which is no "." or ".." and gives the rest back', () => {
  fc.assert(
    fc.property(fc.oneof(anyText, fc.constantFrom('.', '..', '/', '//', '%2F', '%252F', 'a/../b', '\n')), (rest) => {
      const segment = encodeRest(rest)
      expect(segment).toMatch(/^[\x21-\x2e\x30-\x7e]+$/)
      expect(segment).not.toMatch(/^\.{1,2}$/)
      expect(decodeRest(segment)).toBe(rest)
      for (const version of ['', '/v1', '/%76%31', '/v%31']) {
        expect(rawRest(`${version}/pki/ocsp/${segment}`, 2)).toBe(rest)
      }
    }),
    { numRuns: 500 },
  )
})

test.each([
  ['MEkwRzBF//abc+/==', 'MEkwRzBF//abc+/=='],
  ['MEkwRzBF%2F%2Fabc%2B%2f%3D%3D', 'MEkwRzBF//abc+/=='],
  ['MEkw/', 'MEkw/'],
  ['MEkw//', 'MEkw//'],
  ['/MEkw', '/MEkw'],
  ['/', '/'],
  ['MEkw-_', 'MEkw-_'],
  ['%252F', '%2F'],
  ['../../transit/keys/a', '../../transit/keys/a'],
  ['..', '..'],
  ['.', '.'],
  ['%2e%2E', '..'],
  ['a%00%0A', 'a\0\n'],
  ['%E2%82%AC', '€'],
])('the rest %s reaches the route as %j, in every way of writing what stands before it', async (sent, request) => {
  const path = `ocsp/${encodeRest(request)}`
  for (const before of ['/v1/pki/ocsp/', '/pki/ocsp/', '/v1/p%6Bi/%6Fcsp/', '/%76%31/pki/ocsp/']) {
    expect(await sees(`${before}${sent}`)).toEqual({ request, path })
    expect(await sees(`${before}${encodeRest(request)}`)).toEqual({ request, path })
  }
  const lines = served.linesOf(`pki/${path}`)
  expect(lines.length % 16).toBe(0)
  expect(lines.length).toBeGreaterThan(0)
})

test('an encoding that is not UTF-8 is refused in the rest as elsewhere', async () => {
  for (const rest of ['%zz', '%ff', 'a//%', '%C0%AF']) {
    expect(await sees(`/v1/pki/ocsp/${rest}`)).toEqual({
      errors: ['the path contains a percent-encoding that is not UTF-8'],
    })
  }
})

test('a rest leads to no other route, mount or policy', async () => {
  const ask = async (path: string) => {
    const { status, json } = await served.ask('GET', path, limited)
    return status === 200 ? json.data : status
  }
  expect(await ask('/v1/pki/est/simple')).toEqual({ rest: 'simple' })
  for (const path of ['est/../private', 'est/%2e%2e/private', 'est/..%2Fprivate', 'est/simple/../../private']) {
    expect(await ask(`/v1/pki/${path}`)).toBe(403)
  }
  for (const path of [
    'est/../../transit/keys',
    'est/x/../../../transit/a',
    'est/simple/',
    'est/simple//',
    'est//simple',
  ]) {
    expect(await ask(`/v1/pki/${path}`)).toBe(403)
  }
  // A rule with slashes after the raw prefix matches nothing; the one-segment form matches every way of sending it.
  for (const path of ['est/open/a', 'est/open//a', 'est/open%2Fa']) expect(await ask(`/v1/pki/${path}`)).toBe(403)
  for (const path of ['est/a/b', 'est/a%2Fb', 'est/%61%2fb'])
    expect(await ask(`/v1/pki/${path}`)).toEqual({ rest: 'a/b' })
  expect(await ask('/v1/pki/est/a%252Fb')).toBe(403)
})

test('with another method too the recorded path is the canonical form', async () => {
  for (const path of ['/v1/pki/ocsp/other/x', '/v1/pki/ocsp/other%2Fx']) {
    expect((await served.ask('DELETE', path, { token: '' })).status).toBe(405)
    expect((await served.ask('LIST', path)).status).toBe(405)
  }
  expect(served.linesOf('pki/ocsp/other%2Fx').length).toBe(4)
  expect(served.linesOf('pki/ocsp/other%2Fx/').length).toBe(4)
  expect(served.linesOf('pki/ocsp/other/x')).toEqual([])
})

test.each([
  ['GET', '/v1/pki//ocsp/a', 'the path must not contain an empty segment ("//")'],
  ['GET', '/v1/pki/crl//', 'the path must not contain an empty segment ("//")'],
  ['GET', '/v1/pki/crl/../ocsp/a', 'path cannot contain parent references'],
  ['GET', '/v1/pki/ocsp%2Fa', 'the path must not contain an encoded slash (%2F)'],
  ['GET', '/v1/pki/ocsps//a', 'the path must not contain an empty segment ("//")'],
  ['GET', '/v1/nowhere/ocsp//a', 'the path must not contain an empty segment ("//")'],
  ['GET', '/v1//pki/ocsp/a', 'the path must not contain an empty segment ("//")'],
  ['GET', '/../v1/pki/ocsp/a//b', 'path cannot contain parent references'],
  ['GET', '/v1/pki/%zz', 'the path contains a percent-encoding that is not UTF-8'],
  ['POST', '/v1/pki/ocsp/', "cannot write to a path ending in '/'"],
  ['POST', '/v1/bare/certs/', "cannot write to a path ending in '/'"],
])('%s %s stays refused: %s', async (method, path, text) => {
  const { status, json } = await served.ask(method, path)
  expect([status, json.errors]).toEqual([400, [text]])
})

test('a path without a rest does not match the route', async () => {
  expect((await served.ask('GET', '/v1/pki/ocsp/', { token: '' })).status).toBe(405)
  expect((await served.ask('GET', '/v1/pki/ocsp', { token: '' })).status).toBe(405)
})

test('?help=1 of a raw path tells of its route', async () => {
  const { json } = await served.ask('GET', '/v1/pki/ocsp/a//b?help=1')
  expect(String(json.help).match(/Request: .*/g)).toEqual(['Request: GET pki/ocsp/:request**'])
  expect(json.help).toContain('Answers application/json, without an envelope.')
})

const declare = (path: string, method: Method = 'GET'): Route<unknown> => ({
  ...{ method, path, access: 'token', about: path, body: Type.Object({}), answers: [], run: () => undefined },
})

test('declarations that would make one path two requests fail at start', () => {
  const prefixesOf = (...paths: string[]) => rawPrefixes(paths.map((path) => declare(path)))
  expect(prefixesOf('ocsp/:x**', 'ocsp', 'a/:b/:c', 'unified/ocsp/:y**', 'ocsps/:z')).toEqual([
    'ocsp/',
    'unified/ocsp/',
  ])
  for (const path of ['ocsp/status', 'ocsp/:name', ':a/:b', ':rest*', 'ocsp/:rest*', ':a*/tail']) {
    expect(() => prefixesOf('ocsp/:x**', path)).toThrow(`${path} is below the raw rest of ocsp/`)
  }
  for (const path of [':x**', 'issuer/:ref/ocsp/:x**']) expect(() => prefixesOf(path)).toThrow('must be fixed')
  expect(() => compileRoutes([declare('ocsp/:x**/tail')])).toThrow('nothing may follow a raw rest')
})
