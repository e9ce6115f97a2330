import { describe, expect, test } from 'vitest'
import { readCertificate } from '../../src/x509/certificate.ts'
import { refusalOf } from '../../src/x509/constraints.ts'
import { parseAddress, parseRange } from '../../src/x509/extensions/address.ts'
import type { GeneralName } from '../../src/x509/extensions/generalname.ts'
import { type NameConstraints, writeNameConstraints } from '../../src/x509/extensions/nameconstraints.ts'
import { writeSubjectAltName } from '../../src/x509/extensions/subjectaltname.ts'
import { attributeTypes, emptyName, writeName } from '../../src/x509/name.ts'
import { type Ca, certify, ecPair, leafExtensions, makeCa, named, pemOf, useOpenssl } from './authority.ts'

const openssl = useOpenssl()
const dns = (value: string): GeneralName => ({ kind: 'dns', value })
const email = (value: string): GeneralName => ({ kind: 'email', value })
const uri = (value: string): GeneralName => ({ kind: 'uri', value })
const ip = (text: string): GeneralName => ({
  kind: 'ip',
  value: parseAddress(text) ?? parseRange(text) ?? Buffer.alloc(0),
})
const organization = writeName([[{ type: attributeTypes.organization, value: 'Example' }]])
const directory = (value: Buffer): GeneralName => ({ kind: 'directory', value })

const leafKey = ecPair()
const root = makeCa('Root')

/** The CA certificate that has these constraints. */
const constrained = (constraints: Partial<NameConstraints>, above: Ca | undefined = root): Ca =>
  makeCa('Constrained', above, { extensions: [writeNameConstraints({ permitted: [], excluded: [], ...constraints })] })

/** Whether openssl accepts a leaf under the chain, issuer first; refusalOf must agree. */
function openSslAccepts(ca: Ca, subject: Buffer, names: readonly GeneralName[]): boolean {
  const der = certify({
    subject,
    key: leafKey,
    issuer: ca.subject,
    signer: ca.key,
    extensions: [
      ...leafExtensions(leafKey, ca.key),
      ...(names.length > 0 ? [writeSubjectAltName(names, subject.equals(emptyName))] : []),
    ],
  })
  readCertificate(der)
  const [top, middle, leaf] = [root.certificate.der, ca.certificate.der, der].map((one, at) =>
    openssl.put(`${at}.pem`, pemOf(one)),
  )
  try {
    return openssl
      .run(['verify', '-x509_strict', '-CAfile', `${top}`, '-untrusted', `${middle}`, `${leaf}`])
      .includes('OK')
  } catch {
    return false
  }
}

interface Case {
  readonly constraints: Partial<NameConstraints>
  readonly subject?: Buffer
  readonly names?: readonly GeneralName[]
  readonly why?: string
}

const permits = (...permitted: readonly GeneralName[]) => ({ permitted })
const excludes = (...excluded: readonly GeneralName[]) => ({ excluded })
const withEmail = writeName([[{ type: attributeTypes.emailAddress, value: 'a@evil.example' }]])

