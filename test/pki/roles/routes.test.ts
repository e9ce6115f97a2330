import { describe, expect, test } from 'vitest'
import { initialSettings } from '../../../src/engines/pki/roles/fields.ts'
import { done, expectData, expectRefused, fresh, useNode } from '../../api/node.ts'

const node = useNode()
const noIssuer =
  'Issuing Certificate was set to default, but no default issuing certificate (configurable at /config/issuers) is currently set'

const write = (name: string, body: Record<string, unknown>) => node.root.post(`pki/roles/${name}`, body)
const patch = (name: string, body: unknown) => node.root.call('PATCH', `pki/roles/${name}`, body)
const read = (name: string) => node.root.get(`pki/roles/${name}`)
const dataOf = (reply: { body: unknown }) => (reply.body as { data: Record<string, unknown> }).data

/** The defaults of a role: the table of the specification. */
const defaults = {
  issuer_ref: 'default',
  ttl: 0,
  max_ttl: 0,
  allow_localhost: true,
  allowed_domains: [],
  allowed_domains_template: false,
  allow_bare_domains: false,
  allow_subdomains: false,
  allow_glob_domains: false,
  allow_wildcard_certificates: true,
  allow_any_name: false,
  enforce_hostnames: true,
  allow_ip_sans: true,
  allowed_ip_sans_cidr: [],
  allowed_uri_sans: [],
  allowed_uri_sans_template: false,
  allowed_other_sans: [],
  allowed_serial_numbers: [],
  server_flag: true,
  client_flag: true,
  code_signing_flag: false,
  email_protection_flag: false,
  key_type: 'rsa',
  key_bits: 2048,
  signature_bits: 256,
  use_pss: false,
  key_usage: ['DigitalSignature', 'KeyAgreement', 'KeyEncipherment'],
  ext_key_usage: [],
  ext_key_usage_oids: [],
  use_csr_common_name: true,
  use_csr_sans: true,
  ou: [],
  organization: [],
  country: [],
  locality: [],
  province: [],
  street_address: [],
  postal_code: [],
  generate_lease: false,
  no_store: false,
  require_cn: true,
  policy_identifiers: [],
  basic_constraints_valid_for_non_ca: false,
  not_before_duration: 30,
  not_after: '',
  cn_validations: ['email', 'hostname'],
  allowed_user_ids: [],
  no_rev_avail: false,
  allowed_extensions: [],
}

