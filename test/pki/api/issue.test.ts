import { createPrivateKey, X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { done, useSharedNode } from '../../api/node.ts'
import { type Answer, certificateOf, createAuthority, dataOf, errorsOf, warningsOf } from './authority.ts'
import { csrOf, openssl } from './csr.ts'

const node = useSharedNode()
const begins = { rsa: 'RSA PRIVATE KEY', ec: 'EC PRIVATE KEY', ed25519: 'PRIVATE KEY' } as const

/** Whether the private key of an answer is that of its certificate. */
const keyFits = (data: Answer): boolean =>
  certificateOf(data).checkPrivateKey(createPrivateKey(String(data.private_key)))

describe('issue', () => {
  test.each(['rsa', 'ec', 'ed25519'] as const)('hands out a key of type %s and a certificate for it', async (type) => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r', { key_type: type })
    const data = dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' })))
    expect(keyFits(data)).toBe(true)
    expect(String(data.private_key)).toMatch(new RegExp(`^-----BEGIN ${begins[type]}-----\n`))
    expect(data).toMatchObject({ private_key_type: type, issuing_ca: root.certificate, ca_chain: [root.certificate] })
    const leaf = certificateOf(data)
    expect(leaf.verify(certificateOf(root).publicKey)).toBe(true)
    expect(Date.parse(leaf.validTo) / 1000).toBe(data.expiration)
    expect(Date.parse(leaf.validFrom) / 1000).toBe(data.not_before)
    expect(dataOf(await pki.get(`cert/${data.serial_number}`)).certificate).toBe(data.certificate)
  })

  test('writes the key and the certificate in the form that is asked for', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r')
    const wanted = { common_name: 'a.example', ttl: '1h' }
    const pkcs8 = dataOf(await pki.post('issue/r', { ...wanted, private_key_format: 'pkcs8' }))
    expect(pkcs8.private_key).toMatch(/^-----BEGIN PRIVATE KEY-----/)
    expect(keyFits(pkcs8)).toBe(true)
    const der = dataOf(await pki.post('issue/r', { ...wanted, format: 'der' }))
    const certificate = new X509Certificate(Buffer.from(String(der.certificate), 'base64'))
    const key = Buffer.from(String(der.private_key), 'base64')
    expect(certificate.checkPrivateKey(createPrivateKey({ key, format: 'der', type: 'sec1' }))).toBe(true)
    expect(der.ca_chain).toEqual([certificateOf(root).raw.toString('base64')])
    const bundle = dataOf(await pki.post('issue/r', { ...wanted, format: 'pem_bundle' }))
    expect(
      String(bundle.certificate)
        .split('-----BEGIN ')
        .slice(1)
        .map((part) => part.slice(0, 14)),
    ).toEqual([...['EC PRIVATE KEY', 'CERTIFICATE---']])
    const refused = await pki.post('issue/r', { ...wanted, format: 'zz' })
    expect(errorsOf(refused)).toEqual(['the "format" path parameter must be "pem", "der", or "pem_bundle"'])
  })

  test('a refused name names the rule and the setting, and nothing is stored', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r', { allow_any_name: false, allowed_domains: 'example.com', allow_subdomains: true })
    const reply = await pki.post('issue/r', { common_name: 'example.com' })
    expect(reply.status).toBe(400)
    expect(errorsOf(reply)[0]).toBe('common name example.com not allowed by this role')
    expect(errorsOf(reply)[1]).toContain('allow_bare_domains')
    expect(dataOf(await pki.list('certs'))).toEqual({ keys: [root.serial_number] })
  })

  test('under no_store leaves no trace, and under generate_lease ends with its lease', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('silent', { no_store: true, generate_lease: true })
    const silent = await pki.post('issue/silent', { common_name: 'a.example' })
    expect(dataOf(silent)).toHaveProperty('certificate')
    expect((silent.body as { lease_id: string }).lease_id).toBe('')
    expect((await pki.get(`cert/${dataOf(silent).serial_number}`)).status).toBe(404)
    await pki.role('leased', { generate_lease: true })
    const leased = await pki.post('issue/leased', { common_name: 'a.example', ttl: '1h' })
    const { lease_id: id, renewable, lease_duration: seconds } = leased.body as Answer
    expect(id).toMatch(new RegExp(`^${pki.path}/issue/leased/[A-Za-z0-9]{24}$`))
    expect(renewable).toBe(false)
    expect(seconds).toBeGreaterThan(3500)
    expect((await node.root.post('sys/leases/revoke', { lease_id: id })).status).toBeLessThan(300)
    const read = dataOf(await pki.get(`cert/${dataOf(leased).serial_number}`))
    expect(read.revocation_time).toBeGreaterThan(0)
  })

  test('keeps within the life of its issuer, by the issuer’s setting', async () => {
    const pki = await createAuthority(node)
    const { issuer_id: id, expiration } = await pki.root({ ttl: '2h', not_before_duration: '1h' })
    await pki.role('r')
    const wanted = { common_name: 'a.example', ttl: '3h' }
    const refused = await pki.post('issue/r', wanted)
    expect(errorsOf(refused)[0]).toMatch(/^cannot satisfy request, as TTL would result in notAfter of /)
    await pki.patch(`issuer/${id}`, { leaf_not_after_behavior: 'truncate' })
    expect(dataOf(await pki.post('issue/r', wanted)).expiration).toBe(expiration)
    await pki.patch(`issuer/${id}`, { leaf_not_after_behavior: 'permit' })
    expect(Number(dataOf(await pki.post('issue/r', wanted)).expiration)).toBeGreaterThan(Number(expiration))
  })

  test('a certificate that RFC 5280 makes invalid is refused before it is signed', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r', { enforce_hostnames: false, cn_validations: 'disabled' })
    const refused = await pki.post('issue/r', { common_name: 'x'.repeat(65), exclude_cn_from_sans: true })
    expect(refused.status).toBe(400)
    expect(errorsOf(refused)[0]).toContain('the certificate would be invalid: ')
    expect(dataOf(await pki.list('certs')).keys).toEqual([root.serial_number])
  })

  test('a URI must be one under RFC 3986, with a host after //; others have none', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r', { allowed_uri_sans: '*', require_cn: false })
    const issue = (uri_sans: string) => pki.post('issue/r', { uri_sans, ttl: '1h' })
    for (const uri of ['http://[::1', 'http://', 'http:///x', 'http://a:b/']) {
      const refused = await issue(uri)
      expect(errorsOf(refused)[0]).toBe(`the provided URI Subject Alternative Name "${uri}" is not a valid URI`)
    }
    expect(dataOf(await pki.list('certs')).keys).toEqual([root.serial_number])
    const good = ['spiffe://trust.example/ns/a', 'urn:a:b', 'mailto:u@example.com', 'http://[::1]:80/']
    const leaf = certificateOf(dataOf(await done(issue(good.join(',')))))
    expect(leaf.subjectAltName).toBe(good.map((uri) => `URI:${uri}`).join(', '))
  })

  test('by an issuer that may not issue, or of another name, is refused', async () => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'one' })
    await pki.role('r', { issuer_ref: 'two' })
    const unknown = await pki.post('issue/r', { common_name: 'a.example' })
    expect(errorsOf(unknown)).toEqual(['unable to find PKI issuer for reference: two'])
    expect((await pki.post('issuer/one/issue/r', { common_name: 'a.example' })).status).toBe(200)
    await pki.patch('issuer/one', { usage: 'crl-signing' })
    const refused = await pki.post('issuer/one/issue/r', { common_name: 'a.example' })
    expect(refused.status).toBe(400)
    expect(errorsOf(refused)[0]).toContain('but only had usage crl-signing,read-only')
    expect(errorsOf(await pki.post('issue/nobody', { common_name: 'a' }))).toEqual(['unknown role: nobody'])
  })

  test('a role for any key does not make one', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r', { key_type: 'any' })
    const refused = await pki.post('issue/r', { common_name: 'a.example', key_type: 'ec' })
    expect(refused.status).toBe(400)
    expect(errorsOf(refused)[0]).toContain('role key type "any" not allowed for issuing certificates')
  })

  test('carries the URLs of the mount, or of its issuer, expanded', async () => {
    const pki = await createAuthority(node)
    const { issuer_id: id } = await pki.root()
    await pki.role('r')
    const issue = async () => certificateOf(dataOf(await pki.post('issue/r', { common_name: 'a.example' })))
    await pki.post('config/urls', {
      issuing_certificates: '{{cluster_path}}/issuer/{{issuer_id}}/der',
      enable_templating: true,
    })
    const refused = await pki.post('issue/r', { common_name: 'a.example' })
    expect(errorsOf(refused)[0]).toContain('unable to template AIA URLs')
    await pki.post('config/cluster', { path: 'https://pki.example/v1/pki' })
    expect((await issue()).infoAccess).toBe(`CA Issuers - URI:https://pki.example/v1/pki/issuer/${id}/der`)
    await pki.patch(`issuer/${id}`, { enable_aia_url_templating: true })
    expect((await issue()).infoAccess).toBe(`CA Issuers - URI:https://pki.example/v1/pki/issuer/${id}/der`)
    await pki.patch(`issuer/${id}`, { ocsp_servers: 'http://own.example' })
    expect((await issue()).infoAccess).toBe('OCSP - URI:http://own.example')
  })
})

