import { Type } from 'typebox'
import { expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { compileRoutes } from '../../src/request/dispatch.ts'
import type { Method, Mount, Route } from '../../src/route.ts'

const declare = (method: Method, path: string, captures?: Record<string, RegExp>): Route<unknown> => ({
  method,
  path,
  access: 'token',
  about: path,
  answers: [],
  body: Type.Object({}),
  run: () => undefined,
  ...(captures ? { captures } : {}),
})
const find = compileRoutes([
  declare('LIST', 'keys'),
  declare('GET', 'keys/:name'),
  declare('POST', 'keys/:name'),
  declare('POST', 'keys/:name/rotate'),
  declare('POST', 'keys/import'),
  declare('POST', 'random'),
  declare('POST', 'random/:bytes'),
  declare('GET', 'export/:type/:name'),
  declare('GET', 'mounts'),
  declare('GET', 'mounts/:path*'),
  declare('DELETE', 'mounts/:path*'),
  declare('POST', 'mounts/:path*/tune'),
  declare('GET', 'serial/:path*', { path: /^[0-9a-f]+$/ }),
])
/** The route and its captures, or the status that is thrown when the match is run. */
const found = (method: Method, path: string) => {
  const { endpoint, params } = find(method, path)
  const call = { ...{ context: undefined, mount, params, body: {}, path, requestId: '' }, ...caller }
  try {
    endpoint.route.run(call)
    return [endpoint.route.path, params]
  } catch (error) {
    return error instanceof ApiError ? error.status : error
  }
}
const mount: Mount = { uuid: '', path: '', type: '', config: {} }
const caller = {
  bytes: Buffer.alloc(0),
  caller: undefined,
  accept: '',
  sentPath: undefined,
  headers: {},
  capability: 'read',
  privileged: () => false,
  warn: () => undefined,
} as const

test.each<[Method, string, unknown]>([
  ['LIST', 'keys', ['keys', {}]],
  ['GET', 'keys/a.b-c_1', ['keys/:name', { name: 'a.b-c_1' }]],
  ['POST', 'keys/a/rotate', ['keys/:name/rotate', { name: 'a' }]],
  ['POST', 'keys/import', ['keys/import', {}]],
  ['GET', 'keys/import', ['keys/:name', { name: 'import' }]],
  ['POST', 'keys/import/rotate', ['keys/:name/rotate', { name: 'import' }]],
  ['GET', 'export/hmac-key/k', ['export/:type/:name', { type: 'hmac-key', name: 'k' }]],
  ['GET', 'mounts/a/b/c', ['mounts/:path*', { path: 'a/b/c' }]],
  ['POST', 'mounts/a/b/tune', ['mounts/:path*/tune', { path: 'a/b' }]],
  ['POST', 'mounts/tune/tune', ['mounts/:path*/tune', { path: 'tune' }]],
  ['DELETE', 'mounts/tune', ['mounts/:path*', { path: 'tune' }]],
  ['DELETE', 'mounts/a/tune', 405],
  ['GET', 'serial/0af', ['serial/:path*', { path: '0af' }]],
  ['GET', 'serial/zz', 404],
  ['GET', 'mounts', ['mounts', {}]],
  ['GET', 'keys', 405],
  ['DELETE', 'keys/a', 405],
  ['LIST', 'keys/a', 404],
  ['LIST', 'mounts/a/b', 405],
  ['HEAD', 'keys/a', 405],
  ['GET', '', 404],
  ['GET', 'nothing', 404],
  ['POST', 'random/a/b', 404],
  ['GET', 'keys/__proto__', ['keys/:name', { name: '__proto__' }]],
  ['GET', 'constructor', 404],
])('%s %s', (method, path, expected) => {
  expect(found(method, path)).toEqual(expected)
})

test.each(['-a', 'a-', '.a', 'a.', 'a b', 'a*', 'ä', 'a\n', '+', `${'a'.repeat(5000)}-`])(
  '%j is no key name: 404',
  (name) => {
    expect(found('GET', `keys/${name}`)).toBe(404)
  },
)

test('only what a public pattern leaves out is refused before anybody is asked who calls', () => {
  const read = { ...declare('GET', 'cert/:serial', { serial: /^[0-9]+$/ }), access: 'public' } as const
  const dispatch = compileRoutes([{ ...declare('GET', 'health'), access: 'public' }, declare('GET', 'keys'), read])
  const refused = (method: Method, path: string): number | undefined =>
    dispatch(method, path).endpoint.refuse?.().status
  expect(refused('POST', 'health')).toBe(405)
  expect(refused('GET', 'cert/a')).toBe(404)
  for (const [method, path] of [
    ['POST', 'keys'],
    ['POST', 'nothing'],
    ['GET', 'cert'],
    ['GET', 'cert/1/2'],
  ] as const) {
    expect(refused(method, path), path).toBeUndefined()
    expect(dispatch(method, path).endpoint.access).toBe('token')
  }
  expect(refused('GET', 'cert/1')).toBeUndefined()
})

test('contradicting declarations fail at start', () => {
  expect(() => compileRoutes([declare('GET', 'a/:x'), declare('GET', 'a/:y')])).toThrow('two routes answer GET a/:y')
  expect(() => compileRoutes([declare('GET', 'a/:x*/b/c')])).toThrow('at most one fixed segment')
  expect(() => compileRoutes([declare('GET', 'a/:x*/:b')])).toThrow('at most one fixed segment')
})