/** For every field a value other than the default, as a client may send it, and as a read shows it. */
const others: Readonly<Record<keyof typeof defaults, readonly [sent: unknown, read: unknown]>> = {
  issuer_ref: ['elsewhere', 'elsewhere'],
  ttl: ['1h', 3600],
  max_ttl: ['2d', 172800],
  allow_localhost: [false, false],
  allowed_domains: ['a.com, b.com,', ['a.com', 'b.com']],
  allowed_domains_template: ['true', true],
  allow_bare_domains: [true, true],
  allow_subdomains: [1, true],
  allow_glob_domains: [true, true],
  allow_wildcard_certificates: [false, false],
  allow_any_name: [true, true],
  enforce_hostnames: ['false', false],
  allow_ip_sans: [false, false],
  allowed_ip_sans_cidr: ['10.0.0.0/8', ['10.0.0.0/8']],
  allowed_uri_sans: [
    ['urn:*', 'spiffe://x/*'],
    ['urn:*', 'spiffe://x/*'],
  ],
  allowed_uri_sans_template: [true, true],
  allowed_other_sans: ['1.2.3;UTF8:*', ['1.2.3;UTF8:*']],
  allowed_serial_numbers: [['a*'], ['a*']],
  server_flag: [false, false],
  client_flag: [false, false],
  code_signing_flag: [true, true],
  email_protection_flag: [true, true],
  key_type: ['ec', 'ec'],
  key_bits: [384, 384],
  signature_bits: [512, 512],
  use_pss: [true, true],
  key_usage: ['CertSign', ['CertSign']],
  ext_key_usage: [['TimeStamping'], ['TimeStamping']],
  ext_key_usage_oids: ['1.2.3,1.2.4', ['1.2.3', '1.2.4']],
  use_csr_common_name: [false, false],
  use_csr_sans: [false, false],
  ou: ['x,y', ['x', 'y']],
  organization: [['Ada, Inc.'], ['Ada, Inc.']],
  country: ['DE', ['DE']],
  locality: ['l', ['l']],
  province: ['p', ['p']],
  street_address: ['s', ['s']],
  postal_code: [12345, ['12345']],
  generate_lease: [true, true],
  no_store: [true, true],
  require_cn: [false, false],
  policy_identifiers: [
    '[{"oid":"1.2.3","notice":"n"},{"oid":"1.2.4","cps":""},{"oid":"1.2.5","cps":"http://x/"}]',
    ['{"oid":"1.2.3","notice":"n"}', '1.2.4', '{"oid":"1.2.5","cps":"http://x/"}'],
  ],
  basic_constraints_valid_for_non_ca: [true, true],
  not_before_duration: [0, 0],
  not_after: ['2030-01-01T00:00:00Z', '2030-01-01T00:00:00Z'],
  cn_validations: ['Disabled', ['disabled']],
  allowed_user_ids: ['*', ['*']],
  no_rev_avail: [true, true],
  allowed_extensions: ['1.2.3', ['1.2.3']],
}
const sentAll = Object.fromEntries(Object.entries(others).map(([name, [sent]]) => [name, sent]))
const readAll = Object.fromEntries(Object.entries(others).map(([name, [, value]]) => [name, value]))