describe('name constraints, as openssl has them too', () => {
  test.each<[string, Case]>([
    ['a host itself', { constraints: permits(dns('example.com')), names: [dns('example.com')] }],
    ['a host below', { constraints: permits(dns('example.com')), names: [dns('a.b.EXAMPLE.com')] }],
    [
      'a host beside',
      { constraints: permits(dns('example.com')), names: [dns('badexample.com')], why: 'outside the permitted' },
    ],
    [
      'the domain of a leading dot',
      { constraints: permits(dns('.example.com')), names: [dns('example.com')], why: 'outside' },
    ],
    ['a host below a leading dot', { constraints: permits(dns('.example.com')), names: [dns('a.example.com')] }],
    [
      'one bad name of two',
      { constraints: permits(dns('a.test')), names: [dns('a.test'), dns('b.test')], why: 'b.test' },
    ],
    ['either of two', { constraints: permits(dns('a.test'), dns('b.test')), names: [dns('b.test')] }],
    [
      'an excluded host',
      { constraints: excludes(dns('evil.test')), names: [dns('a.evil.test')], why: 'is excluded by' },
    ],
    ['no host excluded', { constraints: excludes(dns('evil.test')), names: [dns('good.test')] }],
    [
      'excluded beats permitted',
      { constraints: { ...permits(dns('test')), ...excludes(dns('b.test')) }, names: [dns('b.test')], why: 'excluded' },
    ],
    [
      'a host in the common name',
      { constraints: permits(dns('a.test')), subject: named('b.test'), why: 'DNS name b.test' },
    ],
    ['a common name that is no host', { constraints: permits(dns('a.test')), subject: named('John Doe') }],
    ['a kind that is not constrained', { constraints: permits(dns('a.test')), names: [ip('10.0.0.1')] }],
    ['an address', { constraints: permits(ip('10.0.0.0/8')), names: [ip('10.255.0.1')] }],
    ['an address outside', { constraints: permits(ip('10.0.0.0/8')), names: [ip('11.0.0.1')], why: '10.0.0.0/8' }],
    ['an address of the other length', { constraints: permits(ip('0.0.0.0/0')), names: [ip('::1')], why: 'outside' }],
    [
      'every long address excluded',
      { constraints: excludes(ip('::/0')), names: [ip('::ffff:1.2.3.4')], why: 'excluded' },
    ],
    ['a mailbox of a host', { constraints: permits(email('example.com')), names: [email('a@EXAMPLE.com')] }],
    [
      'a mailbox of a host below',
      { constraints: permits(email('example.com')), names: [email('a@b.example.com')], why: 'outside' },
    ],
    ['a mailbox of a domain', { constraints: permits(email('.example.com')), names: [email('a@b.example.com')] }],
    ['one mailbox', { constraints: permits(email('a@example.com')), names: [email('b@example.com')], why: 'outside' }],
    [
      'a mailbox in the subject',
      { constraints: permits(email('good.example')), subject: withEmail, why: 'email address a@evil.example' },
    ],
    ['a URI', { constraints: permits(uri('example.com')), names: [uri('https://example.com:8443/a?b')] }],
    ['a URI of a host below', { constraints: permits(uri('.example.com')), names: [uri('spiffe://a.example.com/x')] }],
    [
      'a URI of another host',
      { constraints: permits(uri('example.com')), names: [uri('https://example.org/')], why: 'outside' },
    ],
    [
      'a URI with a host in its user',
      { constraints: permits(uri('example.com')), names: [uri('https://example.com@evil.test/')], why: 'outside' },
    ],
    [
      'a URI without host',
      { constraints: permits(uri('example.com')), names: [uri('urn:a:b')], why: 'cannot be compared' },
    ],
    ['a subject within', { constraints: permits(directory(organization)), subject: organization }],
    [
      'a subject of other case',
      {
        constraints: permits(directory(organization)),
        subject: writeName([
          [{ type: attributeTypes.organization, value: 'eXaMPLE' }],
          [{ type: attributeTypes.commonName, value: 'x' }],
        ]),
      },
    ],
    ['a subject outside', { constraints: permits(directory(organization)), subject: named('x'), why: 'outside' }],
    ['an empty subject', { constraints: permits(directory(organization)), subject: emptyName, names: [dns('a.test')] }],
  ])('%s', (_, { constraints, subject = named('leaf'), names = [], why }) => {
    const ca = constrained(constraints)
    const refusal = refusalOf({ subject, subjectAltName: names, isCa: false }, [ca.certificate, root.certificate])
    if (why === undefined) expect(refusal).toBeUndefined()
    else expect(refusal).toContain(why)
    if (why !== undefined) expect(refusal).toContain('(CA certificate Constrained)')
    expect(openSslAccepts(ca, subject, names)).toBe(refusal === undefined)
  })

  test.each<[string, Case]>([
    [
      'a wildcard that stands for an excluded host',
      { constraints: excludes(dns('a.example.com')), names: [dns('*.example.com')], why: 'excluded' },
    ],
    [
      'a wildcard two labels above an excluded host',
      { constraints: excludes(dns('b.a.example.com')), names: [dns('*.example.com')] },
    ],
    ...['f*o', 'f*', '*o', 'fo*o', '*'].map((label): [string, Case] => [
      `the wildcard ${label} that stands for an excluded host`,
      { constraints: excludes(dns('foo.example.com')), names: [dns(`${label}.example.com`)], why: 'excluded' },
    ]),
    [
      'a wildcard that stands for a domain above, in the middle of a name',
      { constraints: excludes(dns('foo.example.com')), names: [dns('a.f*o.example.com')], why: 'excluded' },
    ],
    [
      'a wildcard of other letters than an excluded host',
      { constraints: excludes(dns('foo.example.com')), names: [dns('b*o.example.com'), dns('foo*o.example.com')] },
    ],
    [
      'a wildcard beside an excluded domain that begins with a dot',
      { constraints: excludes(dns('.foo.example.com')), names: [dns('f*o.example.com')] },
    ],
    [
      'a partial wildcard in the common name',
      { constraints: excludes(dns('foo.example.com')), subject: named('f*o.example.com'), why: 'excluded' },
    ],
    ['a final dot', { constraints: excludes(dns('evil.test')), names: [dns('evil.test.')], why: 'excluded' }],
    [
      'a URI with an address for a host',
      { constraints: excludes(uri('evil.test')), names: [uri('https://10.0.0.1/')], why: 'cannot be compared' },
    ],
    [
      'a text that is no mailbox',
      { constraints: excludes(email('evil.test')), names: [email('evil.test')], why: 'cannot be compared' },
    ],
    [
      'another name of a constrained kind',
      {
        constraints: permits({ kind: 'registered', value: '1.2.3' }),
        names: [{ kind: 'registered', value: '1.2.3' }],
        why: 'cannot be compared',
      },
    ],
  ])('stricter than openssl: %s', (_, { constraints, subject = named('leaf'), names = [], why }) => {
    const { certificate } = constrained(constraints)
    const refusal = refusalOf({ subject, subjectAltName: names, isCa: false }, [certificate])
    if (why === undefined) expect(refusal).toBeUndefined()
    else expect(refusal).toContain(why)
  })
})

