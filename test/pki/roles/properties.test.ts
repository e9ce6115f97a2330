import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { showMoment } from '../../../src/clock/moment.ts'
import type { RoleSettings } from '../../../src/engines/pki/roles/fields.ts'
import { matchesGlob } from '../../../src/engines/pki/roles/glob.ts'
import { contains, readAddress, readNetwork } from '../../../src/engines/pki/roles/names/address.ts'
import { dnsNameOf } from '../../../src/engines/pki/roles/names/hostname.ts'
import { ask, circumstances, refusal } from './asking.ts'

/** Properties of names, and a second implementation of the rules that shares nothing with the first. */

/** The plain definition: every way to cut the text is tried. */
function globByTrying(pattern: string, text: string): boolean {
  if (pattern === '') return text === ''
  const [first = '', ...rest] = pattern
  if (first !== '*') return text.startsWith(first) && globByTrying(rest.join(''), text.slice(first.length))
  return Array.from({ length: text.length + 1 }, (_, cut) => cut).some((cut) =>
    globByTrying(rest.join(''), text.slice(cut)),
  )
}

test('a glob matches as trying every cut does', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*'), maxLength: 9 })
  fc.assert(
    fc.property(text, text, (pattern, subject) => {
      expect(matchesGlob(pattern, subject)).toBe(globByTrying(pattern, subject))
    }),
    { numRuns: 3000 },
  )
})

const labels = fc.constantFrom(
  'a',
  'b',
  'www',
  'x-1',
  'A',
  '*',
  'f*o',
  '**',
  'a_b',
  '-a',
  'a b',
  '',
  'bücher',
  'example',
  'com',
)
const hosts = fc.oneof(
  fc.array(labels, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('.')),
  fc
    .tuple(labels, fc.constantFrom('example.com', 'a.example.com', 'localhost', 'localdomain', 'x.org', 'EXAMPLE.com'))
    .map((parts) => parts.join('.')),
  fc.constantFrom('example.com', 'Example.Com', 'localhost', 'localdomain', 'x.org', 'bücher.example.com'),
)
const names = fc.oneof(
  { weight: 4, arbitrary: hosts },
  fc.tuple(fc.constantFrom('u', 'a*b', 'u@v'), hosts).map((parts) => parts.join('@')),
)
const roles: fc.Arbitrary<Partial<RoleSettings>> = fc.record({
  allow_any_name: fc.boolean().map((set) => set && true),
  allow_bare_domains: fc.boolean(),
  allow_subdomains: fc.boolean(),
  allow_glob_domains: fc.boolean(),
  allow_localhost: fc.boolean(),
  allow_wildcard_certificates: fc.boolean(),
  enforce_hostnames: fc.boolean(),
  allowed_domains: fc.array(
    fc.constantFrom('example.com', 'a.example.com', '*.example.com', 'x*', 'x.org', 'com', '*'),
    {
      maxLength: 3,
    },
  ),
  cn_validations: fc.constantFrom(['email'], ['hostname'], ['email', 'hostname']),
})

const strict = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/

/** The table of the rules once more: reasons to accept after reasons to refuse. */
function permitted(role: Partial<RoleSettings>, name: string): boolean {
  const at = name.split('@')
  if (at.length > 2) return false
  const isEmail = at.length === 2
  const host = at[at.length - 1] ?? ''
  const stars = [...name].filter((letter) => letter === '*').length
  if (stars > 0 && (isEmail || !role.allow_wildcard_certificates || stars > 1)) return false
  if (stars > 0 && !(name.split('.')[0] ?? '').includes('*')) return false
  const rest = stars > 0 ? name.split('.').slice(1).join('.') : host
  if (role.enforce_hostnames) {
    if (stars > 0 && !/^[A-Za-z0-9]*\*[A-Za-z0-9]*$/.test(name.split('.')[0] ?? '')) return false
    if (!(stars > 0 && rest === '') && !strict.test(rest.replaceAll('ü', 'u'))) return false
  }
  if (role.allow_any_name) return true
  const localhosts = role.allow_localhost ? ['localhost', 'localdomain'] : []
  if (localhosts.includes(rest)) return true
  if (role.allow_subdomains && localhosts.some((local) => rest.endsWith(`.${local}`))) return true
  return (role.allowed_domains ?? []).some((domain) => {
    const isSame = (text: string) => text.toLowerCase() === domain.toLowerCase()
    if (role.allow_bare_domains && (isSame(name) || (isEmail && isSame(host)))) return true
    if (role.allow_subdomains && (rest.endsWith(`.${domain}`) || (stars > 0 && isSame(rest)))) return true
    return role.allow_glob_domains === true && domain.includes('*') && globByTrying(domain, name)
  })
}

