import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { asn1, write } from '../../../src/crypto/der.ts'
import { writeOid } from '../../../src/crypto/oid.ts'
import { useSharedNode } from '../../api/node.ts'
import type { Reply } from '../../support/client.ts'
import { certificateOf, createAuthority, dataOf, errorsOf, type TestAuthority, warningsOf } from '../api/authority.ts'
import { openssl } from '../api/csr.ts'
import type { Attack } from './attacks/attack.ts'
import { authorityAttacks } from './attacks/authority.ts'
import { encodingAttacks } from './attacks/encodings.ts'
import { keyAttacks } from './attacks/keys.ts'
import { nameAttacks } from './attacks/names.ts'
import { altNames, commonName, dnsName, extension, forge, nameOf, rdn, text } from './forge.ts'

const node = useSharedNode()
const open = {
  ...{ key_type: 'any', enforce_hostnames: false, require_cn: false, no_store: true },
  ...{ allowed_other_sans: '*', allowed_uri_sans: '*', allowed_serial_numbers: '*', allowed_user_ids: '*' },
}
const ways = [
  ['sign/r', {}],
  ['sign-verbatim', {}],
  ['root/sign-intermediate', {}],
  ['root/sign-intermediate', { use_csr_values: true, permitted_dns_domains: 'good.test' }],
] as const

async function furnished(): Promise<TestAuthority> {
  const pki = await createAuthority(node)
  await pki.root()
  await pki.role('r', open)
  return pki
}

/** openssl's text of certificates. */
const shown = (pems: readonly string[]): Promise<string> =>
  openssl(['storeutl', '-noout', '-text', '-certs', 'all'], { all: `${pems.join('\n')}\n` })

const sixteenAtATime = async <T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> => {
  const results: R[] = []
  for (let at = 0; at < items.length; at += 16) results.push(...(await Promise.all(items.slice(at, at + 16).map(work))))
  return results
}

describe('a request that lies is refused, or its certificate is without the lie', () => {
  test.each([
    ['authority', authorityAttacks],
    ['a weak key', keyAttacks],
    ['an encoding', encodingAttacks],
    ['names', nameAttacks],
  ])(
    '%s',
    async (_, attacks: readonly Attack[]) => {
      const pki = await furnished()
      for (const [path, body] of ways) {
        const replies = await sixteenAtATime(attacks, ({ csr }) => pki.post(path, { csr, ...body }))
        const leafs: string[] = []
        for (const [index, reply] of replies.entries()) {
          const { name, smuggled } = attacks[index] as Attack
          expect([path, name, reply.status, reply.text.slice(0, 200)]).toEqual([
            path,
            name,
            reply.status === 200 ? 200 : 400,
            expect.any(String),
          ])
          if (reply.status !== 200) {
            expect([name, errorsOf(reply)[0]]).toEqual([name, expect.stringMatching(/\w{3}/)])
            continue
          }
          const pem = String(dataOf(reply).certificate)
          const certificate = new X509Certificate(pem)
          expect([path, name, smuggled !== undefined && certificate.raw.includes(smuggled)]).toEqual([
            path,
            name,
            false,
          ])
          if (path === 'root/sign-intermediate') continue
          expect([path, name, certificate.ca]).toEqual([path, name, false])
          leafs.push(pem)
        }
        // Ten at a time, in one file for openssl.
        const all = leafs.length > 0 ? await shown(leafs) : ''
        expect(all).not.toMatch(/Certificate Sign|CA:TRUE|Name Constraints/)
      }
      expect((await pki.get('ca/pem')).status).toBe(200)
    },
    240_000,
  )
})

describe('sign', () => {
  test('warns of names that no role can allow, and of a small exponent', async () => {
    const pki = await furnished()
    const csr = forge({
      extensions: [altNames(dnsName('a.example'), Buffer.from([0xa4, ...lengthOf(directory), ...directory]))],
    })
    const reply = await pki.post('sign/r', { csr })
    expect(warningsOf(reply)).toContainEqual(expect.stringMatching(/^1 alternative names of the CSR/))
    expect(certificateOf(dataOf(reply)).subjectAltName).toBe('DNS:a.example')
    const weak = keyAttacks.find(({ name }) => name === 'RSA with exponent 3')?.csr
    expect(warningsOf(await pki.post('sign/r', { csr: weak }))).toContainEqual(expect.stringContaining('rsa_exponent'))
  })

  test('of a request of 128 kB is decided; a longer one is refused', async () => {
    const pki = await furnished()
    const filled = (length: number) =>
      forge({ subject: nameOf(rdn('1.2.3.4', text('a'.repeat(length))), rdn('2.5.4.3', text('a.example'))) })
    const [longest, longer] = [filled(95_000), filled(100_000)]
    expect(longest.length).toBeGreaterThan(128_000)
    expect(certificateOf(dataOf(await pki.post('sign/r', { csr: longest }))).subject).toBe('CN=a.example')
    const refused = await pki.post('sign/r', { csr: longer })
    expect(errorsOf(refused)).toEqual(['csr has more than 131072 characters'])
  })
})

