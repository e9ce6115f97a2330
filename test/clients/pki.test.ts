import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { done, useSharedNode } from '../api/node.ts'
import { type Answer, certificateOf, createAuthority, dataOf } from '../pki/api/authority.ts'
import { csrOf } from '../pki/api/csr.ts'

/** Requests word for word as clients of PKI send them that cannot be installed here. */

const node = useSharedNode()

describe('cert-manager', () => {
  test('sends every value as a string, and builds a chain from the answer', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r', { key_type: 'any', allowed_uri_sans: '*', allow_any_name: true })
    const { csr } = dataOf(
      await done(pki.post('intermediate/generate/internal', { common_name: 'Sub', key_type: 'ec' })),
    )
    const signed = dataOf(await done(pki.post('root/sign-intermediate', { csr, ttl: '8760h' })))
    const set = dataOf(await done(pki.post('intermediate/set-signed', { certificate: signed.certificate })))
    await done(pki.post('config/issuers', { default: (set.imported_issuers as string[])[0] }))
    const body = {
      common_name: 'a.example.com',
      alt_names: 'a.example.com,b.example.com',
      ip_sans: '10.0.0.1,2001:db8::1',
      uri_sans: 'spiffe://cluster.local/ns/a/sa/b',
      ttl: '2160h0m0s',
      csr: await csrOf('/CN=a.example.com', [
        'subjectAltName=DNS:a.example.com,DNS:b.example.com,IP:10.0.0.1,IP:2001:db8::1,URI:spiffe://cluster.local/ns/a/sa/b',
      ]),
      exclude_cn_from_sans: 'true',
    }
    const data = dataOf(await done(pki.post('sign/r', body)))
    const chain = [data.certificate, ...(data.ca_chain as string[])].map((pem) => new X509Certificate(String(pem)))
    expect(chain.map(({ subject }) => subject)).toEqual(['CN=a.example.com', 'CN=Sub', 'CN=Test Root'])
    for (const [index, certificate] of chain.entries()) {
      expect(certificate.verify((chain[index + 1] ?? certificate).publicKey)).toBe(true)
    }
    expect(data.issuing_ca).toBe((data.ca_chain as string[])[0])
    expect(chain[2]?.fingerprint256).toBe(certificateOf(root).fingerprint256)
    expect(chain[0]?.subjectAltName?.split(', ').toSorted()).toEqual([
      ...['DNS:a.example.com', 'DNS:b.example.com', 'IP Address:10.0.0.1', 'IP Address:2001:DB8:0:0:0:0:0:1'],
      'URI:spiffe://cluster.local/ns/a/sa/b',
    ])
    expect((await node.root.get('sys/health')).status).toBe(200)
  })
})

describe('the CLI', () => {
  test('writes by PUT, with every value as a string', async () => {
    const pki = await createAuthority(node)
    const put = (path: string, body: Answer) => done(node.root.call('PUT', `${pki.path}/${path}`, body))
    const root = dataOf(
      await put('root/generate/internal', { common_name: 'R', key_type: 'ec', ttl: '87600h', max_path_length: '1' }),
    )
    const urls = { issuing_certificates: 'http://a.example/ca,http://b.example/ca', enable_templating: 'false' }
    expect(dataOf(await put('config/urls', urls)).issuing_certificates).toHaveLength(2)
    const role = {
      allowed_domains: 'example.com,example.org',
      allow_subdomains: 'true',
      max_ttl: '72h',
      key_type: 'ec',
    }
    expect(dataOf(await put('roles/r', role))).toMatchObject({
      allowed_domains: ['example.com', 'example.org'],
      ...{ allow_subdomains: true, max_ttl: 259_200, key_bits: 256 },
    })
    const leaf = dataOf(await put('issue/r', { common_name: 'a.example.com', ttl: '24h', key_bits: '0' }))
    expect(certificateOf(leaf).verify(certificateOf(root).publicKey)).toBe(true)
  })

  test('pki issue makes an intermediate of one mount in another, and names it', async () => {
    const [parent, child] = [await createAuthority(node), await createAuthority(node)]
    const root = await parent.root({ issuer_name: 'root' })
    const wanted = { common_name: 'Sub', key_type: 'ec', ttl: '43800h', issuer_name: 'sub', use_csr_values: true }
    const { csr, key_id: key } = dataOf(await done(child.post('intermediate/generate/internal', wanted)))
    const signed = dataOf(
      await done(parent.post('issuer/root/sign-intermediate', { ...wanted, csr, issuer_ref: 'root' })),
    )
    const chain = signed.ca_chain as string[]
    expect(chain.map((pem) => pem.trim())).toEqual([signed.certificate, root.certificate])
    const imported = dataOf(await done(child.post('issuers/import/cert', { pem_bundle: chain.join('\n') })))
    const [id] = imported.imported_issuers as string[]
    expect(imported.mapping).toMatchObject({ [String(id)]: key })
    const read = dataOf(await done(child.get(`issuer/${id}`)))
    expect(read).toMatchObject({ issuer_id: id, key_id: key, issuer_name: '' })
    expect(dataOf(await done(child.patch(`issuer/${id}`, { issuer_name: 'sub' }))).issuer_name).toBe('sub')
  })

  test('pki health-check reads the existing paths, and gets refusals for the others', async () => {
    const pki = await createAuthority(node)
    const { issuer_id: id, key_id: key, serial_number: serial } = await pki.root()
    await pki.role('r')
    const lists = { issuers: id, keys: key, certs: serial, roles: 'r' }
    for (const [list, member] of Object.entries(lists)) {
      expect(dataOf(await done(pki.list(list))).keys, list).toEqual([member])
    }
    for (const path of [
      `issuer/${id}`,
      `issuer/${id}/json`,
      `key/${key}`,
      `cert/${serial}`,
      'roles/r',
      'config/cluster',
    ]) {
      expect((await pki.get(path)).status, path).toBe(200)
    }
    expect((await node.root.get(`sys/mounts/${pki.path}/tune`)).status).toBe(200)
    expect(dataOf(await done(pki.get('config/acme')))).toEqual({ enabled: false })
    expect((await pki.get('config/nothing')).status).toBe(404)
    const empty = await createAuthority(node)
    for (const list of Object.keys(lists)) {
      const reply = await empty.list(list)
      expect([list, reply.status, reply.body]).toEqual([list, 404, { errors: [] }])
    }
  })
})

