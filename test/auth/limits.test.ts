import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compile } from '../../src/auth/acl/compile.ts'
import { decide } from '../../src/auth/acl/decide.ts'
import { type Limits, uniteLimits } from '../../src/auth/acl/limits.ts'
import { parsePolicy } from '../../src/auth/acl/parse.ts'
import { ApiError } from '../../src/errors.ts'

const inBlock = (body: string) => `path "a" {\n capabilities = ["update"]\n ${body}\n}`
const limitsOf = (body: string): Limits | undefined => parsePolicy(inBlock(body)).paths[0]?.limits
const shown = (limits: Limits | undefined) =>
  limits && {
    ...limits,
    allowed: Object.fromEntries(limits.allowed),
    denied: Object.fromEntries(limits.denied),
  }
const nothing = { allowed: {}, denied: {}, required: [], minWrappingSeconds: 0, maxWrappingSeconds: 0 }

function refusal(body: string): string {
  try {
    parsePolicy(inBlock(body))
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.message.replace('failed to parse policy: ', '')
    throw error
  }
  throw new Error('was accepted')
}

describe('limits in a policy text', () => {
  test('names have no case, values keep their types, a single value is a list of one', () => {
    expect(
      shown(
        limitsOf(`allowed_parameters = { "Hash" = ["sha1", 5, true], key_size = [] }
          denied_parameters { "x" = "y", "map" = [{ "b" = 1 }], "list" = [["a", "b"]] }
          required_parameters = ["X", "x"]
          min_wrapping_ttl = "1m"
          max_wrapping_ttl = 3600`),
      ),
    ).toEqual({
      allowed: { hash: ['sha1', 5, true], key_size: [] },
      denied: { x: ['y'], map: [{ b: 1 }], list: [['a', 'b']] },
      required: ['x'],
      minWrappingSeconds: 60,
      maxWrappingSeconds: 3600,
    })
  })

  test('JSON says the same', () => {
    const text = JSON.stringify({
      path: {
        a: {
          capabilities: ['update'],
          denied_parameters: { Hash: ['sha1'], '*': [] },
          required_parameters: ['q'],
          max_wrapping_ttl: '90s',
        },
      },
    })
    expect(shown(parsePolicy(text).paths[0]?.limits)).toEqual({
      ...nothing,
      denied: { hash: ['sha1'], '*': [] },
      required: ['q'],
      maxWrappingSeconds: 90,
    })
  })

  test('that limit nothing are left out', () => {
    expect(limitsOf('')).toBe(undefined)
    expect(limitsOf('allowed_parameters = {} denied_parameters {} required_parameters = []')).toBe(undefined)
    expect(limitsOf('min_wrapping_ttl = 0 max_wrapping_ttl = "0s"')).toBe(undefined)
  })

  test.each([
    ['allowed_parameters = { "x" = [] }', { allowed: { x: [] } }],
    ['denied_parameters = { "x" = [] }', { denied: { x: [] } }],
    ['required_parameters = ["x"]', { required: ['x'] }],
    ['min_wrapping_ttl = 1', { minWrappingSeconds: 1 }],
    ['max_wrapping_ttl = 1', { maxWrappingSeconds: 1 }],
  ])('a block with %s alone keeps it', (body, kept) => {
    expect(shown(limitsOf(body))).toEqual({ ...nothing, ...kept })
  })

  test.each([
    ['allowed_parameters = "x"', 'path "a": allowed_parameters must name parameters and their values on line 3'],
    ['denied_parameters = ["x"]', 'path "a": denied_parameters must name parameters and their values on line 3'],
    ['denied_parameters "x" { }', 'path "a": denied_parameters: unexpected "x" on line 3'],
    [
      'denied_parameters = { "x" = ["a"], "X" = ["b"] }',
      'path "a": denied_parameters: parameter "x" occurs twice, again on line 3',
    ],
    [
      'denied_parameters { "x" = 1 } denied_parameters { "y" = 1 }',
      'path "a": key "denied_parameters" occurs twice, again on line 3',
    ],
    ['required_parameters = [5]', 'path "a": required_parameters must be a list of strings on line 3'],
    ['min_wrapping_ttl = true', 'path "a": error parsing min_wrapping_ttl on line 3: expected seconds or a duration'],
    ['min_wrapping_ttl = "soon"', expect.stringContaining('error parsing min_wrapping_ttl')],
    ['max_wrapping_ttl = -5', expect.stringContaining("cannot provide negative value '-5'")],
    [
      'min_wrapping_ttl = "2m" max_wrapping_ttl = 60',
      'path "a": max_wrapping_ttl cannot be less than min_wrapping_ttl',
    ],
  ])('%s is refused', (body, text) => {
    expect(refusal(body)).toEqual(text)
  })
})

const value = fc.constantFrom<unknown>('a', 'b*', 1, true)
const values = fc
  .dictionary(fc.constantFrom('x', 'y', '*'), fc.array(value, { maxLength: 2 }), { maxKeys: 3 })
  .map((named) => new Map(Object.entries(named)))
const seconds = fc.constantFrom(0, 10, 60)
const anyLimits: fc.Arbitrary<Limits> = fc.record({
  allowed: values,
  denied: values,
  required: fc.uniqueArray(fc.constantFrom('x', 'y')),
  minWrappingSeconds: seconds,
  maxWrappingSeconds: seconds,
})
const asSets = (limits: Limits) => {
  const sets = (named: Limits['allowed']) => new Map([...named].map(([name, list]) => [name, new Set(list)]))
  return { ...limits, allowed: sets(limits.allowed), denied: sets(limits.denied), required: new Set(limits.required) }
}

describe('the union of limits', () => {
  test('adds values up, lets an empty list (any value) win, unites required names and takes the smaller bound', () => {
    const compiled = compile(
      new Map(
        [
          inBlock('denied_parameters = { "x" = ["a"], "y" = ["b"] } required_parameters = ["r"] min_wrapping_ttl = 9'),
          inBlock('denied_parameters = { "x" = ["c"], "y" = [] } required_parameters = ["s"] min_wrapping_ttl = 7'),
          inBlock('allowed_parameters = { "z" = [] } max_wrapping_ttl = 5'),
          inBlock(''),
        ].map((text, n) => [`p${n}`, parsePolicy(text)]),
      ),
    )
    expect(shown(decide(compiled, 'update', 'a').rule?.limits)).toEqual({
      allowed: { z: [] },
      denied: { x: ['a', 'c'], y: [] },
      required: ['r', 's'],
      minWrappingSeconds: 7,
      maxWrappingSeconds: 5,
    })
  })

  test('has no order', () => {
    fc.assert(
      fc.property(anyLimits, anyLimits, anyLimits, (one, two, three) => {
        const forth = uniteLimits(uniteLimits(one, two), three)
        const back = uniteLimits(three, uniteLimits(two, one))
        expect(asSets(forth)).toEqual(asSets(back))
      }),
    )
  })

  test('has no effect beside a deny', () => {
    const texts = [inBlock('required_parameters = ["x"]'), 'path "a" { capabilities = ["deny"] }']
    const compiled = compile(new Map(texts.map((text, n) => [`p${n}`, parsePolicy(text)])))
    expect(decide(compiled, 'update', 'a').missing).toEqual(['update'])
  })
})
