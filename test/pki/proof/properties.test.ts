import type { X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readCertificate } from '../../../src/x509/certificate.ts'
import { readTbs, writeCertificate, writeTbs } from '../../../src/x509/tbs.ts'
import { useSharedNode } from '../../api/node.ts'
import { certificateOf, createAuthority, dataOf } from '../api/authority.ts'
import { openssl } from '../api/csr.ts'

/** Certificates checked against their roles by readers that are not ours: node:crypto and openssl. */

const node = useSharedNode()

const usages = {
  DigitalSignature: 'Digital Signature',
  ContentCommitment: 'Non Repudiation',
  KeyEncipherment: 'Key Encipherment',
  DataEncipherment: 'Data Encipherment',
  KeyAgreement: 'Key Agreement',
} as const
const purposes = {
  server_flag: '1.3.6.1.5.5.7.3.1',
  client_flag: '1.3.6.1.5.5.7.3.2',
  code_signing_flag: '1.3.6.1.5.5.7.3.3',
  email_protection_flag: '1.3.6.1.5.5.7.3.4',
} as const
const curves = { 224: 'secp224r1', 256: 'prime256v1', 384: 'secp384r1', 521: 'secp521r1' } as const

const domains = ['example.com', 'a.example.com', 'x.org'] as const
const hosts = ['example.com', 'a.example.com', 'b.a.example.com', 'x.org', 'w.x.org', 'notx.org', 'localhost'] as const
/** Mostly true, since otherwise nearly every request would be refused. */
const mostly = fc.constantFrom(true, true, true, true, false)
const subset = <T>(values: readonly T[]) => fc.subarray([...values])

const roles = fc.record({
  key_type: fc.constantFrom('ec' as const, 'ed25519' as const),
  key_bits: fc.constantFrom(224, 256, 384, 521),
  allowed_domains: fc.oneof(fc.constant([...domains]), subset(domains)),
  allow_bare_domains: mostly,
  allow_subdomains: mostly,
  allow_localhost: mostly,
  allow_ip_sans: mostly,
  server_flag: fc.boolean(),
  client_flag: fc.boolean(),
  code_signing_flag: fc.boolean(),
  email_protection_flag: fc.boolean(),
  key_usage: subset(Object.keys(usages) as (keyof typeof usages)[]),
  organization: subset(['O', 'P, Q', 'Ö']),
  ou: subset(['U']),
  max_ttl: fc.constantFrom(3600, 86_400),
  not_before_duration: fc.constantFrom(0, 30, 3600),
  basic_constraints_valid_for_non_ca: fc.boolean(),
})
const requests = fc.record({
  common_name: fc.constantFrom(...hosts),
  alt_names: fc.subarray([...hosts], { maxLength: 3 }),
  ip_sans: subset(['10.0.0.1', '2001:db8::1']),
  exclude_cn_from_sans: fc.boolean(),
  ttl: fc.constantFrom(0, 60, 7200, 1_000_000),
})
type Role = typeof roles extends fc.Arbitrary<infer T> ? T : never
type Request = typeof requests extends fc.Arbitrary<infer T> ? T : never

/** The rule of the specification for plain host names. */
const allows = (role: Role, name: string): boolean =>
  (role.allow_localhost && name === 'localhost') ||
  role.allowed_domains.some(
    (domain) => (role.allow_bare_domains && name === domain) || (role.allow_subdomains && name.endsWith(`.${domain}`)),
  )

const satisfied = (role: Role, { common_name, alt_names, ip_sans }: Request): boolean =>
  [common_name, ...alt_names].every((name) => allows(role, name)) && (role.allow_ip_sans || ip_sans.length === 0)

const sorted = (values: Iterable<string>): string[] => [...new Set(values)].toSorted()