describe('writing a role', () => {
  test('takes names of 512 characters at most', async () => {
    const name = fresh('r').padEnd(512, 'x')
    await done(write(name, {}))
    for (const longer of [write(`${name}x`, {}), patch(`${name}x`, {})]) {
      expectRefused(await longer, 400, 'role names may have at most 512 characters')
    }
    expectRefused(await read(`${name}x`), 404)
  })

  test('with an empty body gives it the defaults of the specification', async () => {
    const name = fresh('r')
    expectData(await write(name, {}), defaults, [noIssuer])
    expectData(await read(name), defaults)
    expect(Object.keys(defaults).sort()).toEqual(Object.keys(initialSettings).sort())
  })

  test('takes every field, in the forms that clients send, and reads it back', async () => {
    const name = fresh('r')
    const reply = await done(write(name, sentAll))
    expect(dataOf(reply)).toEqual(readAll)
    expectData(await read(name), readAll)
  })

  test('replaces the whole role: absent fields have their defaults', async () => {
    const name = fresh('r')
    await done(write(name, sentAll))
    expect(dataOf(await done(write(name, { ou: 'z' })))).toEqual({ ...defaults, ou: ['z'] })
  })

  test('takes PUT as POST, and null as the default', async () => {
    const name = fresh('r')
    const body = { allow_any_name: true, cn_validations: null, max_ttl: null, allowed_domains: null }
    expectData(await node.root.call('PUT', `pki/roles/${name}`, body), { ...defaults, allow_any_name: true }, [
      noIssuer,
    ])
  })

  test.each([
    [{ key_type: 'ec' }, { key_type: 'ec', key_bits: 256, signature_bits: 0 }],
    [
      { key_type: 'ed25519', key_bits: 99 },
      { key_type: 'ed25519', key_bits: 0, signature_bits: 0 },
    ],
    [
      { key_type: 'any', key_bits: 2048, signature_bits: 384 },
      { key_type: 'any', key_bits: 0, signature_bits: 384 },
    ],
    [
      { key_type: 'rsa', key_bits: 3072 },
      { key_bits: 3072, signature_bits: 256 },
    ],
    [{ cn_validations: [] }, { cn_validations: ['email', 'hostname'] }],
    [{ key_usage: '' }, { key_usage: [] }],
    [{ issuer_ref: '' }, { issuer_ref: 'default' }],
    [{ policy_identifiers: '1.2.3, 1.2.4' }, { policy_identifiers: ['1.2.3', '1.2.4'] }],
    [{ policy_identifiers: ['1.2.3', '{"oid":"1.2.4"}'] }, { policy_identifiers: ['1.2.3', '1.2.4'] }],
    [
      { policy_identifiers: [{ oid: '1.2.3', cps: 'http://x/' }] },
      { policy_identifiers: ['{"oid":"1.2.3","cps":"http://x/"}'] },
    ],
    [{ ext_key_usage: ['clientauth', 'serverauth'] }, { ext_key_usage: ['clientauth', 'serverauth'] }],
  ])('with %j reads %j', async (sent, expected) => {
    const name = fresh('r')
    await done(write(name, sent))
    expect(dataOf(await done(read(name)))).toEqual({ ...defaults, ...expected })
  })

  test.each([
    [{ ttl: '2h', max_ttl: '1h' }, '"ttl" value must be less than "max_ttl" value'],
    [{ key_type: 'zz' }, 'unknown key type zz'],
    [{ key_bits: 1024 }, 'RSA keys < 2048 bits are unsafe and not supported: got 1024'],
    [{ key_bits: 2049 }, 'unsupported bit length for RSA key: 2049'],
    [{ key_type: 'ec', key_bits: 1024 }, 'unsupported bit length for EC key: 1024'],
    [{ signature_bits: 100 }, 'unsupported hash signature algorithm: 100'],
    [{ ext_key_usage_oids: 'a.b' }, '"a.b" could not be parsed as a valid oid for an extended key usage'],
    [{ allowed_other_sans: 'junk' }, 'error parsing allowed_other_sans: expected a semicolon in other SAN "junk"'],
    [
      { policy_identifiers: 'a.b' },
      'policy identifier "a.b" is neither a valid OID: not dotted numbers, Nor JSON Policy Identifier: not a JSON object',
    ],
    [
      { policy_identifiers: ['{"oid":"x"}'] },
      'policy identifier "{\\"oid\\":\\"x\\"}" is neither a valid OID: not dotted numbers, Nor JSON Policy Identifier: its oid is not dotted numbers',
    ],
    [{ cn_validations: 'zz' }, 'cn_validations value incorrect: unknown type: `zz`'],
    [{ cn_validations: 'email,email' }, 'cn_validations value incorrect: `email` specified multiple times'],
    [
      { cn_validations: 'email,disabled' },
      'cn_validations value incorrect: cannot specify `disabled` along with `email` or `hostname`',
    ],
    [{ not_after: 'tomorrow' }, 'not_after "tomorrow" is not a time of the form YYYY-MM-DDTHH:MM:SSZ'],
    [{ allowed_ip_sans_cidr: '10.0.0.0/33' }, 'allowed_ip_sans_cidr: "10.0.0.0/33" is not a network in CIDR notation'],
    [
      { allowed_extensions: '2.5.29.19' },
      'allowed_extensions: 2.5.29.19 (basic constraints) is never copied from a CSR',
    ],
    [{ allowed_extensions: 'x' }, 'allowed_extensions: "x" is not an OID'],
    [{ ou: 'a\u0000b' }, 'ou contains a control character'],
    [
      { ttl: 'junk' },
      'Field validation failed: error converting input for field "ttl": expected seconds or a duration such as "90s", "1h30m" or "7d", with the units ns, us, ms, s, m, h or d',
    ],
    [
      { ttl: -5 },
      `Field validation failed: error converting input for field "ttl": cannot provide negative value '-5'`,
    ],
  ])('with %j is refused: %s', async (body, text) => {
    const name = fresh('r')
    expectRefused(await write(name, body), 400, text)
    expectRefused(await read(name), 404)
  })

  test.each([
    [{ issuer_ref: 'zzz' }, 'Issuing Certificate was set to zzz but no issuing certificate currently has that name'],
    [
      { no_store: true, generate_lease: true },
      'mutually exclusive values no_store=true and generate_lease=true were both specified; no_store=true takes priority',
    ],
    [{ key_usage: 'zz' }, 'key_usage: no usage has the name zz; ignored'],
    [{ ext_key_usage: 'zz' }, 'ext_key_usage: no usage has the name zz; ignored'],
    [{ ttl: '1h', not_after: '2030-01-01T00:00:00Z' }, 'not_after takes priority over ttl'],
    [
      { allowed_domains_template: true },
      'templates take their values from the token; the creator of a token chooses its metadata',
    ],
    [
      { policy_identifiers: '1.2.3,1.2.3' },
      'nothing can be issued under this role: the certificate would be invalid: certificatePolicies: a policy comes twice (malformed)',
    ],
    [
      { policy_identifiers: [{ oid: '1.2.3', notice: 'n'.repeat(201) }] },
      'nothing can be issued under this role: the certificate would be invalid: certificatePolicies: a notice is longer than 200 characters (policy_notice)',
    ],
    [
      { country: 'USA', ou: 'o'.repeat(65) },
      'nothing can be issued under this role: the certificate would be invalid: subject: countryName is longer than 2 characters (name_length); subject: organizationalUnitName is longer than 64 characters (name_length)',
    ],
    [
      { key_usage: 'CertSign' },
      'nothing can be issued under this role: the certificate would be invalid: keyUsage: CertSign is for CA certificates only (key_usage_ca)',
    ],
    [{ not_before_bound: 'forbid' }, 'Endpoint ignored these unrecognized parameters: [not_before_bound]'],
  ])('with %j warns: %s', async (body, text) => {
    expect((await done(write(fresh('r'), body))).body).toMatchObject({ warnings: expect.arrayContaining([text]) })
  })
})