describe('Terraform', () => {
  /** Writes, reads, writes the same again and reads: nothing drifts. */
  async function settles(
    path: string,
    body: Answer,
    pki: Awaited<ReturnType<typeof createAuthority>>,
  ): Promise<Answer> {
    await done(pki.post(path, body))
    const first = dataOf(await done(pki.get(path)))
    await done(pki.post(path, body))
    expect(dataOf(await done(pki.get(path)))).toEqual(first)
    // What was read is a request too.
    await done(pki.post(path, first))
    expect(dataOf(await done(pki.get(path)))).toEqual(first)
    return first
  }

  test('writes a role with joined lists, durations as text and nulls, and reads it without drift', async () => {
    const pki = await createAuthority(node)
    const role = await settles(
      'roles/r',
      {
        ...{ allow_any_name: false, allow_localhost: 'true', allowed_domains: 'a.example,b.example', ttl: '3600' },
        ...{
          max_ttl: '86400s',
          key_usage: ['DigitalSignature', 'KeyAgreement'],
          ext_key_usage: 'ServerAuth,ClientAuth',
        },
        ...{ not_before_duration: '30s', policy_identifiers: '1.3.6.1.4.1.7.8,1.3.6.1.4.1.44947.1.2.4' },
        ...{ organization: 'O,P', country: 'DE', key_type: 'ec', key_bits: 384, issuer_ref: 'default' },
        ...{ allowed_serial_numbers: '', allowed_uri_sans: '', allowed_other_sans: null, not_after: null, ou: null },
        ...{ allowed_user_ids: null, cn_validations: null, generate_lease: false, no_store: null, require_cn: true },
      },
      pki,
    )
    expect(role).toMatchObject({
      allowed_domains: ['a.example', 'b.example'],
      ...{ ttl: 3600, max_ttl: 86_400, not_before_duration: 30, key_bits: 384, signature_bits: 0, not_after: '' },
      key_usage: ['DigitalSignature', 'KeyAgreement'],
      ext_key_usage: ['ServerAuth', 'ClientAuth'],
      policy_identifiers: ['1.3.6.1.4.1.7.8', '1.3.6.1.4.1.44947.1.2.4'],
      ...{ organization: ['O', 'P'], ou: [], allowed_other_sans: [], cn_validations: ['email', 'hostname'] },
    })
  })

  test('writes issuers, URLs, the cluster and the defaults, and reads them without drift', async () => {
    const pki = await createAuthority(node)
    const { issuer_id: id, key_id: key } = await pki.root()
    const issuer = {
      ...{ issuer_name: 'one', leaf_not_after_behavior: 'truncate', usage: 'read-only,issuing-certificates' },
      ...{
        issuing_certificates: ['http://a.example'],
        crl_distribution_points: null,
        ocsp_servers: [],
        manual_chain: null,
      },
      ...{ enable_aia_url_templating: false, revocation_signature_algorithm: 'ECDSAWithSHA256' },
    }
    expect(await settles(`issuer/${id}`, issuer, pki)).toMatchObject({
      ...{ issuer_id: id, issuer_name: 'one', key_id: key, leaf_not_after_behavior: 'truncate' },
      usage: 'issuing-certificates,read-only',
      issuing_certificates: ['http://a.example'],
    })
    expect(
      await settles(
        'config/urls',
        { issuing_certificates: ['http://a.example'], ocsp_servers: null, enable_templating: null },
        pki,
      ),
    ).toEqual({
      ...{ issuing_certificates: ['http://a.example'], crl_distribution_points: [], ocsp_servers: [] },
      enable_templating: false,
    })
    const cluster = { path: 'https://a.example/v1/pki', aia_path: 'http://a.example/pki' }
    expect(await settles('config/cluster', cluster, pki)).toEqual(cluster)
    const issuers = { default: String(id), default_follows_latest_issuer: true }
    expect(await settles('config/issuers', issuers, pki)).toEqual(issuers)
    expect(await settles('config/keys', { default: String(key) }, pki)).toMatchObject({ default: key })
  })

  test('recognises missing objects by the reference’s words', async () => {
    const pki = await createAuthority(node)
    const { issuer_id: id, key_id: key } = await pki.root()
    expect((await pki.delete(`issuer/${id}`)).status).toBe(200)
    expect((await pki.get(`issuer/${id}`)).text).toContain(`unable to find PKI issuer for reference: ${id}`)
    expect((await pki.delete(`key/${key}`)).status).toBeLessThan(300)
    expect((await pki.get(`key/${key}`)).text).toContain(`unable to find PKI key for reference: ${key}`)
  })
})
