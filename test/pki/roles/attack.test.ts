import { describe, expect, test } from 'vitest'
import { initialSettings } from '../../../src/engines/pki/roles/fields.ts'
import { readNameRequest } from '../../../src/engines/pki/roles/request.ts'
import { checkSettings } from '../../../src/engines/pki/roles/rules.ts'
import { ask, csr, refusal } from './asking.ts'

/** Names made to pass for others, and requests made to take long. */

const web = { allowed_domains: ['example.com'], allow_subdomains: true, allow_bare_domains: true }
const every = { allow_any_name: true, enforce_hostnames: false, require_cn: false }

describe('a name that looks like an allowed one is not', () => {
  test.each([
    ['a Cyrillic letter', 'www.еxample.com'],
    ['the sign for kelvin, which folds to k', 'as\u212a.com'],
    ['a long s', 'ſ.com'],
    ['a fullwidth letter', 'www.ｅxample.com'],
    ['a fullwidth dot', 'www．example．com'],
    ['an ideographic dot', 'example。com'],
    ['a label that hides the dot', 'evil。a.example.com'],
    ['a zero-width joiner', 'a\u200d.example.com'],
    ['a soft hyphen', 'exam\u00adple.com'],
    ['a mark that turns the direction', '\u202eexample.com'],
    ['letters that are not composed', 'bu\u0308cher.example.com'],
    ['a lone surrogate', 'a\ud800.example.com'],
    ['a null byte', 'evil.org\u0000.example.com'],
    ['a line break', 'evil.org\n.example.com'],
    ['a blank', ' example.com'],
    ['an A-label of ASCII letters', 'xn--www-.example.com'],
    ['an A-label that is none', 'xn--\u0000.example.com'],
    ['an A-label that cannot be decoded', 'xn--99999999999.example.com'],
    ['an A-label in capitals of another label', 'XN--A.example.com'],
    ['a slash', 'evil.org/.example.com'],
    ['a second @', 'u@evil.org@example.com'],
    ['a @ without host', 'u@'],
    ['a host of another domain behind a mailbox', 'example.com@evil.org'],
    ['a wildcard that is not the leftmost label', 'a.*.example.com'],
    ['two wildcards', '*.*.example.com'],
    ['a wildcard in an A-label', 'xn--*-kva.example.com'],
    ['a wildcard of the parent', '*.com'],
    ['the end of a longer domain', 'notexample.com'],
    ['a trailing dot', 'www.example.com.'],
    ['a leading dot', '.example.com'],
  ])('%s', (_, name) => {
    const role = { ...web, allowed_domains: ['example.com', 'ask.com', 's.com'] }
    const alone = { commonName: name, excludeCnFromSans: true }
    expect(refusal(role, alone)).toHaveLength(2)
    // Names below the domain are allowed when names need not be host names.
    if (!name.endsWith('.example.com')) expect(refusal({ ...role, enforce_hostnames: false }, alone)).toHaveLength(2)
    // Any alternative name that remains is below the domain, in letters that are allowed.
    const asked = { commonName: 'a.example.com', altNames: [name] }
    if (refusal(role, asked).length > 0) return
    for (const dns of ask(role, asked).names.dns) expect(dns).toMatch(/^[a-z0-9-]+(\.[a-z0-9-]+)*\.example\.com$/)
  })

  test.each(['\u0000', '\u001f', '\u007f', '\u0085', '\ud800'])(
    'no value holds %j, whatever the role allows',
    (character) => {
      const text = `a${character}b`
      const open = {
        ...every,
        allowed_serial_numbers: ['*'],
        allowed_user_ids: ['*'],
        allowed_uri_sans: ['*'],
        cn_validations: ['disabled'],
      }
      const asked = [
        { commonName: text },
        { altNames: [`${text}.com`] },
        { altNames: [`${text}@a.com`] },
        { serialNumber: text },
        { userIds: [text] },
        { uriSans: [`urn:${text}`] },
        { ipSans: [text] },
        { csr: csr({ dns: [text] }) },
        { csr: csr({ email: [`${text}@a.com`] }) },
      ]
      for (const one of asked) {
        if ('altNames' in one && refusal(open, one).length === 0) expect(ask(open, one).names.dns, text).toEqual([])
        else expect(refusal(open, one), JSON.stringify(one)).toHaveLength(2)
      }
    },
  )

  test('an e-mail address of a certificate is a mailbox in ASCII', () => {
    const atoms = ['a..b@a.com', '.a@a.com', 'a.@a.com', 'a<b>@a.com', 'a(b)@a.com', 'a:b@a.com']
    for (const email of ['ü@a.com', 'a b@a.com', '@a.com', 'a@ü b', 'a@', ...atoms]) {
      expect(refusal(every, { altNames: [email] }), email).toHaveLength(2)
    }
  })
})

