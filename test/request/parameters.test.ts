import fc from 'fast-check'
import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { compile } from '../../src/auth/acl/compile.ts'
import { decide, explain, restrict } from '../../src/auth/acl/decide.ts'
import { parsePolicy } from '../../src/auth/acl/parse.ts'
import { boolean, commaList, duration, integer, map, raw, text } from '../../src/field.ts'
import { compileRoutes } from '../../src/request/dispatch.ts'
import { parametersOf, shorterPaths } from '../../src/request/parameters.ts'
import type { Route } from '../../src/route.ts'

const body = Type.Object({
  input: text({ about: '' }),
  hash_algorithm: text({ about: '', aliases: ['algorithm'] }),
  size: integer({ about: '' }),
  derived: boolean({ about: '' }),
  ttl: duration({ about: '' }),
  policies: commaList({ about: '' }),
  meta: map({ about: '' }),
  batch_input: raw({ about: '' }),
  limit: integer({ about: '', initial: 7 }),
})
const common = { method: 'POST', access: 'token', about: '', body, answers: [], items: 'batch_input' } as const
const declare = (path: string, stands?: Route<unknown>['stands']): Route<unknown> => ({
  ...common,
  path,
  ...(stands ? { stands } : {}),
  run: () => undefined,
})
const find = compileRoutes([
  declare('sign/:name'),
  declare('sign/:name/:hash', { hash: 'hash_algorithm' }),
  declare('random'),
  declare('random/:first', { first: (word) => (/^\d/.test(word) ? 'size' : 'input') }),
  declare('random/:input/:size'),
  declare('take/:input*'),
  declare('give/:other*'),
  declare('give/:input*/tune'),
])

/** Why the policy refuses the request below t/, or undefined. */
function refusal(policy: string, path: string, input: Record<string, unknown> = {}): string | undefined {
  const acl = compile(new Map([['p', parsePolicy(policy)]]))
  const match = find('POST', path)
  const unlimited = decide(acl, 'update', `t/${path}`)
  if (!unlimited.allowed) return explain(unlimited, `t/${path}`)
  const shorter = shorterPaths(`t/${path}`, match)
  const verdict = restrict(acl, unlimited, 'update', parametersOf(input, match), shorter)
  return verdict.allowed ? undefined : explain(verdict, `t/${path}`)
}
const rule = (path: string, limits: string) => `path "${path}" { capabilities = ["update"]\n ${limits} }\n`
const noSha1 = rule('t/sign/k*', 'denied_parameters = { "hash_algorithm" = ["sha1"] }')
const item = (extra: object) => ({ batch_input: [{ input: 'a' }, { input: 'b', ...extra }] })

