import { describe, expect, test } from 'vitest'
import { ask, csr, refusal } from './asking.ts'

/** Alternative names that are not host names, and identifiers in the subject. */

const open = { allow_any_name: true, require_cn: false }

describe('IP addresses', () => {
  test('are taken in every form, and an IPv4 address in IPv6 form is the IPv4 address', () => {
    const ipSans = ['10.0.0.1', '::1', '2001:db8::a:1', '::ffff:10.0.0.2', '::ffff:a00:3', '1:2:3:4:5:6:1.2.3.4', '::1']
    expect(ask(open, { ipSans }).names.ip.map((address) => address.toString('hex'))).toEqual([
      '0a000001',
      '00000000000000000000000000000001',
      '20010db80000000000000000000a0001',
      '0a000002',
      '0a000003',
      '00010002000300040005000601020304',
      '00000000000000000000000000000001',
    ])
  })

  test.each(['', '1.2.3', '010.0.0.1', '1.2.3.4/32', 'fe80::1%eth0', '::1::', '1.2.3.4\u0000', 'example.com'])(
    'are no such text as %j',
    (text) => {
      expect(refusal(open, { ipSans: [text] })[0]).toBe(`the value ${JSON.stringify(text)} is not a valid IP address`)
    },
  )

  test('are refused by a role without any, from the request and from the CSR', () => {
    const role = { ...open, allow_ip_sans: false }
    const text = 'IP Subject Alternative Names are not allowed in this role, but was provided via'
    expect(refusal(role, { ipSans: ['10.0.0.1'] })).toEqual([
      `${text} the API`,
      'role web: IP addresses are not allowed; nearest setting: allow_ip_sans=true',
    ])
    expect(refusal(role, { csr: csr({ ip: [Buffer.of(10, 0, 0, 1)] }) })[0]).toBe(`${text} CSR`)
  })

  const networks = {
    ...open,
    allowed_ip_sans_cidr: ['10.1.2.3/9', '2001:db8::/33', '::ffff:192.0.2.0/120', '7.7.7.7/32'],
  }

  test.each(['10.0.0.0', '10.127.255.255', '::ffff:10.1.1.1', '2001:db8:7fff::1', '192.0.2.255', '7.7.7.7'])(
    'in a network are allowed: %s',
    (address) => {
      expect(refusal(networks, { ipSans: [address] })).toEqual([])
    },
  )

  test.each(['10.128.0.0', '::ffff:10.128.0.1', '::10.1.1.1', '2001:db8:8000::1', '192.0.3.0', '7.7.7.6', '::a01:101'])(
    'in no network are refused: %s',
    (address) => {
      expect(refusal(networks, { ipSans: [address] })).toEqual([
        `the IP address "${address}" is not allowed in this role`,
        'role web: no allowed network contains the address; nearest setting: allowed_ip_sans_cidr',
      ])
    },
  )

  test('of a CSR in the IPv6 form of IPv4 do not slip past a network', () => {
    const mapped = Buffer.from('00000000000000000000ffff0a800001', 'hex')
    expect(refusal(networks, { csr: csr({ ip: [mapped] }) })[0]).toBe(
      'the IP address "10.128.0.1" is not allowed in this role',
    )
  })

  test('of every family lie in a network of length 0 of their own', () => {
    const role = { ...open, allowed_ip_sans_cidr: ['0.0.0.0/0'] }
    expect(refusal(role, { ipSans: ['255.255.255.255', '::ffff:1.2.3.4'] })).toEqual([])
    expect(refusal(role, { ipSans: ['::1'] })).toHaveLength(2)
  })
})

