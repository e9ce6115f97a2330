import { expect, test } from 'vitest'
import { done, expectRefused, useSharedNode } from '../../api/node.ts'
import { createAuthority, dataOf } from './authority.ts'
import { csrOf, openssl } from './csr.ts'

/** Name constraints of requests for CAs (RFC 5280 section 4.2.1.10). */

const node = useSharedNode()

const domain = 'is not a host name, or a domain as .example.com'
const address = 'is an IP address: constraints on URIs are host names, or domains as .example.com'
const mailbox = 'is not an e-mail address, a host name, or a domain as .example.com'

test.each([
  ['uri_domains', 'https://example.com', domain],
  ['uri_domains', 'example.com:443', domain],
  ['uri_domains', 'example.com/a', domain],
  ['uri_domains', '10.0.0.1', address],
  ['uri_domains', '.10.0.0.1', address],
  ['uri_domains', '[::1]', domain],
  ['uri_domains', 'me@example.com', domain],
  ['email_addresses', '@evil.test', mailbox],
  ['email_addresses', 'me@', mailbox],
  ['email_addresses', 'a@b@c.test', mailbox],
  ['email_addresses', '*.evil.test', domain],
  ['email_addresses', 'evil.test.', domain],
  ['dns_domains', '*.evil.test', domain],
  ['dns_domains', 'example..com', domain],
  ['dns_domains', '..example.com', domain],
  ['dns_domains', 'example.com.', domain],
  ['dns_domains', '.', domain],
  ['dns_domains', '10.0.0.0/8', domain],
  ['dns_domains', 'a b.example', 'must be ASCII (an IDN as xn--…)'],
  ['dns_domains', 'bücher.example', 'must be ASCII (an IDN as xn--…)'],
  ['dns_domains', `${'a'.repeat(64)}.example`, domain],
  ['ip_ranges', '10.0.0.1', 'is not a network in CIDR notation'],
])('%s: %j %s', async (kind, value, problem) => {
  const pki = await createAuthority(node)
  await pki.root()
  const csr = await csrOf('/CN=Sub')
  for (const field of [`permitted_${kind}`, `excluded_${kind}`]) {
    const text = `${field}: ${JSON.stringify(value)} ${problem}`
    const body = {
      common_name: 'R',
      key_type: 'ec',
      [field]: ['in.example', value].slice(kind === 'ip_ranges' ? 1 : 0),
    }
    expectRefused(await pki.post('root/generate/internal', body), 400, text)
    expectRefused(await pki.post('root/sign-intermediate', { ...body, csr }), 400, text)
  }
})

test('a refusal repeats no more than the beginning of a long value', async () => {
  const pki = await createAuthority(node)
  const body = { common_name: 'R', key_type: 'ec', excluded_dns_domains: 'a'.repeat(100_000) }
  const reply = await pki.post('root/generate/internal', body)
  expect(reply.status).toBe(400)
  expect(reply.text.length).toBeLessThan(500)
})

test('hosts, domains, mailboxes and networks are in the certificate; empty ones are none', async () => {
  const pki = await createAuthority(node)
  const data = await pki.root({
    ...{ permitted_dns_domains: 'example.com,.example.net,xn--bcher-kva.example,localhost,', excluded_dns_domains: [] },
    ...{ permitted_email_addresses: ['me@example.com', 'example.com', '.example.net', ''], excluded_ip_ranges: '::/0' },
    ...{ permitted_uri_domains: ' example.com , .example.net', excluded_uri_domains: '' },
  })
  const said = await openssl(['x509', '-in', 'c', '-noout', '-text'], { c: String(data.certificate) })
  const [, shown = ''] = /Name Constraints: critical\n([\s\S]*?)\n\s+(?:X509v3|Signature)/.exec(said) ?? []
  expect(shown.split('\n').map((line) => line.trim())).toEqual([
    'Permitted:',
    ...['example.com', '.example.net', 'xn--bcher-kva.example', 'localhost'].map((value) => `DNS:${value}`),
    ...['me@example.com', 'example.com', '.example.net'].map((value) => `email:${value}`),
    ...['example.com', '.example.net'].map((value) => `URI:${value}`),
    'Excluded:',
    'IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0',
  ])
  const none = { common_name: 'R', key_type: 'ec', permitted_dns_domains: [], excluded_uri_domains: ' , ' }
  const { certificate } = dataOf(await done(pki.post('root/generate/internal', none)))
  const plain = await openssl(['x509', '-in', 'c', '-noout', '-text'], { c: String(certificate) })
  expect(plain).not.toContain('Name Constraints')
})
