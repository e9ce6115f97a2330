import { describe, expect, test } from 'vitest'
import { explain } from '../../../src/engines/pki/roles/decide.ts'
import { createRole } from '../../../src/engines/pki/roles/role.ts'
import { ask, circumstances, csr, now, refusal, request } from './asking.ts'

/** The parts of a certificate besides its names, and those that come from a CSR. */

const anyName = { allow_any_name: true }
const cn = { commonName: 'a.example.com' }
const hour = 3_600_000
const second = Math.floor(now / 1000) * 1000

describe('validity', () => {
  const span = (...asked: Parameters<typeof ask>) => {
    const { notBefore, notAfter } = ask(...asked).validity
    return [second - notBefore, notAfter - second].map((time) => time / 1000)
  }

  test.each([
    [{}, {}, [30, 2_764_800]],
    [{ ttl: 3600 }, {}, [30, 3600]],
    [{ ttl: 3600 }, { ttlSeconds: 60 }, [30, 60]],
    [{ ttl: 3600, max_ttl: 7200 }, { ttlSeconds: 7200 }, [30, 7200]],
    [{ max_ttl: 86400 * 400 }, { ttlSeconds: 86400 * 400 }, [30, 86400 * 400]],
    [{ not_before_duration: 0 }, { ttlSeconds: 60 }, [0, 60]],
    [{ not_before_duration: 600 }, { ttlSeconds: 60 }, [600, 60]],
  ])('of role %j and request %j is %j seconds back and ahead', (settings, asked, expected) => {
    expect(span({ ...anyName, ...settings }, { ...cn, ...asked })).toEqual(expected)
  })

  test('is cut to the maximum of role or mount, with a warning', () => {
    expect(ask({ ...anyName, max_ttl: 2_592_000 }, { ...cn, ttlSeconds: 2_764_800 })).toMatchObject({
      validity: { notAfter: second + 2_592_000_000 },
      warnings: ['TTL "768h0m0s" is longer than permitted maxTTL "720h0m0s", so maxTTL is being used'],
    })
    expect(ask(anyName, { ...cn, ttlSeconds: 100 }, { maxTtlSeconds: 61 }).warnings).toEqual([
      'TTL "1m40s" is longer than permitted maxTTL "1m1s", so maxTTL is being used',
    ])
  })

  test('ends at not_after, of the role before that of the request', () => {
    const notAfter = '2027-01-02T03:04:05Z'
    const moment = Date.parse(notAfter)
    expect(ask(anyName, { ...cn, notAfter }).validity.notAfter).toBe(moment)
    expect(ask({ ...anyName, not_after: notAfter }, { ...cn, notAfter: '2030-01-01T00:00:00Z' })).toMatchObject({
      validity: { notAfter: moment },
      warnings: ['the not_after field was provided but the role has its own'],
    })
    expect(ask(anyName, { ...cn, notAfter: '9999-12-31T23:59:59Z' }).validity.notAfter).toBe(253_402_300_799_000)
    expect(ask(anyName, { ...cn, notAfter: '2027-01-02T03:04:05.999+01:00' }).validity.notAfter).toBe(moment - hour)
    expect(ask(anyName, { ...cn, notAfter: '2027-01-02t03:04:05z' }).validity.notAfter).toBe(moment)
  })

  test.each([
    [{}, { ttlSeconds: 60, notAfter: '2027-01-02T03:04:05Z' }, /^Either ttl or not_after should be provided\. Both/],
    [{ not_after: '2027-01-02T03:04:05Z' }, { ttlSeconds: 60 }, /^Either ttl or not_after should be provided\. Both/],
    [{}, { notAfter: 'tomorrow' }, /not a time/],
    [{}, { notAfter: '2027' }, /not a time/],
    [{}, { notAfter: '2027-02-30T00:00:00Z' }, /not a time/],
    [{}, { notAfter: '2027-01-02 03:04:05Z' }, /not a time/],
    [{}, { notAfter: '12027-01-02T03:04:05Z' }, /not a time/],
    [{}, { notAfter: '2027-01-02T24:00:00Z' }, /not a time/],
    [{}, { notAfter: '2027-01-02T03:04:05+24:00' }, /not a time/],
    [{}, { notAfter: '9999-12-31T23:59:59-01:00' }, /beyond 9999-12-31T23:59:59Z/],
    [{ max_ttl: 3600 }, { notAfter: '2027-01-02T03:04:05Z' }, /beyond 2026-11-22T09:00:00Z/],
    [
      {},
      { notAfter: '2020-01-01T00:00:00Z' },
      /^The certificate's Not Before \(2026-11-22T07:59:30Z\) is later than the certificate's Not After \(2020-01-01T00:00:00Z\)$/,
    ],
    [{}, { notAfter: '2026-11-22T07:59:50Z' }, /is in the past$/],
  ])('of role %j and request %j is refused', (settings, asked, text) => {
    expect(refusal({ ...anyName, ...settings }, { ...cn, ...asked })[0]).toMatch(text)
  })

  test.each([86_400 * 366 * 77, Number.MAX_SAFE_INTEGER])('%i seconds back, before 1950, is refused', (seconds) => {
    expect(refusal({ ...anyName, not_before_duration: seconds }, cn)).toEqual([
      'cannot satisfy request, as not_before_duration leads to a NotBefore before 1950',
      'role web: the times of a certificate begin in 1950 (RFC 5280 section 4.1.2.5); nearest setting: not_before_duration',
    ])
  })

  test('a max_ttl that would allow the not_after is named', () => {
    expect(refusal({ ...anyName, max_ttl: 3600 }, { ...cn, notAfter: '2026-11-22T10:00:00Z' })[1]).toBe(
      'role web: max_ttl is 1h0m0s; nearest setting: max_ttl=2h0m0s',
    )
  })
})