describe('URIs', () => {
  const role = { ...open, allowed_uri_sans: ['spiffe://example.com/*', 'urn:a:b'] }

  test.each(['spiffe://example.com/a/b', 'spiffe://example.com/', 'urn:a:b'])('that match are allowed: %s', (uri) => {
    expect(ask(role, { uriSans: [uri] }).names.uri).toEqual([uri])
  })

  test.each(['spiffe://example.org/a', 'urn:a:bc', 'SPIFFE://example.com/a'])('that do not are refused: %s', (uri) => {
    expect(refusal(role, { uriSans: ['urn:a:b', uri] })[0]).toBe(
      'URI Subject Alternative Names were provided via the API which are not valid for this role',
    )
    expect(refusal(role, { csr: csr({ uri: [uri] }) })[0]).toContain('provided via CSR which')
  })

  test.each([
    'a',
    '//example.com/',
    'spiffe:',
    'http://a b',
    'http://a/%zz',
    'http://bücher.de/',
    'http://a/\u0000',
    '1:a',
    'http://',
    'http:///x',
    'file:///x',
    'http://?x',
    'http://#x',
    'http://u@',
    'http://:80/',
    'http://a:b/',
    'http://a:1:2/',
    'http://a@b@c/',
    'http://[::1',
    'http://::1/',
    'http://[]/',
    'http://[1.2.3.4]/',
    'http://[::1]x/',
    'http://[:::]/',
    'http://a/[x]',
    'urn:a[b]',
    'http://a/#b#c',
    'urn:#a',
  ])('must not be a text like %j', (uri) => {
    expect(refusal({ ...role, allowed_uri_sans: ['*'] }, { uriSans: [uri] })[0]).toBe(
      `the provided URI Subject Alternative Name ${JSON.stringify(uri)} is not a valid URI`,
    )
  })

  test.each([
    ...['spiffe://trust_domain/ns/a', 'urn:a:b', 'mailto:u@example.com', 'tel:+1-201-555-0123', 'tag:a,2001:b?c#d'],
    ...['http://u:p@example.com:80/a/b?c=d/e?#f', 'https://example.com', 'https://example.com?a', 'ldap://[::1]:389/'],
    ...['http://[2001:db8::1.2.3.4]/', 'http://127.0.0.1:/', 'file:/x', 'a:b//c', 'http://a%20b/%7e', 'spiffe://a#b'],
  ])('may be a text like %s', (uri) => {
    expect(ask({ ...role, allowed_uri_sans: ['*'] }, { uriSans: [uri] }).names.uri).toEqual([uri])
  })

  test('are refused if the role allows none', () => {
    expect(refusal(open, { uriSans: ['urn:a:b'] })).toEqual([
      'URI Subject Alternative Names are not allowed in this role, but were provided via the API',
      'role web: no URI is allowed; nearest setting: allowed_uri_sans',
    ])
  })
})

describe('other names', () => {
  const role = { ...open, allowed_other_sans: ['1.2.3;UTF8:a*', '1.2.3;utf-8:zz', '1.3.6.1.4.1.311.20.2.3;utf8:*'] }

  test('are allowed by OID and glob', () => {
    const otherSans = ['1.2.3;UTF8:abc', '1.2.3;Utf-8:zz', '1.3.6.1.4.1.311.20.2.3;UTF8:u@x;y:z']
    expect(ask(role, { otherSans }).names.other).toEqual([
      { oid: '1.2.3', value: 'abc' },
      { oid: '1.2.3', value: 'zz' },
      { oid: '1.3.6.1.4.1.311.20.2.3', value: 'u@x;y:z' },
    ])
  })

  test.each([
    ['1.2.4;UTF8:abc', 'other SAN OID 1.2.4 not allowed by this role'],
    ['1.2.3;UTF8:bc', 'other SAN bc not allowed for OID 1.2.3 by this role'],
    ['junk', 'could not parse requested other SAN: expected a semicolon in other SAN "junk"'],
    ['1.2.3;UTF8', 'could not parse requested other SAN: expected a colon in other SAN "1.2.3;UTF8"'],
    [
      '1.2.3;IA5:a',
      'could not parse requested other SAN: only utf8 other SANs are supported; found non-supported type in other SAN "1.2.3;IA5:a"',
    ],
    ['a.b;UTF8:a', 'could not parse requested other SAN: expected an OID in other SAN "a.b;UTF8:a"'],
    ['3.1;UTF8:a', 'could not parse requested other SAN: expected an OID in other SAN "3.1;UTF8:a"'],
  ])('are refused: %s', (other, text) => {
    expect(refusal(role, { otherSans: [other] })[0]).toBe(text)
  })

  test('are all allowed by a single *, which has no such meaning beside other entries', () => {
    expect(refusal({ ...open, allowed_other_sans: ['*'] }, { otherSans: ['1.9;UTF8:x'] })).toEqual([])
    expect(refusal({ ...open, allowed_other_sans: ['*', '1.2;UTF8:x'] }, { otherSans: ['1.9;UTF8:x'] })).toHaveLength(2)
    expect(refusal(open, { otherSans: ['1.9;UTF8:x'] })).toHaveLength(2)
  })

  test('of a CSR count too, and those of the request are added', () => {
    const other = [{ oid: '1.2.3', value: 'abc' }]
    const asked = { csr: csr({ other }), otherSans: ['1.2.3;UTF8:zz'] }
    expect(ask(role, asked).names.other.map(({ value }) => value)).toEqual(['zz', 'abc'])
    expect(ask({ ...role, use_csr_sans: false }, asked).names.other.map(({ value }) => value)).toEqual(['zz'])
    expect(refusal(role, { csr: csr({ other: [{ oid: '1.2.3', value: undefined }] }) })[0]).toContain('only utf8')
    expect(refusal(role, { csr: csr({ other: [{ oid: '1.2.5', value: 'a' }] }) })[0]).toContain('OID 1.2.5 not allowed')
  })
})