describe('a role', () => {
  test('accepts the common names that a second reading accepts, and no others', () => {
    let accepted = 0
    fc.assert(
      fc.property(
        roles,
        names.filter((name) => name !== ''),
        (role, commonName) => {
          const kind = commonName.includes('@') ? 'email' : 'hostname'
          const expected = permitted(role, commonName) && (role.cn_validations ?? []).includes(kind)
          if (expected) accepted++
          expect(refusal(role, { commonName, excludeCnFromSans: true }).length === 0).toBe(expected)
        },
      ),
      { numRuns: 6000 },
    )
    expect(accepted).toBeGreaterThan(500)
  })

  test('lets no name into a certificate that a second reading refuses', () => {
    let accepted = 0
    fc.assert(
      fc.property(roles, fc.array(names, { maxLength: 3 }), (role, altNames) => {
        const [commonName = 'localhost'] = altNames
        if (refusal(role, { commonName, altNames }).length > 0) return
        accepted++
        const decision = ask(role, { commonName, altNames })
        for (const name of [...decision.names.dns, ...decision.names.email, commonName]) {
          expect(permitted(role, name), name).toBe(true)
        }
        expect(new Set(decision.names.dns).size).toBe(decision.names.dns.length)
      }),
      { numRuns: 4000 },
    )
    expect(accepted).toBeGreaterThan(300)
  })

  test('never makes a certificate valid for longer than its maximum, or the mount’s', () => {
    const seconds = fc.integer({ min: 0, max: 10_000_000 })
    fc.assert(
      fc.property(seconds, seconds, seconds, seconds, (ttl, max_ttl, ttlSeconds, maxTtlSeconds) => {
        const limit = max_ttl || maxTtlSeconds
        if (limit === 0) return
        const role = { allow_any_name: true, ttl, max_ttl }
        const { notBefore, notAfter } = ask(role, { commonName: 'a', ttlSeconds }, { maxTtlSeconds }).validity
        expect(notAfter - circumstances.now).toBeLessThanOrEqual(limit * 1000)
        expect(circumstances.now - notBefore).toBeLessThan(31_000)
        expect(notAfter % 1000).toBe(0)
        const moment = { commonName: 'a', notAfter: showMoment(circumstances.now + (limit + 1) * 1000) }
        if (max_ttl > 0) expect(refusal(role, moment, { maxTtlSeconds })).toHaveLength(2)
      }),
    )
  })
})

test('a host name in lower case is converted as node:url converts it', () => {
  const letters = fc.constantFrom(...'abcxyz0189-üöäßéñ中文日本كتاب')
  const part = fc.string({ unit: letters, minLength: 1, maxLength: 12 })
  let converted = 0
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 3 }), (parts) => {
      const name = `${parts.join('.')}.com`
      const expected = domainToASCII(name)
      const found = dnsNameOf(name)
      // Names that break rules on hyphens or direction are refused by one of the two.
      if (expected === '' || found === undefined) return
      converted++
      expect(found).toBe(expected)
    }),
    { numRuns: 4000 },
  )
  expect(converted).toBeGreaterThan(500)
})

describe('addresses', () => {
  test('are read as they are written', () => {
    fc.assert(
      fc.property(fc.ipV6(), fc.ipV4(), (six, four) => {
        expect(readAddress(four)?.join('.')).toBe(four)
        expect(isIP(six)).toBe(6)
        // The parser of URLs is a second opinion: it compresses every address the same way.
        const bytes = readAddress(six)
        const groups =
          bytes?.length === 16 ? (bytes.toString('hex').match(/.{4}/g) ?? []).join(':') : `::ffff:${bytes?.join('.')}`
        expect(new URL(`http://[${groups}]/`).host).toBe(new URL(`http://[${six}]/`).host)
      }),
    )
  })

  test('lie in a network when their first bits are the same', () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.ipV4(), fc.integer({ min: 0, max: 32 }), (one, other, prefix) => {
        const bits = (text: string) =>
          text
            .split('.')
            .map((part) => Number(part).toString(2).padStart(8, '0'))
            .join('')
        const network = readNetwork(`${one}/${prefix}`)
        const address = readAddress(other)
        if (network === undefined || address === undefined) throw new Error('not read')
        expect(contains(network, address)).toBe(bits(one).slice(0, prefix) === bits(other).slice(0, prefix))
      }),
      { numRuns: 2000 },
    )
  })
})