describe('usages', () => {
  test('are those of the role in the order of the standard, in any case of their names', () => {
    const key_usage = ['crlsign', 'DECIPHERONLY', ' KeyAgreement', 'digitalsignature', 'nonsense']
    const ext_key_usage = ['TIMESTAMPING', 'any', 'clientauth']
    const flags = { server_flag: true, client_flag: true, code_signing_flag: true, email_protection_flag: true }
    const role = { ...anyName, key_usage, ext_key_usage, ...flags, ext_key_usage_oids: ['1.2.3', '1.3.6.1.5.5.7.3.1'] }
    expect(ask(role, cn)).toMatchObject({
      keyUsages: ['DigitalSignature', 'KeyAgreement', 'CRLSign', 'DecipherOnly'],
      extendedKeyUsages: [
        '2.5.29.37.0',
        '1.3.6.1.5.5.7.3.1',
        '1.3.6.1.5.5.7.3.2',
        '1.3.6.1.5.5.7.3.3',
        '1.3.6.1.5.5.7.3.4',
        '1.3.6.1.5.5.7.3.8',
        '1.2.3',
      ],
    })
  })

  test('by default are signature, key agreement and encipherment, for servers and clients', () => {
    expect(ask(anyName, cn)).toMatchObject({
      keyUsages: ['DigitalSignature', 'KeyEncipherment', 'KeyAgreement'],
      extendedKeyUsages: ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'],
    })
  })

  test('may be empty', () => {
    const none = { ...anyName, key_usage: [], server_flag: false, client_flag: false }
    expect(ask(none, cn)).toMatchObject({ keyUsages: [], extendedKeyUsages: [] })
  })

  test.each([
    ['IPSECEndSystem', '1.3.6.1.5.5.7.3.5'],
    ['IPSECTunnel', '1.3.6.1.5.5.7.3.6'],
    ['IPSECUser', '1.3.6.1.5.5.7.3.7'],
    ['OCSPSigning', '1.3.6.1.5.5.7.3.9'],
    ['MicrosoftServerGatedCrypto', '1.3.6.1.4.1.311.10.3.3'],
    ['NetscapeServerGatedCrypto', '2.16.840.1.113730.4.1'],
  ])('%s is %s', (name, oid) => {
    const role = { ...anyName, ext_key_usage: [name], server_flag: false, client_flag: false }
    expect(ask(role, cn).extendedKeyUsages).toEqual([oid])
  })
})