test('a role that can issue does not warn, whatever may be asked for under it', async () => {
  const able = {
    ...{ country: 'DE', ou: 'o'.repeat(64), policy_identifiers: [{ oid: '1.2.3', notice: 'n'.repeat(200) }, '1.2.4'] },
    ...{ key_usage: '', no_rev_avail: true, key_type: 'any', require_cn: false, not_after: '2020-01-01T00:00:00Z' },
  }
  expect((await done(write(fresh('r'), able))).body).toMatchObject({ warnings: [noIssuer] })
})

describe('patching a role', () => {
  test.each(Object.keys(others))('changes %s alone, and null sets it back', async (field) => {
    const name = fresh('r')
    const [sent, value] = others[field as keyof typeof others]
    // The size of a curve is not valid for the default key type.
    const given = field === 'key_bits' ? [4096, 4096] : [sent, value]
    await done(write(name, {}))
    const changed = {
      ...defaults,
      [field]: given[1],
      ...(field === 'key_type' ? { key_bits: 256, signature_bits: 0 } : {}),
    }
    expect(dataOf(await done(patch(name, { [field]: given[0] })))).toEqual(changed)
    expect(dataOf(await done(read(name)))).toEqual(changed)
    expect(dataOf(await done(patch(name, { [field]: null })))).toEqual(defaults)
  })

  test('keeps every other field', async () => {
    const name = fresh('r')
    await done(write(name, sentAll))
    expect(dataOf(await done(patch(name, { ou: 'z' })))).toEqual({ ...readAll, ou: ['z'] })
    expect(dataOf(await done(patch(name, {})))).toEqual({ ...readAll, ou: ['z'] })
  })

  test('is held to the rules as a whole, and changes nothing when refused', async () => {
    const name = fresh('r')
    await done(write(name, { max_ttl: '1h' }))
    expectRefused(await patch(name, { ttl: '2h', ou: 'x' }), 400, '"ttl" value must be less than "max_ttl" value')
    expect(dataOf(await done(read(name)))).toEqual({ ...defaults, max_ttl: 3600 })
  })

  test('of a role that is not there is refused, and so is a format of its own', async () => {
    const name = fresh('r')
    expectRefused(await patch(name, {}), 400, 'Unable to fetch role entry to patch')
    const typed = (type: string) => node.root.call('PATCH', `pki/roles/${name}`, {}, { 'content-type': type })
    expect((await typed('text/plain')).status).toBe(415)
    await done(write(name, {}))
    for (const type of ['application/merge-patch+json', 'application/json'])
      expect((await typed(type)).status).toBe(200)
  })
})