describe('sign-verbatim', () => {
  test.each([[''], ['a'], ['1'], ['3.1'], ['1.2.3,x'], ['\0'], [['1.2', '']]])(
    'refuses the purpose %j',
    async (oids) => {
      const pki = await furnished()
      const reply = await pki.post('sign-verbatim', { csr: forge(), ext_key_usage_oids: oids })
      if (oids === '') expect(reply.status).toBe(200)
      else expect(errorsOf(reply)).toEqual([expect.stringContaining('could not be parsed as a valid oid')])
    },
  )

  test('copies other names of any type and texts that are no host names, and says so', async () => {
    const pki = await furnished()
    const realm = write(asn1.sequence, write(0xa0, text('EXAMPLE', 0x1b)))
    const kerberos = write(0xa0, writeOid('1.3.6.1.5.2.2'), write(0xa0, realm))
    const guid = write(0xa0, writeOid('1.3.6.1.4.1.311.25.1'), write(0xa0, text(Buffer.alloc(16, 7), asn1.octetString)))
    const names = altNames(kerberos, guid, dnsName('my host'), dnsName('a.example'))
    const reply = await pki.post('sign-verbatim', { csr: forge({ extensions: [names] }) })
    expect([reply.status, reply.text]).toEqual([200, expect.any(String)])
    expect(certificateOf(dataOf(reply)).raw.includes(names)).toBe(true)
    expect(warningsOf(reply)).toContain('subjectAltName: "my host" is not in preferred name syntax (san_dns_syntax)')
    expect(warningsOf(reply)).not.toContainEqual(expect.stringContaining('left out'))
  })

  test.each([
    ['a DNS name with a line break', dnsName('a.example\nevil.test'), 'has a control character (san_dns_control)'],
    ['a text that is no mailbox', write(0x81, Buffer.from('a')), 'an rfc822Name is not a mailbox (san_email)'],
    ['a URI without a host', write(0x86, Buffer.from('http://')), '"http://" is not a valid URI (san_uri)'],
    ['a name of 4,097 characters', dnsName('a'.repeat(4097)), 'csr: a name may have at most 4096 characters'],
  ])('refuses %s', async (_, name, reason) => {
    const pki = await furnished()
    const refused = await pki.post('sign-verbatim', { csr: forge({ extensions: [altNames(name)] }) })
    expect([refused.status, errorsOf(refused)[0]]).toEqual([400, expect.stringContaining(reason)])
  })

  test('makes no authority of a request that its caller asks keyCertSign for', async () => {
    const pki = await furnished()
    const reply = await pki.post('sign-verbatim', { csr: forge(), key_usage: 'CertSign' })
    expect(errorsOf(reply)).toEqual([expect.stringContaining('CertSign is for CA certificates only')])
  })
})

describe('sign-intermediate with use_csr_values', () => {
  const constraints = (domain: string) =>
    extension(
      '2.5.29.30',
      Buffer.from([
        0x30,
        domain.length + 6,
        0xa0,
        domain.length + 4,
        0x30,
        domain.length + 2,
        0x82,
        domain.length,
        ...Buffer.from(domain),
      ]),
      true,
    )
  const csr = forge({ subject: commonName('Sub'), extensions: [constraints('wide.test')] })
  const sign = (pki: TestAuthority, body: object): Promise<Reply> =>
    pki.post('root/sign-intermediate', { csr, use_csr_values: true, ...body })

  test('takes the constraints of the request if the caller has none', async () => {
    const pki = await furnished()
    expect(await shown([String(dataOf(await sign(pki, {})).certificate)])).toContain('DNS:wide.test')
  })

  test.each([
    { permitted_dns_domains: 'good.test' },
    { excluded_dns_domains: 'good.test' },
    { permitted_email_addresses: 'good.test' },
  ])('keeps the caller’s own: %j', async (body) => {
    const pki = await furnished()
    const reply = await sign(pki, body)
    const said = await shown([String(dataOf(reply).certificate)])
    expect(said).toContain('good.test')
    expect(said).not.toContain('wide.test')
    expect(warningsOf(reply)).toContain('the name constraints of the CSR were ignored: the request has its own')
  })
})

const directory = commonName('evil.test')
const lengthOf = (der: Buffer): readonly number[] => [der.length]