describe('the subject', () => {
  test('has its attributes in the order of the reference, several values of one together, each once', () => {
    const role = {
      ...anyName,
      country: ['DE'],
      organization: ['Ada', 'Bob', 'Ada'],
      ou: ['x'],
      locality: ['l'],
      province: ['p'],
      street_address: ['s'],
      postal_code: ['12345'],
      allowed_serial_numbers: ['*'],
      allowed_user_ids: ['*'],
    }
    const { subject } = ask(role, { ...cn, serialNumber: '7', userIds: ['u'] })
    expect(subject.map((rdn) => rdn.map(({ type, value }) => `${type}=${value}`))).toEqual([
      ['2.5.4.6=DE'],
      ['2.5.4.10=Ada', '2.5.4.10=Bob'],
      ['2.5.4.11=x'],
      ['2.5.4.7=l'],
      ['2.5.4.8=p'],
      ['2.5.4.9=s'],
      ['2.5.4.17=12345'],
      ['2.5.4.3=a.example.com'],
      ['2.5.4.5=7'],
      ['0.9.2342.19200300.100.1.1=u'],
    ])
  })
})

describe('the contents of a CSR', () => {
  const names = { commonName: 'c.example.com', dns: ['d.example.com'], email: ['u@example.com'], uri: ['urn:a:b'] }
  const role = { ...anyName, allowed_uri_sans: ['*'] }

  test('takes the place of the names of the request, with warnings', () => {
    const asked = { commonName: 'r.example.com', altNames: ['s.example.com'], uriSans: ['urn:c'], ipSans: ['::1'] }
    const decision = ask(role, { ...asked, csr: csr({ ...names, ip: [Buffer.of(1, 2, 3, 4)] }) })
    expect(decision.names).toEqual({
      dns: ['c.example.com', 'd.example.com'],
      email: ['u@example.com'],
      ip: [Buffer.of(1, 2, 3, 4)],
      uri: ['urn:a:b'],
      other: [],
    })
    expect(decision.warnings).toEqual([
      'the common_name field was provided but the role is set with "use_csr_common_name" set to true',
      'the alt_names field was provided but the role is set with "use_csr_sans" set to true',
      'the ip_sans field was provided but the role is set with "use_csr_sans" set to true',
      'the uri_sans field was provided but the role is set with "use_csr_sans" set to true',
    ])
  })

  test('does not when the role says so', () => {
    const own = { ...role, use_csr_common_name: false, use_csr_sans: false }
    const asked = { commonName: 'r.example.com', altNames: ['s.example.com'] }
    expect(ask(own, { ...asked, csr: csr(names) })).toMatchObject({
      names: { dns: ['r.example.com', 's.example.com'], email: [], uri: [] },
      warnings: [],
    })
    expect(refusal(own, { csr: csr(names) })[0]).toMatch(/^the common_name field is required/)
  })

  test('leaves the common name to the request when the CSR has none', () => {
    expect(ask(role, { ...cn, csr: csr({}) }).names.dns).toEqual(['a.example.com'])
  })

  test('is held to the same rules', () => {
    const web = { allowed_domains: ['example.com'], allow_subdomains: true }
    expect(refusal(web, { csr: csr({ commonName: 'bad.org' }) })[0]).toBe(
      'common name bad.org not allowed by this role',
    )
    const bad = { ...names, dns: ['d.example.com', 'bad.org'] }
    expect(refusal(web, { csr: csr(bad) })[0]).toBe('subject alternate name bad.org not allowed by this role')
    expect(refusal(web, { csr: csr({ ...names, dns: ['a\u0000.example.com'] }) })).toHaveLength(2)
  })

  test('brings the extensions that the role lists, and no others', () => {
    const extension = (oid: string) => ({ oid, critical: false, value: Buffer.of(5, 0) })
    const extensions = ['1.2.3', '1.3.6.1.5.5.7.1.24', '2.5.29.19'].map(extension)
    const asked = { csr: csr({ ...names, extensions }) }
    expect(ask({ ...role, allowed_extensions: ['1.3.6.1.5.5.7.1.24'] }, asked)).toMatchObject({
      extensions: [extension('1.3.6.1.5.5.7.1.24')],
      warnings: ['specified CSR contained a Basic Constraints extension that was ignored during issuance'],
    })
    expect(ask(role, asked).extensions).toEqual([])
  })
})

