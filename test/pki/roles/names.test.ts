import { describe, expect, test } from 'vitest'
import type { RoleSettings } from '../../../src/engines/pki/roles/fields.ts'
import { ask, csr, refusal } from './asking.ts'

/** The tables of names that the reference accepts and refuses, as common name and as alternative name. */

const example = ['example.com']
const bare = { allowed_domains: example, allow_bare_domains: true }
const subdomains = { allowed_domains: example, allow_subdomains: true }
const globs = { allowed_domains: ['*.example.com', 'ftp*.x.org'], allow_glob_domains: true }
const anyName = { allow_any_name: true }
const loose = { allow_any_name: true, enforce_hostnames: false }
const related = { allowed_domains: example }
const email = { ...bare, cn_validations: ['email'] }

const accepted: readonly (readonly [Partial<RoleSettings>, readonly string[]])[] = [
  [bare, ['example.com', 'EXAMPLE.COM', 'u@example.com', 'localhost', 'localdomain', '*.localhost', 'u@localhost']],
  [subdomains, ['a.example.com', 'a.b.example.com', '*.example.com', '*.a.example.com', 'foo*.example.com']],
  [subdomains, ['*foo.example.com', 'f*o.example.com', 'u@a.example.com', 'bücher.example.com', 'x.localhost']],
  [subdomains, ['x.localdomain', '*.EXAMPLE.com', 'xn--bcher-kva.example.com']],
  [globs, ['a.example.com', 'a.b.example.com', '*.example.com', 'ftp1.x.org', 'ftp1.b.x.org', 'u@b.example.com']],
  [anyName, ['anything', '*.a', '*', 'x@y', '1.2.3.4']],
  [loose, ['a b', 'a_b.com', '-a', 'a.', 'a..b']],
  [email, ['u@example.com']],
  [{ allowed_domains: ['u@example.com'], allow_bare_domains: true }, ['u@example.com', 'U@Example.com']],
  [related, ['localhost']],
]

const refused: readonly (readonly [Partial<RoleSettings>, readonly string[]])[] = [
  [bare, ['a.example.com', '*.example.com', 'x.localhost', 'bad.org', 'u@a.example.com', 'u@x.localhost']],
  [subdomains, ['example.com', 'u@example.com', 'A.EXAMPLE.COM', 'a.*.example.com', '*.*.example.com']],
  [subdomains, ['**.example.com', '*', 'a.example.com.', 'a_b.example.com', '-a.example.com', 'a b.example.com']],
  [subdomains, ['a@b@a.example.com', 'u@*.example.com', 'xexample.com', 'xn--bcher-.example.com', '..example.com']],
  [globs, ['example.com', 'xftp.x.org']],
  [anyName, ['a b', 'a_b.com', 'a.*.b', '*.*.a', 'u@a b']],
  [loose, ['*.*.a', 'a.*.b', 'a@b@c', 'x@*.y']],
  [{ ...anyName, allow_wildcard_certificates: false }, ['*.a', '*', 'f*o.a']],
  [email, ['example.com']],
  [{ ...bare, cn_validations: ['hostname'] }, ['u@example.com']],
  [{ allowed_domains: ['u@example.com'], allow_bare_domains: true }, ['example.com', 'v@example.com']],
  [{ allowed_domains: ['u@example.com'] }, ['u@example.com']],
  [related, ['example.com', 'a.example.com', '*.example.com']],
  [{ ...bare, allow_localhost: false }, ['localhost', 'localdomain', '*.localhost']],
  [{}, ['example.com']],
]

const each = (table: typeof accepted) =>
  table.flatMap(([settings, names]) => names.map((name) => [settings, name] as const))

describe('a common name', () => {
  test.each(each(accepted))('of a role with %j may be %s', (settings, name) => {
    expect(refusal(settings, { commonName: name, excludeCnFromSans: true })).toEqual([])
  })

  test.each(each(refused))('of a role with %j may not be %s', (settings, name) => {
    const [text, rule] = refusal(settings, { commonName: name, excludeCnFromSans: true })
    expect(text).toBe(`common name ${name} not allowed by this role`)
    expect(rule).toMatch(/^role web: .+; (nearest setting: .+|no role setting can allow it)$/)
  })

  test('is required, unless the role does not', () => {
    const [text, rule] = refusal(anyName, {})
    expect(text).toBe(
      'the common_name field is required, or must be provided in a CSR with "use_csr_common_name" set to true, unless "require_cn" is set to false',
    )
    expect(rule).toContain('nearest setting: require_cn=false')
    expect(ask({ ...anyName, require_cn: false }, {}).subject).toEqual([])
  })
})