describe('a denied value', () => {
  test.each<[string, string, Record<string, unknown>, string]>([
    ['in the body', 'sign/k', { hash_algorithm: 'sha1' }, ''],
    ['under its older name', 'sign/k', { algorithm: 'sha1' }, ''],
    ['under both names', 'sign/k', { hash_algorithm: 'sha2-256', algorithm: 'sha1' }, ''],
    ['in the path', 'sign/k/sha1', {}, ' in the path'],
    ['in the path, with another in the body', 'sign/k/sha1', { hash_algorithm: 'sha2-256' }, ' in the path'],
    ['in the body, with another in the path', 'sign/k/sha2-256', { hash_algorithm: 'sha1' }, ''],
    ['in a batch item', 'sign/k', item({ hash_algorithm: 'sha1' }), ' in item 1 of batch_input'],
    ['in a batch item under its older name', 'sign/k', item({ algorithm: 'sha1' }), ' in item 1 of batch_input'],
    ['as the default of a batch', 'sign/k', { hash_algorithm: 'sha1', ...item({ hash_algorithm: 'none' }) }, ''],
    ['in another case', 'sign/k', { hash_algorithm: 'SHA1' }, ''],
    ['under a name in another case', 'sign/k', { Hash_Algorithm: 'sha1' }, ''],
    ['in a list', 'sign/k', { hash_algorithm: ['sha1'] }, ''],
  ])('%s is refused', (_, path, input, where) => {
    expect(refusal(noSha1, path, input)).toBe(
      `path "t/sign/k*" in policy "p" denies this value of the parameter "hash_algorithm"${where}`,
    )
    expect(refusal(noSha1.replace('hash_algorithm', 'algorithm'), path, input), 'a rule on the alias').toBeDefined()
    expect(refusal(noSha1.replace('"hash_', '"HASH_'), path, input), 'a rule in upper case').toBeDefined()
  })

  test.each<[string, Record<string, unknown>]>([
    ['sign/k', { hash_algorithm: 'sha2-256' }],
    ['sign/k', { hash_algorithm: null, algorithm: null }],
    ['sign/k', { input: 'sha1' }],
    ['sign/k/sha2-256', { input: 'sha1' }],
    ['sign/k', item({ input: 'sha1', reference: 'sha1', hash_algorithm: null })],
    ['sign/k', { batch_input: 'sha1' }],
    ['sign/k', { batch_input: [null, 5, 'sha1', ['sha1']] }],
    ['sign/k', {}],
  ])('is no matter of %s with %j', (path, input) => {
    expect(refusal(noSha1, path, input)).toBe(undefined)
  })

  test('is found as the field takes it, however it is spelled', () => {
    const denied = (name: string, value: string) => rule('t/sign/k', `denied_parameters = { "${name}" = [${value}] }`)
    for (const value of [16, '16', '0x10', '020']) {
      expect(refusal(denied('size', '16'), 'sign/k', { size: value }), String(value)).toBeDefined()
      expect(refusal(denied('size', '"0x10"'), 'sign/k', { size: value }), String(value)).toBeDefined()
    }
    for (const value of [true, 'true', 'T', '1', 1, 7, 'TRUE']) {
      expect(refusal(denied('derived', 'true'), 'sign/k', { derived: value }), String(value)).toBeDefined()
      expect(refusal(denied('derived', '"true"'), 'sign/k', { derived: value }), String(value)).toBeDefined()
      expect(refusal(denied('derived', 'true'), 'sign/k', item({ derived: value })), String(value)).toBeDefined()
    }
    for (const value of ['1h', 3600, '3600s', '60m', '3600'])
      expect(refusal(denied('ttl', '"1h"'), 'sign/k', { ttl: value }), String(value)).toBeDefined()
    for (const value of ['root', 'a,root', ['a', 'ROOT '], 'a, root'])
      expect(refusal(denied('policies', '"root"'), 'sign/k', { policies: value }), String(value)).toBeDefined()
    for (const value of [{ team: 'a' }, ['team=a'], 'team=a'])
      expect(refusal(denied('meta', '{ "team" = "a" }'), 'sign/k', { meta: value }), String(value)).toBeDefined()
    expect(refusal(denied('size', '16'), 'sign/k', { size: 17 })).toBe(undefined)
    expect(refusal(denied('derived', 'true'), 'sign/k', { derived: 'f' })).toBe(undefined)
  })

  test('holds in any place and for any value', () => {
    const word = fc.stringMatching(/^[a-z0-9]{1,6}$/)
    const put: ((value: string) => [string, Record<string, unknown>])[] = [
      (value) => ['sign/k', { hash_algorithm: value }],
      (value) => ['sign/k', { algorithm: value.toUpperCase() }],
      (value) => [`sign/k/${value}`, {}],
      (value) => ['sign/k', item({ algorithm: value })],
    ]
    fc.assert(
      fc.property(word, word, fc.constantFrom(...put), (denied, sent, place) => {
        const policy = noSha1.replace('"sha1"', JSON.stringify(denied))
        expect(refusal(policy, ...place(sent)) === undefined).toBe(denied !== sent)
      }),
    )
  })
})