describe('a role', () => {
  test('that was deleted is gone; deleting it again is not an error', async () => {
    const name = fresh('r')
    await done(write(name, {}))
    for (let times = 0; times < 2; times++)
      expect(await node.root.delete(`pki/roles/${name}`)).toMatchObject({ status: 204, text: '' })
    expectRefused(await read(name), 404)
    expect(dataOf(await done(write(name, { ou: 'again' })))).toEqual({ ...defaults, ou: ['again'] })
    expectRefused(
      await node.root.post(`pki/roles/${fresh('r')}/explain`),
      400,
      expect.stringContaining('unknown role: '),
    )
  })

  test('belongs to its mount, and goes with it', async () => {
    const [mount, name] = [fresh('m'), fresh('r')]
    await done(node.root.post(`sys/mounts/${mount}`, { type: 'pki' }))
    await done(node.root.post(`${mount}/roles/${name}`, {}))
    expectRefused(await read(name), 404)
    expectRefused(await node.root.list('pki-none/roles'), 404, expect.any(String))
    await done(node.root.delete(`sys/mounts/${mount}`))
    await done(node.root.post(`sys/mounts/${mount}`, { type: 'pki' }))
    expectRefused(await node.root.get(`${mount}/roles/${name}`), 404)
  })

  test('needs a token, and the capability of each method', async () => {
    const name = fresh('r')
    await done(write(name, {}))
    expect((await node.server.client('').get(`pki/roles/${name}`)).status).toBe(403)
    const reader = await node.limited('path "pki/roles/*" { capabilities = ["read"] }')
    expect((await reader.get(`pki/roles/${name}`)).status).toBe(200)
    expect((await reader.post(`pki/roles/${name}`)).status).toBe(403)
    expect((await reader.call('PATCH', `pki/roles/${name}`, {})).status).toBe(403)
    expect((await reader.delete(`pki/roles/${name}`)).status).toBe(403)
    expect((await reader.list('pki/roles')).status).toBe(403)
  })

  test('set back by null breaks a policy that denies the field', async () => {
    const name = fresh('r')
    await done(write(name, { allow_ip_sans: false, max_ttl: 60 }))
    const limited = await node.limited(`path "pki/roles/*" {
      capabilities = ["patch", "update"]
      denied_parameters = { "max_ttl" = [], "allow_ip_sans" = [true] }
    }`)
    for (const body of [{ max_ttl: null }, { allow_ip_sans: null }, { allow_ip_sans: true }]) {
      expect((await limited.call('PATCH', `pki/roles/${name}`, body)).status, JSON.stringify(body)).toBe(403)
    }
    expect((await limited.call('PATCH', `pki/roles/${name}`, { ou: null })).status).toBe(200)
  })
})

describe('the list of roles', () => {
  test('has the names in their order, a page of them when asked, and is 404 while empty', async () => {
    const mount = fresh('m')
    await done(node.root.post(`sys/mounts/${mount}`, { type: 'pki' }))
    expectRefused(await node.root.list(`${mount}/roles`), 404)
    for (const name of ['b', 'a', 'c.d', 'C']) await done(node.root.post(`${mount}/roles/${name}`, {}))
    expectData(await node.root.list(`${mount}/roles`), { keys: ['C', 'a', 'b', 'c.d'] })
    expectData(await node.root.list(`${mount}/roles?after=a&limit=1`), { keys: ['b'] })
    expectRefused(await node.root.list(`${mount}/roles?after=z`), 404)
  })
})
