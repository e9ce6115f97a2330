import { describe, expect, test } from 'vitest'
import { compile, rootAcl } from '../../src/auth/acl/compile.ts'
import { parsePolicy } from '../../src/auth/acl/parse.ts'
import { reaches } from '../../src/auth/acl/reach.ts'

const granting = (path: string, capabilities = ['read']) =>
  compile(new Map([['p', parsePolicy(JSON.stringify({ path: { [path]: { capabilities } } }))]]))

describe('a policy reaches into a mount', () => {
  test.each([
    'a/b/',
    'a/b',
    'a/b/k',
    'a/b/k/x',
    '*',
    'a*',
    'a/*',
    'a/b*',
    'a/b/*',
    'a/b/k*',
    '+/b/k',
    'a/+/k',
    'a/+',
    '+/+/+',
    '+/*',
    'a/b/+/x*',
  ])('that lies at a/b/ by a rule on %s', (path) => {
    expect(reaches(granting(path), 'a/b/')).toBe(true)
  })

  test.each(['', 'a', 'a/', 'a/bc', 'a/c/*', 'b/*', 'ab*', 'a/bb*', '+', '+/c/k', 'a+/b/+', 'a/b+/+', 'a/+b/*'])(
    'that lies at a/b/ by no rule on %s',
    (path) => {
      expect(reaches(granting(path), 'a/b/')).toBe(false)
    },
  )

  test.each(['a/b/k', 'a/b/*', 'a/+/k'])('by no rule on %s that grants nothing or denies', (path) => {
    for (const words of [[], ['deny']]) expect(reaches(granting(path, words), 'a/b/')).toBe(false)
  })

  test('by the root policy, wherever it lies', () => {
    expect(reaches(rootAcl, 'a/b/')).toBe(true)
  })
})