describe('an alternative name', () => {
  const role = (settings: Partial<RoleSettings>) => ({ ...settings, require_cn: false })
  const hostnames = (table: typeof accepted) => each(table).filter(([settings]) => settings !== loose)
  // The kinds in cn_validations concern only common names.
  const policy = (table: typeof accepted) => hostnames(table).filter(([settings]) => !settings.cn_validations)

  test.each(policy(accepted))('of a role with %j may be %s', (settings, name) => {
    expect(refusal(role(settings), { altNames: [name] })).toEqual([])
  })

  test.each(policy(refused).filter(([, name]) => !/[ _]|(^|\.)-|[*]{2}|\*.*\*|\.\*/.test(name)))(
    'of a role with %j may not be %s',
    (settings, name) => {
      const kind = name.includes('@') ? 'email address' : 'subject alternate name'
      expect(refusal(role(settings), { altNames: [name] })[0]).toBe(`${kind} ${name} not allowed by this role`)
    },
  )

  test('that is not a host name is left out with a warning, as in the reference', () => {
    const decision = ask({ ...loose, require_cn: false }, { altNames: ['a_b.com', 'a.com', '*.*.b'] })
    expect(decision.names.dns).toEqual(['a.com'])
    expect(decision.warnings).toEqual(['these alt_names are not host names and were left out: a_b.com, *.*.b'])
  })

  test('that IDNA cannot convert is refused', () => {
    const [text] = refusal({ ...loose, require_cn: false }, { altNames: ['a..b'] })
    expect(text).toBe('subject alternate name a..b not allowed by this role')
  })
})

describe('names of a certificate', () => {
  test('begin with the common name, each once, DNS names in their order and addresses sorted', () => {
    const altNames = ['z.a', 'u@b.a', 'c.a', 'x@a', 'z.a', 'u@b.a', 'C.a']
    const { names } = ask(anyName, { commonName: 'c.a', altNames })
    expect(names.dns).toEqual(['c.a', 'z.a', 'C.a'])
    expect(names.email).toEqual(['u@b.a', 'x@a'])
  })

  test('are without the common name when the request excludes it', () => {
    const asked = { commonName: 'c.a', altNames: ['d.a'], excludeCnFromSans: true }
    expect(ask(anyName, asked).names.dns).toEqual(['d.a'])
    expect(ask(anyName, { ...asked, commonName: 'u@a' }).names.email).toEqual([])
  })

  test('are in ASCII, without folding case; the common name stays as it is', () => {
    const { names, subject } = ask(anyName, { commonName: 'Bücher.a', altNames: ['u@bücher.a', '*.bücher.a'] })
    expect(names.dns).toEqual(['xn--Bcher-kva.a', '*.xn--bcher-kva.a'])
    expect(names.email).toEqual(['u@xn--bcher-kva.a'])
    expect(subject).toEqual([[{ type: '2.5.4.3', value: 'Bücher.a' }]])
  })

  test('do not come from a common name that is not a host name', () => {
    expect(ask(loose, { commonName: 'Ada Lovelace' }).names).toEqual({ dns: [], email: [], ip: [], uri: [], other: [] })
  })

  test('an allowed domain beyond ASCII allows its subdomains in both forms', () => {
    const role = { allowed_domains: ['bücher.de'], allow_subdomains: true }
    expect(ask(role, { commonName: 'a.bücher.de' }).names.dns).toEqual(['a.xn--bcher-kva.de'])
  })
})