describe('sign', () => {
  test.each(['rsa', 'ec', 'ed25519'])('makes a certificate for the %s key of a request', async (type) => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r', {
      key_type: type,
      allow_any_name: false,
      allowed_domains: 'a.example',
      allow_bare_domains: true,
    })
    const csr = await csrOf('/CN=a.example', ['subjectAltName=DNS:a.example'], type)
    const reply = await done(pki.post('sign/r', { csr, common_name: 'ignored.example' }))
    expect(warningsOf(reply)).toContain(
      'the common_name field was provided but the role is set with "use_csr_common_name" set to true',
    )
    const data = dataOf(reply)
    expect(certificateOf(data).verify(certificateOf(root).publicKey)).toBe(true)
    expect(certificateOf(data).subject).toBe('CN=a.example')
    expect(data).not.toHaveProperty('private_key')
  })

  test('takes a request under any PEM label, as the reference does', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r')
    const good = await csrOf('/CN=a.example')
    const relabelled = good.replaceAll('CERTIFICATE REQUEST', 'PKCS10')
    expect(certificateOf(dataOf(await done(pki.post('sign/r', { csr: relabelled })))).subject).toBe('CN=a.example')
    const other = '-----BEGIN X-----\nAAAA\n-----END X-----\n'
    expect((await pki.post('sign/r', { csr: other + good })).status).toBe(200)
    expect(errorsOf(await pki.post('sign/r', { csr: other }))[0]).toMatch(/^certificate request could not be parsed: /)
  })

  test('refuses an invalid request, and one that its key has not signed', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r')
    const refusal = async (csr?: string) => errorsOf(await pki.post('sign/r', { csr }))[0]
    expect(await refusal()).toBe('"csr" is empty')
    expect(await refusal('x')).toBe('csr contains no data')
    expect(await refusal('-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----')).toMatch(
      /^certificate request could not be parsed: /,
    )
    const good = await csrOf('/CN=a.example')
    const der = Buffer.from(good.replace(/-----[^-]+-----|\s/g, ''), 'base64')
    const at = der.indexOf('a.example')
    der.write('b.example', at)
    const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----`
    expect(await refusal(forged)).toBe('request signature invalid')
  })
})

describe('relying parties', () => {
  test.each(['rsa', 'ec', 'ed25519'])('openssl verifies a leaf of an intermediate, strictly (%s)', async (type) => {
    const pki = await createAuthority(node)
    const root = await pki.root({ key_type: type, max_path_length: 1 })
    const wanted = { common_name: 'Intermediate', key_type: type }
    const { csr } = dataOf(await done(pki.post('intermediate/generate/internal', wanted)))
    const signed = dataOf(await done(pki.post('root/sign-intermediate', { csr, ttl: '8760h' })))
    const imported = dataOf(await done(pki.post('intermediate/set-signed', { certificate: signed.certificate })))
    const [id] = imported.imported_issuers as string[]
    await pki.role('r', { key_type: type })
    const leaf = dataOf(await done(pki.post(`issuer/${id}/issue/r`, { common_name: 'a.example', ttl: '1h' })))
    expect(leaf.ca_chain).toEqual([signed.certificate, root.certificate])
    const said = await openssl(['verify', '-x509_strict', '-CAfile', 'root', '-untrusted', 'middle', 'leaf'], {
      ...{ root: String(root.certificate), middle: String(signed.certificate), leaf: String(leaf.certificate) },
    })
    expect(said.trim()).toBe('leaf: OK')
  })
})