describe('limits on the path without the field', () => {
  const limit = 'denied_parameters = { "hash_algorithm" = ["sha1"] }'
  test('bind the longer path that a broader rule grants', () => {
    for (const path of ['t/sign/k', 't/sign/+', 't/sign/*', 't/+/k']) {
      const policy = rule('t/*', '') + rule(path, limit)
      expect(refusal(policy, 'sign/k/sha1'), path).toContain('in the path')
      expect(refusal(policy, 'sign/k/sha2-256'), path).toBe(undefined)
    }
    expect(refusal(rule('t/*', '') + rule('t/random', 'denied_parameters = { "size" = [5] }'), 'random/5')).toContain(
      '"size" in the path',
    )
    const middle = rule('t/*', '') + rule('t/random/x', 'denied_parameters = { "size" = [5] }')
    expect(refusal(middle, 'random/x/5')).toContain('"size" in the path')
  })

  test('bind the longer path whose field is a rest, however many segments it has', () => {
    const taken = rule('t/*', '') + rule('t/take', 'denied_parameters = { "size" = [5], "input" = ["a/b/c"] }')
    for (const path of ['take/a', 'take/a/b', 'take/x/y/z'])
      expect(refusal(taken, path, { size: 5 }), path).toContain('"size"')
    expect(refusal(taken, 'take/a/b/c')).toContain('"input" in the path')
    expect(refusal(taken, 'take/a/b')).toBe(undefined)
    const given = rule('t/*', '') + rule('t/give', 'denied_parameters = { "size" = [5] }')
    for (const path of ['give/a', 'give/a/tune']) expect(refusal(given, path, { size: 5 }), path).toBe(undefined)
  })

  test('do not bind a path that has a rule of its own', () => {
    for (const path of ['t/sign/k/sha1', 't/sign/k/*', 't/sign/+/+', 't/sign/k/sha*'])
      expect(refusal(rule(path, '') + rule('t/sign/k', limit), 'sign/k/sha1'), path).toBe(undefined)
  })

  test('do not bind other keys', () => {
    expect(refusal(rule('t/*', '') + rule('t/sign/k', limit), 'sign/other/sha1')).toBe(undefined)
  })
})

describe('a null', () => {
  test('counts as the initial value of a field that has one, and as nothing elsewhere', () => {
    const limited = (limits: string, input: Record<string, unknown>) =>
      refusal(rule('t/sign/*', limits), 'sign/k', input)
    for (const name of ['limit', 'LIMIT']) {
      expect(limited('denied_parameters = { "limit" = [] }', { [name]: null })).toContain(
        'denies the parameter "limit"',
      )
      expect(limited('denied_parameters = { "limit" = [7] }', { [name]: null })).toContain('denies this value')
    }
    expect(limited('denied_parameters = { "limit" = [8] }', { limit: null })).toBe(undefined)
    expect(limited('allowed_parameters = { "limit" = [8] }', { limit: null })).toContain('does not allow this value')
    expect(limited('required_parameters = ["limit"]', { limit: null })).toBe(undefined)
    expect(limited('denied_parameters = { "size" = [] }', { size: null })).toBe(undefined)
  })
})

describe('required parameters', () => {
  const policy = rule('t/sign/*', 'required_parameters = ["hash_algorithm"]')
  test('are those the request sends, under any of their names', () => {
    expect(refusal(policy, 'sign/k', { hash_algorithm: 'x' })).toBe(undefined)
    expect(refusal(policy, 'sign/k', { algorithm: 'x' })).toBe(undefined)
    for (const [path, input] of [
      ['sign/k', {}],
      ['sign/k', { hash_algorithm: null }],
      ['sign/k', { HASH_ALGORITHM: 'x' }],
      ['sign/k', item({ hash_algorithm: 'x' })],
      ['sign/k/x', {}],
      ['sign/k', { input: 'hash_algorithm' }],
    ] as const)
      expect(refusal(policy, path, input), JSON.stringify(input)).toContain('requires the parameter "hash_algorithm"')
  })

  test('cannot be satisfied by properties that every object has', () => {
    expect(refusal(rule('t/sign/*', 'required_parameters = ["constructor"]'), 'sign/k')).toBeDefined()
    expect(refusal(rule('t/sign/*', 'required_parameters = ["__proto__"]'), 'sign/k')).toBeDefined()
  })
})