describe('a request', () => {
  const many = Array.from({ length: 9_999 }, (_, index) => `host-${index}.d${index}.example.com`)

  test('of very many names is decided in time, by a role of very many domains', () => {
    const allowed_domains = many.map((name) => name.slice(name.indexOf('.') + 1))
    const role = { allowed_domains, allow_subdomains: true, allow_bare_domains: true, allow_glob_domains: true }
    const { names } = ask(role, { commonName: many[0] ?? '', altNames: many })
    expect(names.dns).toHaveLength(many.length)
    expect(refusal(role, { commonName: many[0] ?? '', altNames: [...many.slice(0, 9_000), 'bad.org'] })).toHaveLength(2)
  })

  test('of more names, or longer ones, than a certificate has is refused at once', () => {
    const names = (count: number) => ({ alt_names: many.slice(0, count), common_name: 'a' })
    expect(readNameRequest(names(9_990)).altNames).toHaveLength(9_990)
    expect(() => readNameRequest({ ...names(9_999), ip_sans: ['::1'] })).toThrow('at most 10000 names')
    expect(() => readNameRequest({ common_name: 'a'.repeat(4097) })).toThrow(
      'common_name: a name may have at most 4096',
    )
    expect(() => readNameRequest({}, csr({ dns: many, email: ['a@b'] }))).toThrow('at most 10000 names')
    expect(() => readNameRequest({}, csr({ uri: ['a'.repeat(4097)] }))).toThrow('csr: a name may have at most 4096')
  })

  test.each([
    ['dots', '.'.repeat(4096)],
    ['hyphens', 'a-'.repeat(2048)],
    ['letters beyond ASCII', 'ü'.repeat(4096)],
    ['labels beyond ASCII', 'ü.'.repeat(2048)],
    ['wildcards', '*'.repeat(4096)],
    ['signs of mailboxes', '@'.repeat(4096)],
    ['escapes', '%'.repeat(4096)],
    ['braces', '{'.repeat(4096)],
  ])('of the longest names of %s is decided in time', (_, name) => {
    const allowed = Array.from({ length: 1000 }, (_, index) => `${'*a'.repeat(20)}${index}`)
    const role = {
      allowed_domains: [...allowed, name, '{{'.repeat(1000)],
      allowed_domains_template: true,
      allow_glob_domains: true,
      allow_subdomains: true,
      allowed_uri_sans: allowed,
      allowed_other_sans: allowed.map((glob) => `1.2;UTF8:${glob}`),
      allowed_user_ids: allowed,
      allowed_serial_numbers: allowed,
      enforce_hostnames: false,
    }
    expect(refusal(role, { commonName: name })).toHaveLength(2)
    expect(refusal(role, { commonName: 'localhost', uriSans: [`urn:${name}`] })).toHaveLength(2)
    expect(refusal(role, { commonName: 'localhost', userIds: [name], serialNumber: name })).toHaveLength(2)
    expect(refusal(role, { commonName: 'localhost', otherSans: [`1.2;UTF8:${name}`] })).toHaveLength(2)
  })

  test('does not read globs as expressions', () => {
    const role = { ...every, allowed_user_ids: ['(a+)+$', '[ab]', 'a.c', '\\d*'] }
    expect(refusal(role, { userIds: ['aaaa'] })).toHaveLength(2)
    expect(refusal(role, { userIds: ['a'] })).toHaveLength(2)
    expect(refusal(role, { userIds: ['abc'] })).toHaveLength(2)
    expect(refusal(role, { userIds: ['\\d1', 'a.c', '[ab]'] })).toEqual([])
  })

  test('repeats no megabyte in its refusal', () => {
    for (const line of refusal({}, { commonName: 'a'.repeat(4096) })) expect(line.length).toBeLessThan(1000)
  })
})

describe('a role', () => {
  test('have limits on the number and length of their entries', () => {
    const domains = (count: number, domain = 'a.b') => ({
      ...initialSettings,
      allowed_domains: Array(count).fill(domain),
    })
    expect(checkSettings(domains(10_000))).toEqual([])
    expect(() => checkSettings(domains(10_001))).toThrow('allowed_domains may have at most 10000 entries')
    expect(() => checkSettings(domains(1, 'a'.repeat(4097)))).toThrow(
      'an entry of allowed_domains may have at most 4096',
    )
    expect(() => checkSettings(domains(1000, 'a'.repeat(4096)))).toThrow('a role may have at most 1000000 characters')
    expect(() => checkSettings(domains(1, 'a\u0000'))).toThrow('allowed_domains contains a control character')
  })
})