describe('the key', () => {
  const key = (type: string, bits: number) => ({ csr: csr({ commonName: 'a.b', key: { type, bits } }) })

  test.each([
    [{ key_type: 'rsa' }, 'rsa', 2048],
    [{ key_type: 'rsa' }, 'rsa', 4096],
    [{ key_type: 'ec' }, 'ec', 384],
    [{ key_type: 'ec', key_bits: 224 }, 'ec', 224],
    [{ key_type: 'ed25519' }, 'ed25519', 0],
    [{ key_type: 'any', key_bits: 4096 }, 'rsa', 2048],
    [{ key_type: 'any' }, 'ec', 224],
    [{ key_type: 'any' }, 'ed25519', 0],
  ])('of a CSR may be for %j: %s %i', (settings, type, bits) => {
    expect(refusal({ ...anyName, ...settings }, key(type, bits))).toEqual([])
  })

  test.each([
    [{ key_type: 'ec' }, 'rsa', 2048, 'role requires keys of type ec', 'key_type=rsa'],
    [
      { key_type: 'rsa', key_bits: 4096 },
      'rsa',
      2048,
      "role requires a minimum of a 4096-bit key, but CSR's key is 2048 bits",
      'key_bits=2048',
    ],
    [
      { key_type: 'ec', key_bits: 384 },
      'ec',
      256,
      "role requires a minimum of a 384-bit key, but CSR's key is 256 bits",
      'key_bits=256',
    ],
    [
      { key_type: 'rsa' },
      'rsa',
      1024,
      "role requires a minimum of a 2048-bit key, but CSR's key is 1024 bits",
      undefined,
    ],
    [{ key_type: 'any' }, 'rsa', 2047, 'RSA keys < 2048 bits are unsafe and not supported', undefined],
    [{ key_type: 'any' }, 'ec', 192, 'EC keys < 224 bits are unsafe and not supported', undefined],
    [{ key_type: 'any' }, 'dsa', 2048, 'Unknown key type in CSR: dsa', undefined],
  ])('of a CSR may not be for %j: %s %i', (settings, type, bits, text, setting) => {
    const [first, rule] = refusal({ ...anyName, ...settings }, key(type, bits))
    expect(first).toBe(text)
    expect(rule).toMatch(setting === undefined ? /no role setting can allow it$/ : new RegExp(`${setting}$`))
  })

  test('is not made by a role of key_type any', () => {
    expect(refusal({ ...anyName, key_type: 'any' }, cn)[0]).toBe(
      'role key type "any" not allowed for issuing certificates, only signing',
    )
  })
})

describe('other contents', () => {
  test('are those of the role', () => {
    const role = { ...anyName, policy_identifiers: ['1.2.3', '{"oid":"1.2.4","cps":"http://x/","notice":"n"}'] }
    expect(ask({ ...role, basic_constraints_valid_for_non_ca: true, no_rev_avail: true }, cn)).toMatchObject({
      policies: [{ oid: '1.2.3' }, { oid: '1.2.4', cps: 'http://x/', notice: 'n' }],
      basicConstraints: true,
      noRevAvail: true,
    })
    expect(ask(anyName, cn)).toMatchObject({ policies: [], basicConstraints: false, noRevAvail: false, extensions: [] })
  })
})

