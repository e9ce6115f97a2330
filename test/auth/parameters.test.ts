import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Limits } from '../../src/auth/acl/limits.ts'
import { allows, denies } from '../../src/auth/acl/match.ts'
import { breach, type RequestParameters } from '../../src/auth/acl/parameters.ts'

type Data = Readonly<Record<string, unknown>>
const asItIs = (value: unknown) => value

/** A request to a route without fields: no parameter is converted. */
const given = (data: Data): RequestParameters => ({
  has: (name) => Object.hasOwn(data, name),
  *all() {
    for (const [name, value] of Object.entries(data)) {
      yield { names: [name.toLowerCase()], value, read: asItIs, source: 'request', field: true }
    }
  },
})
const limits = (said: { allowed?: Data; denied?: Data; required?: string[]; min?: number; max?: number }): Limits => ({
  allowed: new Map(Object.entries(said.allowed ?? {})) as Limits['allowed'],
  denied: new Map(Object.entries(said.denied ?? {})) as Limits['denied'],
  required: said.required ?? [],
  minWrappingSeconds: said.min ?? 0,
  maxWrappingSeconds: said.max ?? 0,
})

/** The reference's rules, spelled out in its order. Wrapping never happens here. */
function oracle({ allowed, denied, required, ...bounds }: Limits, operation: string, data: Data): boolean {
  const glob = (rule: string, text: string): boolean => {
    const parts = rule.split('*')
    if (parts.length === 1) return rule === text
    const inner = rule.replace(/^\*/, '').replace(/\*$/, '')
    if (rule.startsWith('*') && rule.endsWith('*')) return text.includes(inner)
    return rule.startsWith('*') ? text.endsWith(inner) : text.startsWith(inner)
  }
  const inList = (value: unknown, list: readonly unknown[]) =>
    list.length === 0 ||
    list.some((rule) =>
      typeof rule === 'string' && typeof value === 'string' ? glob(rule, value) : Object.is(rule, value),
    )
  if (bounds.minWrappingSeconds > 0 || bounds.maxWrappingSeconds > 0) return false
  if (!['read', 'update', 'create', 'patch'].includes(operation)) return true
  for (const name of required) if (!(name in data)) return false
  if (Object.keys(data).length === 0) return true
  if (denied.has('*')) return false
  for (const [name, value] of Object.entries(data)) {
    const list = denied.get(name.toLowerCase())
    if (list !== undefined && inList(value, list)) return false
  }
  if (allowed.size === 0) return true
  for (const [name, value] of Object.entries(data)) {
    const list = allowed.get(name.toLowerCase())
    if (list === undefined && !allowed.has('*')) return false
    if (list !== undefined && !inList(value, list)) return false
  }
  return true
}

const scalar = fc.constantFrom<unknown>('q', 'qb', 'bq', 'bqb', 'c', '', 1, 2, true, false)
const ruleValue = fc.constantFrom<unknown>('q', 'qb', 'q*', '*q', '*q*', 'c', '', 1, true)
const named = fc.dictionary(fc.constantFrom('x', 'y', 'z', '*'), fc.array(ruleValue, { maxLength: 3 }), { maxKeys: 3 })
const anyLimits = fc
  .record({
    allowed: named,
    denied: named,
    required: fc.subarray(['x', 'y']),
    min: fc.constantFrom(0, 0, 0, 5),
    max: fc.constantFrom(0, 0, 0, 9),
  })
  .map(limits)
const data = fc.dictionary(fc.constantFrom('x', 'y', 'z', 'X', 'w'), scalar, { maxKeys: 3 })
const operation = fc.constantFrom('read', 'create', 'update', 'patch', 'delete', 'list')

