import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compile, rootAcl } from '../../src/auth/acl/compile.ts'
import { capabilities, decide, explain } from '../../src/auth/acl/decide.ts'
import { type Policy, parsePolicy } from '../../src/auth/acl/parse.ts'
import type { Capability } from '../../src/route.ts'

const acl = (...texts: string[]) => compile(new Map(texts.map((text, n) => [`p${n}`, parsePolicy(text)])))
const allow = (path: string, ...words: string[]) =>
  `path ${JSON.stringify(path)} { capabilities = ${JSON.stringify(words)} }\n`
const may = (text: string, capability: Capability, path: string) => decide(acl(text), capability, path).allowed

/** The reference's rules, followed to the letter without regard to speed: every candidate, compared pair by pair. */
function oracle(policies: Policy[], capability: Capability, path: string): boolean {
  const said = policies.flatMap(({ paths }) => paths)
  const table = new Map<string, Set<Capability>>()
  for (const { path: text } of said) {
    const words = said.filter((rule) => rule.path === text).map((rule) => rule.capabilities)
    const union = words.reduce((all, set) => all | set, 0)
    const list: Capability[] = ['create', 'read', 'update', 'patch', 'delete', 'list', 'sudo', 'deny']
    const names = list.filter((_, n) => union & (1 << n))
    table.set(text, new Set(names.includes('deny') ? [] : names))
  }
  const exact = (text: string) => !text.endsWith('*') && !text.split('/').includes('+')
  const covers = (text: string, asked: string): boolean => {
    const glob = text.endsWith('*')
    const want = (glob ? text.slice(0, -1) : text).split('/')
    const have = asked.split('/')
    if (!glob && want.length !== have.length) return false
    return want.every((segment, n) => {
      const given = have[n]
      if (given === undefined) return false
      if (segment === '+') return true
      return glob && n === want.length - 1 ? given.startsWith(segment) : segment === given
    })
  }
  const first = (text: string) => {
    const pieces = text.split('/')
    const plus = pieces.indexOf('+')
    return plus < 0 ? text.length - 1 : pieces.slice(0, plus).join('/').length + (plus > 0 ? 1 : 0)
  }
  const lower = (a: string, b: string): boolean => {
    if (first(a) !== first(b)) return first(a) < first(b)
    if (a.endsWith('*') !== b.endsWith('*')) return a.endsWith('*')
    const plus = (text: string) =>
      text
        .replace(/\*$/, '')
        .split('/')
        .filter((piece) => piece === '+').length
    if (plus(a) !== plus(b)) return plus(a) > plus(b)
    if (a.length !== b.length) return a.length < b.length
    return a < b
  }
  const best = (asked: string) => {
    const candidates = [...table.keys()].filter((text) => !exact(text) && covers(text, asked))
    return candidates.find((text) => candidates.every((rival) => rival === text || lower(rival, text)))
  }
  const bare = path.replace(/\/$/, '')
  const listing = capability === 'list'
  let winner = [...table.keys()].find((text) => exact(text) && text === path)
  if (listing) winner ??= [...table.keys()].find((text) => exact(text) && text === bare)
  winner ??= best(path)
  if (listing && bare !== path) winner ??= best(bare)
  return winner !== undefined && (table.get(winner)?.has(capability) ?? false)
}

const segment = fc.constantFrom('a', 'b', 'ab', '+', 'a+', 'c')
const ruleText = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '*', '/', '/*'))
  .map(([parts, end]) => parts.join('/') + end)
  .filter((text) => !text.includes('+*'))
const words = fc.subarray(['create', 'read', 'update', 'list', 'sudo', 'deny'] as Capability[])
const policy = fc
  .array(fc.tuple(ruleText, words), { maxLength: 8 })
  .map((rules) => rules.map(([p, w]) => allow(p, ...w)).join(''))
const asked = fc
  .tuple(
    fc.array(fc.constantFrom('a', 'b', 'ab', 'c', 'a+', 'x*'), { minLength: 1, maxLength: 4 }),
    fc.constantFrom('', '/'),
  )
  .map(([parts, end]) => parts.join('/') + end)

