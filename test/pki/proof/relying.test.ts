import { describe, expect, test } from 'vitest'
import { done, useSharedNode } from '../../api/node.ts'
import { type Answer, createAuthority, dataOf, type TestAuthority } from '../api/authority.ts'
import { intermediate, objections } from './chain.ts'

/** The verdicts of relying parties: OpenSSL in its strict mode, and GnuTLS. */

const node = useSharedNode()
const none = { openssl: '', gnutls: '' }

const issue = async (pki: TestAuthority, issuer: string, wanted: Answer = {}): Promise<string> =>
  String(
    dataOf(await done(pki.post(`issuer/${issuer}/issue/r`, { common_name: 'a.example.com', ttl: '1h', ...wanted })))
      .certificate,
  )

describe('a chain of three', () => {
  test.each([
    ['rsa 2048', { key_type: 'rsa' }, {}],
    ['rsa 2048, PSS', { key_type: 'rsa' }, { use_pss: true, signature_bits: 384 }],
    ['rsa 2048, SHA-512', { key_type: 'rsa' }, { signature_bits: 512 }],
    ['ec 256', { key_type: 'ec' }, {}],
    ['ec 384', { key_type: 'ec', key_bits: 384 }, {}],
    ['ec 521', { key_type: 'ec', key_bits: 521 }, {}],
    ['ed25519', { key_type: 'ed25519' }, {}],
  ])(
    'of %s',
    async (_, key, signature) => {
      const pki = await createAuthority(node)
      const root = await pki.root({ ...key, ...signature, max_path_length: 1 })
      await pki.role('r', { ...key, ...signature })
      const middle = await intermediate(pki, String(root.issuer_id), { common_name: 'Middle', ...key }, signature)
      const leaf = await issue(pki, middle.id)
      expect(await objections([leaf, middle.certificate, String(root.certificate)])).toEqual(none)
    },
    60_000,
  )

  test('with everything that a role and URLs can put into a leaf', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    const id = String(root.issuer_id)
    await done(
      pki.post('config/urls', {
        issuing_certificates: 'http://a.example/ca',
        crl_distribution_points: 'http://a.example/crl',
        ocsp_servers: 'http://a.example/ocsp',
      }),
    )
    const middle = await intermediate(pki, id, { common_name: 'Middle', key_type: 'ec' })
    await pki.role('r', {
      ...{ code_signing_flag: true, email_protection_flag: true, key_usage: ['DigitalSignature', 'ContentCommitment'] },
      ...{ ext_key_usage: ['TimeStamping'], ext_key_usage_oids: '1.3.6.1.4.1.99999.7' },
      ...{ basic_constraints_valid_for_non_ca: true, policy_identifiers: ['1.3.6.1.4.1.99999.1', '2.23.140.1.2.1'] },
      ...{
        ou: 'U,V',
        organization: 'Ö',
        country: 'DE',
        locality: 'L',
        province: 'P',
        street_address: 'S',
        postal_code: '1',
      },
      ...{ allowed_uri_sans: '*', allowed_other_sans: '*', allowed_user_ids: '*', allowed_serial_numbers: '*' },
    })
    const leaf = await issue(pki, middle.id, {
      ...{ alt_names: '*.example.com,m@example.com,bücher.example', ip_sans: '10.0.0.1,2001:db8::1' },
      ...{
        uri_sans: 'spiffe://a/b',
        other_sans: '1.3.6.1.4.1.311.20.2.3;UTF8:u@example.com',
        user_ids: 'u',
        serial_number: '7',
      },
    })
    expect(await objections([leaf, middle.certificate, String(root.certificate)])).toEqual(none)
  })

  test('that is valid beyond 2050, and a leaf without a subject', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root({ ttl: '', not_after: '9999-12-31T23:59:59Z' })
    const signing = { ttl: '', not_after: '2060-01-01T00:00:00Z' }
    const middle = await intermediate(pki, String(root.issuer_id), { common_name: 'Middle', key_type: 'ec' }, signing)
    await pki.role('r', { require_cn: false })
    const leaf = await issue(pki, middle.id, { common_name: '', alt_names: 'a.example.com' })
    expect(await objections([leaf, middle.certificate, String(root.certificate)])).toEqual(none)
  })

  test('through a cross-signed intermediate to either root', async () => {
    const pki = await createAuthority(node)
    const [one, two] = [await pki.root({ common_name: 'One' }), await pki.root({ common_name: 'Two' })]
    await pki.role('r')
    const middle = await intermediate(pki, String(one.issuer_id), { common_name: 'Middle', key_type: 'ec' })
    const { key_id: key } = dataOf(await done(pki.get(`issuer/${middle.id}`)))
    const { csr } = dataOf(await done(pki.post('intermediate/cross-sign', { common_name: 'Middle', key_ref: key })))
    const crossed = dataOf(await done(pki.post(`issuer/${two.issuer_id}/sign-intermediate`, { csr, ttl: '8760h' })))
    await done(pki.post('intermediate/set-signed', { certificate: crossed.certificate }))
    const leaf = await issue(pki, middle.id)
    expect(await objections([leaf, middle.certificate, String(one.certificate)])).toEqual(none)
    expect(await objections([leaf, String(crossed.certificate), String(two.certificate)])).toEqual(none)
    const { ca_chain: chain } = dataOf(await done(pki.get(`issuer/${middle.id}/json`)))
    expect((chain as string[]).map((pem) => pem.trim())).toEqual([middle.certificate, one.certificate])
  })
})