describe('rules on parameters', () => {
  test('agree with a slow reading of the reference', () => {
    fc.assert(
      fc.property(anyLimits, operation, data, (rules, capability, sent) => {
        expect(breach(rules, capability, given(sent)) === undefined).toBe(oracle(rules, capability, sent))
      }),
      { numRuns: 4000 },
    )
  })

  test('name the broken one, and never repeat the request', () => {
    const secret = 'c2VjcmV0'
    const sent = { hash: secret, other: secret }
    const of = (said: Parameters<typeof limits>[0]) => breach(limits(said), 'update', given(sent))
    expect(of({ required: ['x'] })).toBe('requires the parameter "x"')
    expect(of({ denied: { '*': [] } })).toBe('denies every parameter, and "hash" is one')
    expect(of({ denied: { hash: [] } })).toBe('denies the parameter "hash"')
    expect(of({ denied: { hash: ['c2*'] } })).toBe('denies this value of the parameter "hash"')
    expect(of({ allowed: { hash: [] } })).toBe('does not allow the parameter "other", only "hash"')
    expect(of({ allowed: { hash: ['sha2-256', 'sha3-*', 5], '*': [] } })).toBe(
      'does not allow this value of the parameter "hash", only "sha2-256", "sha3-*", 5',
    )
    expect(of({ min: 5 })).toBe('allows only wrapped answers')
    const long = breach(limits({ allowed: { x: [] } }), 'update', given({ ['n'.repeat(1000)]: 1 }))
    expect(long?.length).toBeLessThan(200)
  })

  test('list twenty of the allowed values, and a hundred characters of each', () => {
    const only = (values: unknown[]) =>
      breach(limits({ allowed: { x: values } }), 'update', given({ x: 'y' }))?.split(', only ')[1]
    const numbers = Array.from({ length: 21 }, (_, n) => n + 10)
    expect(only(numbers.slice(1))).toBe(numbers.slice(1).join(', '))
    expect(only(numbers)).toBe(`${numbers.slice(0, 20).join(', ')} …`)
    const [fits, beyond] = [98, 99].map((length) => JSON.stringify('v'.repeat(length)))
    expect(only(['v'.repeat(98), 'v'.repeat(99)])).toBe(`${fits}, ${beyond?.slice(0, 100)}…`)
  })
})

describe('a denied value', () => {
  test.each<[unknown[], unknown]>([
    [['sha1'], 'SHA1'],
    [['SHA1'], ' sha1\t'],
    [['sha*'], 'Sha1'],
    [['*'], 'anything'],
    [['*'], 7],
    [[''], ''],
    [['1'], 1],
    [[1], '1'],
    [[true], 'true'],
    [['a'], ['b', ['A']]],
    [[['a', 'b']], ['a', 'b']],
    [[{ b: 1, a: [2] }], { a: [2], b: 1 }],
    [[], null],
  ])('%j holds for %j', (rule, value) => {
    expect(denies(rule, value, asItIs)).toBe(true)
  })

  test.each<[unknown[], unknown]>([
    [['sha1'], 'sha1x'],
    [['sha1'], 'xsha1'],
    [['s*1'], 'sha1'],
    [['{"a":1}'], { a: 1 }],
    [[{ a: 1 }], { a: 1, b: 2 }],
    [['a'], {}],
    [['a'], []],
  ])('%j leaves %j alone', (rule, value) => {
    expect(denies(rule, value, asItIs)).toBe(false)
  })

  test('holds for everything that a rule with the same text allows', () => {
    const scalarOrList = fc.oneof(scalar, fc.array(scalar, { minLength: 1, maxLength: 3 }))
    fc.assert(
      fc.property(fc.array(ruleValue, { maxLength: 3 }), scalarOrList, (rule, value) => {
        if (allows(rule, value, asItIs)) expect(denies(rule, value, asItIs)).toBe(true)
      }),
    )
  })
})

describe('an allowed value', () => {
  test.each<[unknown[], unknown, boolean]>([
    [['sha2-256'], 'SHA2-256', false],
    [['sha2-*'], 'sha2-512', true],
    [['*-256'], 'sha2-256', true],
    [['*2-*'], 'sha2-256', true],
    [['a'], ['a', 'a'], true],
    [['a'], ['a', 'root'], false],
    [['a'], [], false],
    [[['a', 'b']], ['a', 'b'], true],
    [[['a', 'b']], ['b', 'a'], false],
    [[1], '1', true],
    [['a'], null, false],
    [['a'], { a: 'a' }, false],
    [[], { a: 'a' }, true],
  ])('%j for %j: %s', (rule, value, verdict) => {
    expect(allows(rule, value, asItIs)).toBe(verdict)
  })

  test('is compared as the field reads it, not as sent', () => {
    const commas = (value: unknown) => (typeof value === 'string' ? value.split(',') : value)
    expect(allows(['app-*'], 'app-1,root', commas)).toBe(false)
    expect(allows(['app-*'], 'app-1,app-2', commas)).toBe(true)
    expect(allows(['app,web'], 'app,web', commas)).toBe(true)
    expect(allows(['x'], 'x', () => undefined)).toBe(false)
  })
})