describe('cn_validations disabled', () => {
  const open = { allowed_domains: example, cn_validations: ['disabled'] }

  test.each(['anything at all', 'bad.org', '*.*.x', 'a@b@c', '*'])('refuses no name: %s', (commonName) => {
    expect(refusal(open, { commonName })).toEqual([])
    expect(ask(open, { commonName: 'bad.org', altNames: ['worse.org', 'u@worse.org'] }).names).toMatchObject({
      dns: ['bad.org', 'worse.org'],
      email: ['u@worse.org'],
    })
  })

  test.each(['anything at all', '*.*.x', 'a@b@c'])('leaves %s out of the alternative names', (commonName) => {
    expect(ask(open, { commonName }).names).toMatchObject({ dns: [], email: [] })
  })
})

describe('cn_validations disabled, and an alternative name that no certificate can have', () => {
  const open = { allowed_domains: example, cn_validations: ['disabled'], require_cn: false }
  const long = `${'a'.repeat(64)}.example.com`

  test.each(['host.example.com.', 'a..example.com', long, 'ü\u200b.example.com'])('leaves out %s', (name) => {
    const { names, warnings } = ask(open, { altNames: [name, 'a.example.com'] })
    expect(names.dns).toEqual(['a.example.com'])
    expect(warnings).toEqual([`these alt_names are not host names and were left out: ${name}`])
    expect(refusal({ ...open, cn_validations: [] }, { altNames: [name] })).not.toEqual([])
  })

  test.each(['a..b@example.com', '.a@example.com', 'a<b>@example.com', 'ü@example.com', 'a@b@c'])(
    'leaves out %s',
    (address) => {
      const { names, warnings } = ask(open, { altNames: [address, 'u@example.com'] })
      expect(names.email).toEqual(['u@example.com'])
      expect(warnings).toEqual([`these alt_names are not mailboxes and were left out: ${address}`])
      expect(refusal({ ...open, cn_validations: [] }, { altNames: [address] })).not.toEqual([])
    },
  )

  test('leaves out those of a CSR', () => {
    const names = csr({ dns: ['a b', '', 'a.example.com'], email: ['a..b@example.com', 'u@example.com'] })
    const decision = ask(open, { csr: names })
    expect(decision.names).toMatchObject({ dns: ['a.example.com'], email: ['u@example.com'] })
    expect(decision.warnings).toEqual([
      'these DNS names of the CSR are not host names and were left out: a b, ',
      'these e-mail addresses of the CSR are not mailboxes and were left out: a..b@example.com',
    ])
    expect(refusal({ ...open, cn_validations: [] }, { csr: names })).not.toEqual([])
  })
})

describe('a refusal names the nearest setting', () => {
  test.each([
    [{ allowed_domains: example, allow_subdomains: true }, 'example.com', 'allow_bare_domains=true'],
    [{ allowed_domains: example, allow_bare_domains: true }, 'a.example.com', 'allow_subdomains=true'],
    [{ allowed_domains: example, allow_bare_domains: true }, '*.example.com', 'allow_subdomains=true'],
    [{ allowed_domains: ['u@example.com'] }, 'u@example.com', 'allow_bare_domains=true'],
    [{ allowed_domains: ['*.x.org'] }, 'a.x.org', 'allow_glob_domains=true'],
    [{ allow_localhost: false }, 'localhost', 'allow_localhost=true'],
    [{}, 'a.localhost', 'allow_localhost=true with allow_subdomains=true'],
    [{ allowed_domains: example, allow_subdomains: true }, 'A.EXAMPLE.COM', 'allowed_domains'],
    [{ allowed_domains: example }, 'bad.org', 'allowed_domains'],
    [{ allow_any_name: true, allow_wildcard_certificates: false }, '*.a', 'allow_wildcard_certificates=true'],
    [{ allow_any_name: true }, 'a_b', 'enforce_hostnames=false'],
    [{ allow_any_name: true, cn_validations: ['email'] }, 'a.b', 'cn_validations=email,hostname'],
  ])('role with %j, %s: %s', (settings, commonName, setting) => {
    expect(refusal(settings, { commonName })[1]).toMatch(new RegExp(`; nearest setting: ${setting}$`))
  })

  test.each(['*.*.a', 'a.*.b', 'a@b@c', 'x@*.y', 'a\u0000b'])('and none for %j', (commonName) => {
    expect(refusal({ allow_any_name: true, enforce_hostnames: false }, { commonName })[1]).toMatch(
      /; no role setting can allow it$/,
    )
  })
})