function expectWithin(certificate: X509Certificate, role: Role, request: Request, before: number): void {
  expect(certificate.ca).toBe(false)
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = certificate.publicKey
  expect(type).toBe(role.key_type)
  if (type === 'ec') expect(details?.namedCurve).toBe(curves[role.key_bits as keyof typeof curves])
  const wanted = Object.entries(purposes).flatMap(([flag, oid]) => (role[flag as keyof typeof purposes] ? [oid] : []))
  expect(sorted(certificate.keyUsage ?? [])).toEqual(wanted)
  const own = request.exclude_cn_from_sans ? [] : [request.common_name]
  const names = [...own, ...request.alt_names].map((name) => `DNS:${name}`)
  const addresses = request.ip_sans.map(
    (address) => `IP Address:${address.replace('2001:db8::1', '2001:DB8:0:0:0:0:0:1')}`,
  )
  expect(sorted(certificate.subjectAltName?.split(', ') ?? [])).toEqual(sorted([...names, ...addresses]))
  const rdns = certificate.subject.replaceAll('\\,', ',').split(/\n| \+ /)
  expect(sorted(rdns)).toEqual(
    sorted([
      ...role.organization.map((o) => `O=${o}`),
      ...role.ou.map((ou) => `OU=${ou}`),
      `CN=${request.common_name}`,
    ]),
  )
  const seconds = Math.min(request.ttl || 32 * 86_400, role.max_ttl)
  const [from, to] = [Date.parse(certificate.validFrom) / 1000, Date.parse(certificate.validTo) / 1000]
  expect(to - from).toBe(seconds + role.not_before_duration)
  expect(from + role.not_before_duration).toBeGreaterThanOrEqual(Math.floor(before / 1000))
  expect(from + role.not_before_duration).toBeLessThanOrEqual(Date.now() / 1000)
}

/** The key usages and basic constraints that openssl reads from each certificate. */
async function shown(pems: readonly string[]): Promise<readonly { usages: string[]; basic: boolean }[]> {
  const text = await openssl(['storeutl', '-noout', '-text', '-certs', 'all'], { all: `${pems.join('\n')}\n` })
  return text
    .split(/^\d+: Certificate$/m)
    .slice(1)
    .map((part) => ({
      usages: (/Key Usage: critical\n *(.*)\n/.exec(part)?.[1] ?? '').split(', ').filter((word) => word !== ''),
      basic: /Basic Constraints: critical\n *CA:FALSE/.test(part),
    }))
}

test('every certificate agrees with its role and request, and every refusal has a rule of the role', async () => {
  const pki = await createAuthority(node)
  const root = certificateOf(await pki.root())
  const issued: { readonly pem: string; readonly role: Role }[] = []
  await fc.assert(
    fc.asyncProperty(roles, fc.array(requests, { minLength: 1, maxLength: 4 }), async (role, asked) => {
      await pki.role('r', { allow_any_name: false, ...role })
      for (const request of asked) {
        const before = Date.now()
        const reply = await pki.post('issue/r', { ...request, alt_names: request.alt_names.join(',') })
        expect([reply.status, reply.text]).toEqual([satisfied(role, request) ? 200 : 400, expect.any(String)])
        if (reply.status !== 200) continue
        const certificate = certificateOf(dataOf(reply))
        expect(certificate.verify(root.publicKey)).toBe(true)
        expectWithin(certificate, role, request, before)
        issued.push({ pem: String(dataOf(reply).certificate), role })
      }
    }),
    { numRuns: 100 },
  )
  expect(issued.length).toBeGreaterThan(10)
  for (const [index, { usages: words, basic }] of (await shown(issued.map(({ pem }) => pem))).entries()) {
    const { role } = issued[index] as (typeof issued)[number]
    expect(words).toEqual(
      Object.entries(usages).flatMap(([name, word]) =>
        role.key_usage.includes(name as keyof typeof usages) ? [word] : [],
      ),
    )
    expect(basic).toBe(role.basic_constraints_valid_for_non_ca)
  }
  const { keys } = dataOf(await pki.list('certs')) as { keys: string[] }
  expect(new Set(keys).size).toBe(issued.length + 1)
  for (const { pem } of issued) {
    const { raw } = certificateOf({ certificate: pem })
    const { tbs, algorithm, signature } = readCertificate(raw)
    expect(writeCertificate(writeTbs(readTbs(tbs)), algorithm, signature)).toEqual(raw)
  }
}, 240_000)