describe('allowed parameters', () => {
  const names = rule('t/sign/*', 'allowed_parameters = { "input" = [], "algorithm" = ["sha2-*"], "batch_input" = [] }')
  test('are the names as sent, or their aliases', () => {
    expect(refusal(names, 'sign/k', { input: 'x', hash_algorithm: 'sha2-512' })).toBe(undefined)
    expect(refusal(names, 'sign/k', { INPUT: 'x' })).toBe(undefined)
    expect(refusal(names, 'sign/k', { size: 5 })).toContain(
      'does not allow the parameter "size", only "input", "algorithm", "batch_input"',
    )
    expect(refusal(names, 'sign/k', { stranger: 5 })).toContain('does not allow the parameter "stranger"')
    expect(refusal(names, 'sign/k', { stranger: null })).toBe(undefined)
    expect(refusal(names, 'sign/k')).toBe(undefined)
  })

  test('have their values compared in any place', () => {
    for (const [path, input] of [
      ['sign/k', { hash_algorithm: 'sha1' }],
      ['sign/k', { algorithm: 'sha1' }],
      ['sign/k/sha1', {}],
      ['sign/k', item({ hash_algorithm: 'sha1' })],
      ['sign/k', item({ algorithm: 'SHA2-256' })],
      ['sign/k', { hash_algorithm: '' }],
      ['sign/k', { hash_algorithm: ['sha2-256', 'sha1'] }],
      ['sign/k', { hash_algorithm: { a: 1 } }],
    ] as const)
      expect(refusal(names, path, input), JSON.stringify(input)).toContain('does not allow this value')
    expect(refusal(names, 'sign/k/sha2-384')).toBe(undefined)
    expect(refusal(names, 'sign/k', item({ algorithm: 'sha2-256', size: 1 }))).toBe(undefined)
  })

  test('under two names of one field are both kept', () => {
    const both = rule('t/sign/*', 'allowed_parameters = { "hash_algorithm" = ["sha2-*"], "algorithm" = ["*-256"] }')
    expect(refusal(both, 'sign/k', { hash_algorithm: 'sha2-256' })).toBe(undefined)
    expect(refusal(both, 'sign/k', { hash_algorithm: 'sha2-512' })).toBeDefined()
    expect(refusal(both, 'sign/k', { algorithm: 'sha3-256' })).toBeDefined()
  })

  test('with a star restrict the named ones and free the rest', () => {
    const star = rule('t/sign/*', 'allowed_parameters = { "*" = [], "size" = [1, 2] }')
    expect(refusal(star, 'sign/k', { anything: 'x', size: '0x2' })).toBe(undefined)
    expect(refusal(star, 'sign/k', { anything: 'x', size: 3 })).toBeDefined()
  })
})

test('every parameter denied leaves the bare request, and the name of the key', () => {
  const policy = rule('t/*', 'denied_parameters = { "*" = [] }')
  expect(refusal(policy, 'sign/k')).toBe(undefined)
  expect(refusal(policy, 'sign/k', { input: null })).toBe(undefined)
  expect(refusal(policy, 'sign/k', { stranger: 1 })).toContain('denies every parameter, and "stranger" is one')
  expect(refusal(policy, 'sign/k/sha2-256')).toContain('"hash_algorithm" in the path is one')
})

test('the name of the key is a parameter to who names it', () => {
  const denied = rule('t/sign/*', 'denied_parameters = { "name" = ["prod-*"] }')
  expect(refusal(denied, 'sign/prod-1')).toContain('denies this value of the parameter "name" in the path')
  expect(refusal(denied, 'sign/dev')).toBe(undefined)
  const allowed = rule('t/sign/*', 'allowed_parameters = { "name" = ["dev-*"], "input" = [] }')
  expect(refusal(allowed, 'sign/dev-1', { input: 'x' })).toBe(undefined)
  expect(refusal(allowed, 'sign/prod', { input: 'x', name: 'dev-1' })).toContain('in the path')
})

test('a path without a route is judged by the names as sent', () => {
  expect(refusal(rule('t/*', 'denied_parameters = { "x" = [1] }'), 'nothing/here', { x: 1 })).toBeDefined()
  expect(refusal(rule('t/*', 'denied_parameters = { "x" = [1] }'), 'nothing/here', { y: 1 })).toBe(undefined)
})

test('a capture that can stand for one field or another stands for the one its text fits', () => {
  const policy = rule('t/random/*', 'denied_parameters = { "size" = [5], "input" = ["a"] }')
  expect(refusal(policy, 'random/5')).toContain('"size"')
  expect(refusal(policy, 'random/a')).toContain('"input"')
  expect(refusal(policy, 'random/6')).toBe(undefined)
  expect(refusal(policy, 'random/b/5')).toContain('"size"')
})