describe('templates', () => {
  const role = (domain: string) => ({
    allowed_domains: [domain],
    allowed_domains_template: true,
    allow_subdomains: true,
  })
  const team = '{{identity.entity.metadata.team}}'

  test.each([
    [team, 'a.blue.example.com'],
    ['{{ identity.entity.name }}.example.com', 'a.ada.example.com'],
    ['{{identity.entity.aliases.auth_token_1.metadata.team}}', 'a.blue.example.com'],
    ['{{identity.entity.aliases.auth_token_1.name}}.example.com', 'a.ada.example.com'],
    ['{{identity.entity.aliases.auth_token_1.custom_metadata.team}}', 'a.blue.example.com'],
    ['plain.example.com', 'a.plain.example.com'],
  ])('%s allows %s', (domain, commonName) => {
    expect(refusal(role(domain), { commonName })).toEqual([])
    expect(refusal(role(domain), { commonName: 'a.example.org' })).toHaveLength(2)
  })

  test.each([
    '{{identity.entity.metadata.star}}',
    '{{identity.entity.metadata.nothing}}',
    '{{identity.entity.metadata.absent}}',
    '{{identity.entity.metadata.constructor}}',
    '{{identity.groups.names.x.id}}',
    '{{identity.entity.name',
    '{{{{identity.entity.name}}}}',
  ])('%s allows nothing', (domain) => {
    const settings = { ...role(domain), allow_bare_domains: true, allow_glob_domains: true, enforce_hostnames: false }
    for (const commonName of ['a.b', '*', 'a.', domain, 'a.ada', 'ada']) {
      expect(refusal(settings, { commonName }), commonName).toHaveLength(2)
    }
  })

  test('are plain text unless the role declares them as templates', () => {
    const plain = { ...role(team), allowed_domains_template: false }
    expect(refusal(plain, { commonName: 'a.blue.example.com' })).toHaveLength(2)
  })

  test('may be in URIs too', () => {
    const uris = {
      ...anyName,
      allowed_uri_sans: ['spiffe://x/{{identity.entity.name}}'],
      allowed_uri_sans_template: true,
    }
    expect(refusal(uris, { ...cn, uriSans: ['spiffe://x/ada'] })).toEqual([])
    expect(refusal(uris, { ...cn, uriSans: ['spiffe://x/bob'] })).toHaveLength(2)
  })
})

describe('an explanation', () => {
  const role = createRole('web', { allowed_domains: ['example.com'], allow_subdomains: true, allow_ip_sans: false })

  test('tells for every value whether the role allows it; issuing refuses with the first', () => {
    const asked = {
      commonName: 'bad.org',
      altNames: ['a.example.com', 'example.com'],
      ipSans: ['::1'],
      ttlSeconds: 9_999_999,
    }
    const { allowed, checks, warnings } = explain(role, request(asked), circumstances)
    expect(allowed).toBe(false)
    expect(checks.map(({ subject, value, refusal: no }) => [subject, value, no?.setting ?? null])).toEqual([
      ['key', 'rsa', null],
      ['common_name', 'bad.org', 'allowed_domains'],
      ['dns_san', 'bad.org', 'allowed_domains'],
      ['dns_san', 'a.example.com', null],
      ['dns_san', 'example.com', 'allow_bare_domains=true'],
      ['ip_san', '::1', 'allow_ip_sans=true'],
      ['validity', '2026-12-24T08:00:00Z', null],
    ])
    expect(warnings).toHaveLength(1)
    expect(() => ask({ allowed_domains: ['example.com'] }, asked)).toThrow(
      'common name bad.org not allowed by this role',
    )
  })

  test('has no refusal for allowed values', () => {
    const { allowed, checks } = explain(role, request({ commonName: 'a.example.com' }), circumstances)
    expect(allowed).toBe(true)
    expect(checks.every(({ refusal: no }) => no === undefined)).toBe(true)
  })
})