test('a chain of four with name constraints allows exactly the permitted names', async () => {
  const pki = await createAuthority(node)
  const root = await pki.root({ max_path_length: 2 })
  await pki.role('r', { allow_ip_sans: true })
  const upper = await intermediate(
    pki,
    String(root.issuer_id),
    { common_name: 'Upper', key_type: 'ec' },
    { permitted_dns_domains: 'example.com', permitted_ip_ranges: '10.0.0.0/8', excluded_email_addresses: 'evil.test' },
  )
  const lower = await intermediate(
    pki,
    upper.id,
    { common_name: 'Lower', key_type: 'ec', exported: true },
    // Constraints also hold for the names of a CA.
    { excluded_dns_domains: 'secret.example.com', exclude_cn_from_sans: true },
  )
  const above = [lower.certificate, upper.certificate, String(root.certificate)]
  const good = await issue(pki, lower.id, { alt_names: 'b.example.com', ip_sans: '10.1.2.3' })
  expect(await objections([good, ...above])).toEqual(none)

  // Another mount knows only the lowest CA, so only that CA's own constraints hold there.
  const other = await createAuthority(node)
  await other.role('r')
  const bundle = `${lower.certificate}\n${lower.privateKey}`
  const imported = dataOf(await done(other.post('issuers/import/bundle', { pem_bundle: bundle })))
  const [id = ''] = imported.imported_issuers as string[]
  for (const wanted of [
    { common_name: 'a.evil.test' },
    { common_name: 'a.example.com', alt_names: 'a.evil.test' },
    { common_name: 'a.example.com', ip_sans: '192.0.2.1' },
  ]) {
    expect((await pki.post(`issuer/${lower.id}/issue/r`, wanted)).status).toBe(400)
    const said = await objections([await issue(other, id, wanted), ...above])
    expect([wanted, said.openssl]).toEqual([wanted, expect.stringContaining('permitted subtree violation')])
    expect([wanted, said.gnutls]).toEqual([wanted, expect.stringMatching(/name constraints|Not verified/)])
  }
  for (const authority of [pki, other]) {
    const secret = await authority.post(`issuer/${authority === pki ? lower.id : id}/issue/r`, {
      common_name: 'a.secret.example.com',
    })
    expect(secret.status).toBe(400)
  }
})