describe('an international mailbox (RFC 9598 section 6)', () => {
  const smtp = (value: string | Buffer): GeneralName => ({ kind: 'other', oid: '1.3.6.1.5.5.7.8.9', value })
  const refuse = (constraints: Partial<NameConstraints>, name: GeneralName) =>
    refusalOf({ subject: named('leaf'), subjectAltName: [name], isCa: false }, [constrained(constraints).certificate])

  test.each<[string, Partial<NameConstraints>, GeneralName, string | undefined]>([
    ['within a permitted host', permits(email('good.test')), smtp('ñ@Good.test'), undefined],
    ['outside', permits(email('good.test')), smtp('ñ@evil.test'), 'the email address ñ@evil.test is outside'],
    ['of an excluded domain', excludes(email('.evil.test')), smtp('ñ@a.evil.test'), 'is excluded'],
    ['of no excluded domain', excludes(email('evil.test')), smtp('ñ@good.test'), undefined],
    ['with a host beyond ASCII', excludes(email('evil.test')), smtp('ñ@évil.test'), 'cannot be compared'],
    ['that is no text', excludes(email('evil.test')), smtp(Buffer.from('0500', 'hex')), 'cannot be compared'],
    ['beside constraints of hosts alone', permits(dns('good.test')), smtp('ñ@evil.test'), undefined],
  ])('%s', (_, constraints, name, why) => {
    const refusal = refuse(constraints, name)
    if (why === undefined) expect(refusal).toBeUndefined()
    else expect(refusal).toContain(why)
  })
})