describe('serial numbers of the subject', () => {
  const role = { ...open, allowed_serial_numbers: ['a1', 'b*'] }
  const subject = (asked: Parameters<typeof ask>[1]) =>
    ask(role, asked)
      .subject.flat()
      .map(({ value }) => value)

  test('come from the request, and more of them from entries with the OID of serialNumber', () => {
    const asked = { serialNumber: 'a1', altNames: ['2.5.4.5;UTF8:b2', 'x.a'], otherSans: ['2.5.4.5;UTF8:b3'] }
    expect(ask(role, asked)).toMatchObject({ names: { dns: ['x.a'], other: [] } })
    expect(subject(asked)).toEqual(['a1', 'b2', 'b3'])
  })

  test('come from the CSR when the request has none', () => {
    expect(subject({ csr: csr({ serialNumbers: ['b9'] }) })).toEqual(['b9'])
    expect(subject({ csr: csr({ serialNumbers: ['zz'] }), serialNumber: 'a1' })).toEqual(['a1'])
  })

  test.each([
    [{ serialNumber: 'c' }, 'c'],
    [{ serialNumber: 'A1' }, 'A1'],
    [{ altNames: ['2.5.4.5;UTF8:c'] }, 'c'],
    [{ otherSans: ['2.5.4.5;UTF8:c'] }, 'c'],
    [{ csr: csr({ serialNumbers: ['c'] }) }, 'c'],
  ])('are refused unless they match: %j', (asked, serial) => {
    expect(refusal(role, asked)).toEqual([
      `serial_number ${serial} not allowed by this role`,
      `role web: ${serial} matches nothing in allowed_serial_numbers; nearest setting: allowed_serial_numbers`,
    ])
  })

  test('are all refused by an empty list', () => {
    expect(refusal(open, { serialNumber: 'a' })).toHaveLength(2)
  })
})

describe('user IDs', () => {
  const role = { ...open, allowed_user_ids: ['Ada', 'b*'] }

  test('match whole in any case, or a glob in its case', () => {
    expect(ask(role, { userIds: ['aDA', 'bob'] }).subject).toEqual([
      [
        { type: '0.9.2342.19200300.100.1.1', value: 'aDA' },
        { type: '0.9.2342.19200300.100.1.1', value: 'bob' },
      ],
    ])
    expect(refusal(role, { userIds: ['bob', 'Bob'] })[0]).toBe('user_id Bob is not allowed by this role')
    expect(refusal(open, { userIds: ['bob'] })[0]).toBe('user_id bob is not allowed by this role')
    expect(refusal({ ...open, allowed_user_ids: ['*'] }, { userIds: ['anyone'] })).toEqual([])
  })

  test('come from the CSR when the request has none', () => {
    expect(refusal(role, { csr: csr({ userIds: ['eve'] }) })).toHaveLength(2)
    expect(refusal(role, { csr: csr({ userIds: ['eve'] }), userIds: ['bob'] })).toEqual([])
  })
})