describe('decide', () => {
  test('agrees with a slow reading of the rules', () => {
    fc.assert(
      fc.property(
        fc.array(policy, { minLength: 1, maxLength: 3 }),
        fc.array(asked, { maxLength: 8 }),
        (texts, paths) => {
          const compiled = acl(...texts)
          const parsed = texts.map(parsePolicy)
          for (const path of [...paths, ...paths])
            for (const capability of ['read', 'list', 'update', 'sudo'] as Capability[])
              expect(decide(compiled, capability, path).allowed, `${capability} ${path}\n${texts.join('--\n')}`).toBe(
                oracle(parsed, capability, path),
              )
        },
      ),
      { numRuns: 1500 },
    )
  })

  test('the order of policies and of rules never matters', () => {
    fc.assert(
      fc.property(fc.array(policy, { minLength: 2, maxLength: 3 }), asked, (texts, path) => {
        expect(capabilities(acl(...texts), path)).toEqual(capabilities(acl(...texts.toReversed()), path))
      }),
    )
  })

  test('only the most specific rule counts', () => {
    const text = allow('transit/*', 'deny') + allow('transit/keys/+', 'read') + allow('transit/keys/prod*', 'deny')
    expect(may(text, 'read', 'transit/keys/a')).toBe(true)
    expect(may(text, 'read', 'transit/keys/production')).toBe(false)
    expect(may(text, 'read', 'transit/encrypt/a')).toBe(false)
    expect(may(allow('a/b', 'read') + allow('a/*', 'deny'), 'read', 'a/b')).toBe(true)
  })

  test('paths are compared exactly: case, slashes and prefixes are not stretched', () => {
    const text = allow('transit/keys/a', 'read', 'list') + allow('x/+/y', 'read')
    for (const path of [
      'transit/keys/A',
      'transit/keys/a/',
      'transit//keys/a',
      'transit/keys/ab',
      '/transit/keys/a',
      'transit/keys',
    ])
      expect(may(text, 'read', path), path).toBe(false)
    expect(may(text, 'list', 'transit/keys/a/')).toBe(true)
    expect(may(text, 'read', 'x/1/2/y')).toBe(false)
    expect(may(text, 'read', 'x/1/y/')).toBe(false)
    expect(may(text, 'read', 'x/1/y')).toBe(true)
    expect(may(text, 'read', 'x/1\n/y')).toBe(true)
    expect(may(text, 'read', 'x/1/y\n')).toBe(false)
    expect(may(allow('a.c/+', 'read'), 'read', 'abc/d')).toBe(false)
    expect(may(allow('a/*/c', 'read'), 'read', 'a/b/c')).toBe(false)
  })

  test('a union of policies grants everything that each grants, and one deny removes it all', () => {
    const both = acl(allow('p', 'read'), allow('p', 'update'))
    expect(capabilities(both, 'p')).toEqual(['read', 'update'])
    expect(capabilities(acl(allow('p', 'read', 'sudo'), allow('p', 'deny')), 'p')).toEqual(['deny'])
    expect(capabilities(both, 'q')).toEqual(['deny'])
    expect(capabilities(rootAcl, 'anything')).toEqual(['root'])
  })

  test('a refusal names the rule and the missing capability', () => {
    const compiled = acl(allow('transit/*', 'read'), allow('secret', 'deny'))
    const refused = decide(compiled, 'update', 'transit/keys/a', true)
    expect(refused).toMatchObject({ allowed: false, missing: ['sudo', 'update'], rule: { path: 'transit/*' } })
    expect(explain(refused, 'transit/keys/a')).toBe(
      'path "transit/*" in policy "p0" applies to "transit/keys/a" and does not grant "sudo" and "update"',
    )
    expect(explain(decide(compiled, 'read', 'secret'), 'secret')).toBe('path "secret" in policy "p1" denies "secret"')
    expect(explain(decide(compiled, 'read', 'x'), 'x')).toContain('has a rule for path "x", which needs "read"')
    expect(decide(compiled, 'read', 'x').missing).toEqual(['read'])
  })

  test('an answer is the same a second time, also after a flood of other paths', () => {
    const compiled = acl(allow('hot/+', 'read') + allow('hot/no', 'deny'))
    for (let n = 0; n < 20_000; n++) decide(compiled, 'read', `flood/${n}`)
    expect(decide(compiled, 'read', 'hot/a').allowed).toBe(true)
    expect(decide(compiled, 'read', 'hot/no').allowed).toBe(false)
    expect(decide(compiled, 'list', 'hot/a').allowed).toBe(false)
  })

  test('of the long texts that callers ask about, and of those that short paths are pieces of, nothing is kept', () => {
    const compiled = acl(allow('a/*', 'read'))
    const asked = 200
    const [characters, collect] = [500_000, collector()]
    const ask = (text: string) => {
      for (const path of text.split(',')) expect(capabilities(compiled, path)).toEqual(['read'])
    }
    collect()
    const before = process.memoryUsage().heapUsed
    for (let n = 0; n < asked; n++) {
      ask(`a/${n}/${'x'.repeat(characters)}`)
      ask(`a/a path of usual length ${n},a/${'x'.repeat(characters)}`)
    }
    collect()
    expect(process.memoryUsage().heapUsed - before).toBeLessThan((asked * characters) / 10)
  })
})

/** Collects garbage, whether or not Node was started with --expose-gc. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}
