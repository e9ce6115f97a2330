import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { canonicalPath, splitTarget } from '../../src/request/path.ts'

const segment = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .filter((text) => /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(text) && !text.includes('/') && !/^\.{1,2}$/.test(text))
const path = fc.array(segment, { minLength: 1, maxLength: 5 }).filter(([first]) => first !== 'v1')
const encode = (segments: string[]) => segments.map(encodeURIComponent).join('/')

const refusal = (raw: string): string => {
  try {
    canonicalPath(raw)
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.message
    throw error
  }
  return 'accepted'
}

test('the bare form and the /v1/ form are one path', () => {
  fc.assert(
    fc.property(path, (segments) => {
      const plain = segments.join('/')
      expect(canonicalPath(`/${encode(segments)}`).path).toBe(plain)
      expect(canonicalPath(`/v1/${encode(segments)}`).path).toBe(plain)
    }),
  )
})

test('the canonical form of a canonical path is itself', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), (text) => {
      if (refusal(`/${text}`) !== 'accepted') return
      const first = canonicalPath(`/${text}`).path
      if (first === '' || first === 'v1' || first.startsWith('v1/')) return
      expect(canonicalPath(`/${encode(first.split('/'))}`).path).toBe(first)
    }),
  )
})

test('no accepted path has an empty, dotted or unprintable segment', () => {
  const piece = fc.constantFrom(
    '/',
    '//',
    '.',
    '..',
    '%2e',
    '%2E%2e',
    '%2f',
    '%5c',
    'a',
    '%00',
    '%',
    'v1',
    '%20',
    '\u0001',
    '%c3%a9',
    '%ff',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const raw = `/${pieces.join('')}`
      if (refusal(raw) !== 'accepted') return
      const { path } = canonicalPath(raw)
      if (path === '') return
      for (const part of path.split('/')) {
        expect(part).not.toMatch(/^\.{0,2}$/)
        expect(part).toMatch(/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u)
      }
    }),
    { numRuns: 1000 },
  )
})

test.each([
  ['/v1/transit/../sys', 'path cannot contain parent references'],
  ['/v1/transit/%2e%2e/sys', 'path cannot contain parent references'],
  ['/..', 'path cannot contain parent references'],
  ['/v1/./transit', 'the path must not contain a "." segment'],
  ['/v1//transit', 'the path must not contain an empty segment ("//")'],
  ['/transit/keys//', 'the path must not contain an empty segment ("//")'],
  ['//', 'the path must not contain an empty segment ("//")'],
  ['/transit/keys/a%2Fb', 'the path must not contain an encoded slash (%2F)'],
  ['/transit/keys/%2e%2e%2fx', 'the path must not contain an encoded slash (%2F)'],
  ['/transit/keys/a%00', 'the path contains a character that cannot be printed'],
  ['/transit/keys/a%0d%0aX', 'the path contains a character that cannot be printed'],
  ['/transit/keys/\u00e9', 'the path contains a character that must be percent-encoded'],
  ['/transit/keys/%c2%85', 'the path contains a character that cannot be printed'],
  ['/transit/keys/%E2%80%AE', 'the path contains a character that cannot be printed'],
  ['/transit/keys/%zz', 'the path contains a percent-encoding that is not UTF-8'],
  ['/transit/keys/%ff', 'the path contains a percent-encoding that is not UTF-8'],
  ['*', 'the request path must begin with "/"'],
  ['', 'the request path must begin with "/"'],
])('%s: %s', (raw, text) => {
  expect(refusal(raw)).toBe(text)
})

test('percent-encoding is undone once only, and case is kept', () => {
  expect(canonicalPath('/V1/%54ransit/%252e%252e').path).toBe('V1/Transit/%2e%2e')
  expect(canonicalPath('/%76%31/transit').path).toBe('transit')
  expect(canonicalPath('/v1/v1/transit').path).toBe('v1/transit')
})

test('a slash at the end is told apart and not kept', () => {
  expect(canonicalPath('/v1/transit/keys/')).toEqual({ path: 'transit/keys', trailingSlash: true })
  expect(canonicalPath('/v1/transit/keys')).toEqual({ path: 'transit/keys', trailingSlash: false })
  for (const root of ['/', '/v1', '/v1/']) expect(canonicalPath(root).path).toBe('')
})

test('a target in absolute form loses scheme and host', () => {
  expect(splitTarget('http://h:1/v1/a?b=c?d')).toEqual({ rawPath: '/v1/a', query: 'b=c?d' })
  expect(splitTarget('/v1/http://x')).toEqual({ rawPath: '/v1/http://x', query: '' })
})