describe('paths', () => {
  const leaf = { subject: named('leaf'), subjectAltName: [dns('a.test')], isCa: false }
  const ca = { ...leaf, isCa: true }
  const certificatesOf = (...list: readonly Ca[]) => list.map(({ certificate }) => certificate)

  test('a constraint higher up counts', () => {
    const top = makeCa('Top', undefined, {
      extensions: [writeNameConstraints({ permitted: [dns('b.test')], excluded: [] })],
    })
    const middle = makeCa('Middle', top)
    expect(refusalOf(leaf, certificatesOf(middle, top))).toContain('(CA certificate Top)')
    expect(refusalOf(leaf, certificatesOf(middle))).toBeUndefined()
  })

  test('a constraint counts whatever the key identifiers are, and one of another key of that name never does', () => {
    const extensions = [writeNameConstraints({ permitted: [dns('b.test')], excluded: [] })]
    const top = makeCa('Top', undefined, { extensions })
    const renamed = { ...top.certificate, subjectKeyId: Buffer.from('another') }
    const middle = makeCa('Middle', top)
    expect(refusalOf(leaf, [middle.certificate, renamed])).toContain('(CA certificate Top)')
    const loose = makeCa('Top')
    const posing = { ...loose.certificate, subjectKeyId: top.certificate.subjectKeyId }
    expect(refusalOf(leaf, [middle.certificate, posing, renamed])).toContain('(CA certificate Top)')
  })

  test('one path that allows it is enough', () => {
    const key = ecPair()
    const strict = makeCa('Top', undefined, {
      extensions: [writeNameConstraints({ permitted: [dns('b.test')], excluded: [] })],
    })
    const loose = makeCa('Loose')
    const [one, two] = [makeCa('Middle', strict, { key }), makeCa('Middle', loose, { key })]
    const issuer = makeCa('Issuer', one)
    expect(refusalOf(leaf, certificatesOf(issuer, one, strict))).toContain('b.test')
    expect(refusalOf(leaf, certificatesOf(issuer, one, strict, two, loose))).toBeUndefined()
  })

  test('path lengths count CA certificates below that are not self-issued', () => {
    const top = makeCa('Top', undefined, { pathLength: 1 })
    const middle = makeCa('Middle', top)
    const issuer = makeCa('Issuer', middle)
    expect(refusalOf(leaf, certificatesOf(middle, top))).toBeUndefined()
    expect(refusalOf(ca, certificatesOf(middle, top))).toContain('path length of 1')
    expect(refusalOf(ca, certificatesOf(top))).toBeUndefined()
    expect(refusalOf(leaf, certificatesOf(issuer, middle, top))).toContain('(CA certificate Top)')
    const rollover = makeCa('Middle', middle, { key: ecPair() })
    expect(rollover.certificate.isSelfIssued).toBe(true)
    expect(refusalOf(leaf, certificatesOf(rollover, middle, top))).toBeUndefined()
  })

  test('of two paths to a certificate the one with fewer that are not self-issued counts, however long it is', () => {
    const top = makeCa('Top', undefined, { pathLength: 2 })
    const key = ecPair()
    const short = makeCa('Issuer', makeCa('Side', top), { key })
    const side = makeCa('Side', top, { key: ecPair() })
    const detour = [makeCa('Issuer', top)]
    for (let renewal = 0; renewal < 3; renewal++)
      detour.unshift(makeCa('Issuer', detour[0], renewal === 2 ? { key } : {}))
    const twin = makeCa('Issuer', side, { key })
    const low = makeCa('Low', short)
    expect(refusalOf(leaf, certificatesOf(low, twin, side, top))).toContain('path length of 2')
    expect(refusalOf(leaf, certificatesOf(low, ...detour, top))).toBeUndefined()
    expect(refusalOf(leaf, certificatesOf(low, twin, side, ...detour, top))).toBeUndefined()
  })

  test('an issuer of path length zero issues leaves and no CA but its own renewal', () => {
    const issuer = makeCa('Issuer', undefined, { pathLength: 0 })
    expect(refusalOf(leaf, certificatesOf(issuer))).toBeUndefined()
    expect(refusalOf(ca, certificatesOf(issuer))).toContain('path length of 0')
    expect(refusalOf({ ...ca, subject: issuer.subject }, certificatesOf(issuer))).toBeUndefined()
  })

  test('every certificate of the path must be valid at the time that is asked for', () => {
    const end = Date.now() + 3_600_000
    const top = makeCa('Top', undefined, { notAfter: end })
    const middle = makeCa('Middle', top)
    expect(refusalOf(leaf, certificatesOf(middle, top), end - 3_000_000)).toBeUndefined()
    expect(refusalOf(leaf, certificatesOf(middle, top), end + 1000)).toMatch(/expired at .*\(CA certificate Top\)/)
    expect(refusalOf(leaf, certificatesOf(middle, top))).toBeUndefined()
    expect(refusalOf(leaf, certificatesOf(middle, top), 0)).toContain('not valid before')
  })

  test('a certificate that is not a CA, or may not sign certificates, issues nothing', () => {
    const der = certify({ subject: named('No CA'), key: leafKey, extensions: leafExtensions(leafKey, leafKey) })
    expect(refusalOf(leaf, [readCertificate(der)])).toContain('not a CA certificate')
  })

  test('many ways to the top are each walked once', () => {
    let layer: readonly Ca[] = [makeCa('Layer 0')]
    const all = [...layer]
    for (let depth = 1; depth <= 40; depth++) {
      const key = ecPair()
      layer = Array.from({ length: 3 }, () => makeCa(`Layer ${depth}`, layer[0], { key }))
      all.unshift(...layer)
    }
    const chain = certificatesOf(...all)
    expect(refusalOf(leaf, chain)).toBeUndefined()
    expect(refusalOf(leaf, chain, 0)).toContain('not valid before')
  })
})
