import { createPrivateKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { done, useSharedNode } from '../../api/node.ts'
import { certificateOf, createAuthority, dataOf, errorsOf, warningsOf } from './authority.ts'
import { csrOf, openssl } from './csr.ts'

const node = useSharedNode()

const text = async (certificate: unknown) =>
  openssl(['x509', '-in', 'c', '-noout', '-text'], { c: String(certificate) })

describe('intermediate/generate', () => {
  test('answers a request with its names, signed by the new key', async () => {
    const pki = await createAuthority(node)
    const wanted = {
      ...{ common_name: 'sub.example', organization: 'O', alt_names: 'b.example', add_basic_constraints: true },
      ...{ key_type: 'ec', key_name: 'sub' },
    }
    const data = dataOf(await done(pki.post('intermediate/generate/internal', wanted)))
    expect(Object.keys(data).sort()).toEqual(['csr', 'key_id'])
    const said = await openssl(['req', '-in', 'csr', '-verify', '-noout', '-text'], { csr: String(data.csr) })
    expect(said).toContain('Subject: O = O, CN = sub.example')
    expect(said).toContain('DNS:sub.example, DNS:b.example')
    expect(said).toContain('CA:TRUE')
    expect(dataOf(await pki.get('key/sub')).key_id).toBe(data.key_id)
    expect((await pki.list('issuers')).status).toBe(404)
  })

  test('exported hands out the key once; the key is shown as one that was in clear', async () => {
    const pki = await createAuthority(node)
    const wanted = { common_name: 'sub', key_type: 'ec', key_name: 'sub', format: 'pem_bundle' }
    const data = dataOf(await done(pki.post('intermediate/generate/exported', wanted)))
    expect(data.private_key_type).toBe('ec')
    const key = createPrivateKey(String(data.private_key))
    expect(String(data.csr).startsWith(`${data.private_key}\n-----BEGIN CERTIFICATE REQUEST`)).toBe(true)
    expect(key.asymmetricKeyType).toBe('ec')
    expect(dataOf(await pki.get('key/sub'))).toMatchObject({ ever_plaintext: true, exportable: false })
    expect(JSON.stringify(dataOf(await pki.get('key/sub')))).not.toContain('PRIVATE')
  })
})

describe('sign-intermediate', () => {
  test('makes a CA of the request’s key, with the names of the request body alone', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    const csr = await csrOf('/O=ignored/CN=Sub CA', ['subjectAltName=DNS:ignored.example', 'keyUsage=digitalSignature'])
    const wanted = { csr, organization: 'Mine', max_path_length: 0, permitted_dns_domains: '.example', ttl: '1000h' }
    const reply = await done(pki.post('root/sign-intermediate', wanted))
    const data = dataOf(reply)
    expect(warningsOf(reply).join()).toContain('cannot be used to issue intermediate CA certificates')
    expect(data.ca_chain).toEqual([data.certificate, root.certificate])
    const said = await text(data.certificate)
    expect(said).toContain('Subject: O = Mine, CN = Sub CA')
    expect(said).not.toContain('ignored')
    expect(said).toContain('CA:TRUE, pathlen:0')
    expect(said).toMatch(/X509v3 Key Usage: critical\s+Certificate Sign, CRL Sign\n/)
    expect(said).toMatch(/X509v3 Name Constraints: critical\s+Permitted:\s+DNS:\.example/)
    expect(dataOf(await pki.get(`cert/${data.serial_number}`)).certificate).toBe(data.certificate)
  })

  test('names of the body win over the request; its common name serves when the body has none', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const csr = await csrOf('/CN=Theirs', ['subjectAltName=DNS:theirs.example', 'basicConstraints=critical,CA:TRUE'])
    const wanted = {
      ...{ csr, common_name: 'Mine', alt_names: 'mine.example,me@mine.example', ip_sans: '10.0.0.1' },
      ...{ uri_sans: 'urn:mine', other_sans: '1.2.3.4;UTF8:mine', serial_number: '7' },
    }
    const named = await done(pki.post('root/sign-intermediate', wanted))
    const said = await text(dataOf(named).certificate)
    expect(said).toContain('Subject: CN = Mine, serialNumber = 7')
    for (const name of ['DNS:mine.example', 'email:me@mine.example', 'IP Address:10.0.0.1', 'URI:urn:mine']) {
      expect(said).toContain(name)
    }
    expect(said).not.toMatch(/theirs/i)
    expect(warningsOf(named)).toEqual([])
    const unnamed = await done(pki.post('root/sign-intermediate', { csr }))
    expect(await text(dataOf(unnamed).certificate)).toContain('Subject: CN = Theirs')
    expect(warningsOf(unnamed)).toEqual([])
  })

  test('one less than the signer, however often; nothing below zero', async () => {
    const pki = await createAuthority(node)
    await pki.root({ max_path_length: 1, issuer_name: 'root' })
    const { csr } = dataOf(await pki.post('intermediate/generate/internal', { common_name: 'Sub', key_type: 'ec' }))
    const sub = dataOf(await done(pki.post('root/sign-intermediate', { csr, ttl: '1000h' })))
    expect(await text(sub.certificate)).toContain('pathlen:0')
    const { imported_issuers: ids } = dataOf(
      await pki.post('intermediate/set-signed', { certificate: sub.certificate }),
    )
    const [id] = ids as string[]
    const refused = await pki.post(`issuer/${id}/sign-intermediate`, { csr: await csrOf('/CN=Below') })
    expect(errorsOf(refused)[0]).toContain('signing certificate has a max path length of zero')
  })

  test('use_csr_values takes subject, names and extensions of the request, but makes a CA', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const csr = await csrOf('/O=Theirs/CN=Sub', [
      ...['subjectAltName=DNS:theirs.example', 'extendedKeyUsage=serverAuth', 'basicConstraints=critical,CA:FALSE'],
    ])
    const theirs = { common_name: 'other', ip_sans: '10.0.0.1', ou: 'x' }
    const data = dataOf(
      await done(pki.post('root/sign-intermediate', { csr, use_csr_values: true, organization: 'x' })),
    )
    const said = await text(data.certificate)
    expect(said).toContain('Subject: O = Theirs, CN = Sub')
    const reply = await done(pki.post('root/sign-intermediate', { csr, use_csr_values: true, ...theirs }))
    expect(warningsOf(reply)).toContain(
      'use_csr_values takes these from the CSR, and ignored those sent: common_name, ip_sans, ou',
    )
    expect(said).toContain('DNS:theirs.example')
    expect(said).toContain('TLS Web Server Authentication')
    expect(said).toContain('CA:TRUE')
  })

  test('names the key usages that have no effect', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const csr = await csrOf('/CN=Sub')
    const sign = (key_usage: string) => done(pki.post('root/sign-intermediate', { csr, ttl: '1h', key_usage }))
    const reply = await sign('DigitalSignatur,keyencipherment,CRLSign,DataEncipherment')
    expect(warningsOf(reply)).toEqual([
      'key_usage: no usage has the name DigitalSignatur; ignored',
      'key_usage: a CA certificate may have only DigitalSignature besides its own usages, not KeyEncipherment, DataEncipherment; ignored',
    ])
    expect(warningsOf(await sign('digitalsignature,CertSign,'))).toEqual([])
  })

  test('accepts only a hexadecimal key identifier', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const csr = await csrOf('/CN=Sub')
    const data = dataOf(await done(pki.post('root/sign-intermediate', { csr, skid: '01:02-03 aa' })))
    expect(await text(data.certificate)).toMatch(/Subject Key Identifier:\s+01:02:03:AA\n/)
    const refused = await pki.post('root/sign-intermediate', { csr, skid: 'zz' })
    expect(errorsOf(refused)[0]).toContain('cannot parse requested SKID value as hex')
  })

  test('a leaf outside the constraints of its chain is refused with that reason', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const { csr } = dataOf(await pki.post('intermediate/generate/internal', { common_name: 'Sub CA', key_type: 'ec' }))
    const wanted = {
      csr,
      exclude_cn_from_sans: true,
      permitted_dns_domains: 'in.example',
      excluded_ip_ranges: '10.0.0.0/8',
    }
    const sub = dataOf(await done(pki.post('root/sign-intermediate', wanted)))
    const { imported_issuers: ids } = dataOf(
      await pki.post('intermediate/set-signed', { certificate: sub.certificate }),
    )
    await pki.role('r', { issuer_ref: (ids as string[])[0] })
    const issue = (body: object) => pki.post('issue/r', { ttl: '1h', ...body })
    expect((await issue({ common_name: 'a.in.example', ip_sans: '192.168.0.1' })).status).toBe(200)
    const dns = await issue({ common_name: 'a.out.example' })
    expect(dns.status).toBe(400)
    expect(errorsOf(dns)[0]).toContain('a.out.example')
    expect((await issue({ common_name: 'a.in.example', ip_sans: '10.1.1.1' })).status).toBe(400)
  })
})

describe('sign-self-issued', () => {
  test('changes the issuer of a self-issued certificate and keeps the rest', async () => {
    const [old, next] = [await createAuthority(node), await createAuthority(node)]
    const given = await old.root({ common_name: 'Old', max_path_length: 3 })
    const root = await next.root({ common_name: 'New' })
    const data = dataOf(await done(next.post('root/sign-self-issued', { certificate: given.certificate })))
    const [before, after] = [certificateOf(given), certificateOf(data)]
    expect(after.verify(certificateOf(root).publicKey)).toBe(true)
    expect({ subject: after.subject, serial: after.serialNumber, until: after.validTo }).toEqual({
      ...{ subject: before.subject, serial: before.serialNumber, until: before.validTo },
    })
    expect(after.issuer).toBe('CN=New')
    expect(await text(data.certificate)).toContain('pathlen:3')
    expect(data.issuing_ca).toBe(root.certificate)
    expect((await next.get(`cert/${given.serial_number}`)).status).toBe(404)
  })

  test('refuses leaves, others’ certificates, and another algorithm where it must match', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r')
    const leaf = dataOf(await pki.post('issue/r', { common_name: 'a.example', ttl: '1h' }))
    const refusal = async (body: object) => errorsOf(await pki.post('root/sign-self-issued', body))[0]
    expect(await refusal({})).toBe('certificate could not be PEM-decoded')
    expect(await refusal({ certificate: leaf.certificate })).toBe('given certificate is not a CA certificate')
    const two = `${root.certificate}\n${root.certificate}`
    expect(await refusal({ certificate: two })).toBe('2 certificates found in PEM file, expected 1')
    const { csr } = dataOf(await pki.post('intermediate/generate/internal', { common_name: 'Sub', key_type: 'ec' }))
    const sub = dataOf(await pki.post('root/sign-intermediate', { csr, ttl: '1h' }))
    expect(await refusal({ certificate: sub.certificate })).toBe('given certificate is not self-issued')
    const other = await (await createAuthority(node)).root({ key_type: 'rsa' })
    const strict = { certificate: other.certificate, require_matching_certificate_algorithms: true }
    expect(await refusal(strict)).toContain('does not match submitted certificate')
  })

  test('on the root path needs sudo', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    const limited = await node.limited(`path "${pki.path}/*" { capabilities = ["create", "update"] }`)
    const body = { certificate: root.certificate }
    expect((await limited.post(`${pki.path}/root/sign-self-issued`, body)).status).toBe(403)
    expect((await limited.post(`${pki.path}/issuer/default/sign-self-issued`, body)).status).toBe(200)
  })
})

describe('sign-verbatim', () => {
  test('copies subject, names and extensions of the request', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    const csr = await csrOf('/C=SE/O=Any Thing/CN=anything at all', [
      ...['subjectAltName=DNS:a_b.example,IP:10.0.0.1', 'extendedKeyUsage=codeSigning', '1.2.3.4=DER:0500'],
    ])
    const ignored = { common_name: 'b', alt_names: 'body.example', ip_sans: '10.0.0.2' }
    const reply = await done(pki.post('sign-verbatim', { csr, ttl: '1h', ...ignored }))
    expect(warningsOf(reply)).toContain(
      'sign-verbatim takes names only from the CSR, and ignored these: common_name, alt_names, ip_sans',
    )
    const data = dataOf(reply)
    const said = await text(data.certificate)
    expect(said).toContain('Subject: C = SE, O = Any Thing, CN = anything at all')
    expect(said).toContain('DNS:a_b.example, IP Address:10.0.0.1')
    expect(said).toContain('Code Signing')
    expect(said).toContain('1.2.3.4')
    expect(said).toContain('Digital Signature, Key Encipherment, Key Agreement')
    expect(said).not.toMatch(/body\.example|10\.0\.0\.2|UID/)
    expect(data.ca_chain).toEqual([root.certificate])
  })

  test('adds user_ids to the subject', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const csr = await csrOf('/O=Any/CN=a/UID=theirs')
    const data = dataOf(await done(pki.post('sign-verbatim', { csr, ttl: '1h', user_ids: 'u1,u2' })))
    expect(await text(data.certificate)).toContain('Subject: O = Any, CN = a, UID = theirs, UID = u1 + UID = u2')
    const long = await pki.post('sign-verbatim', { csr, ttl: '1h', user_ids: 'u'.repeat(5000) })
    expect(long.status).toBe(400)
  })

  test('names the usages that do not exist', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const csr = await csrOf('/CN=a.example')
    const reply = await done(
      pki.post('sign-verbatim', {
        csr,
        ttl: '1h',
        key_usage: 'DigitalSignatur',
        ext_key_usage: 'ServerAuth,WebServer',
      }),
    )
    expect(warningsOf(reply)).toEqual([
      'key_usage: no usage has the name DigitalSignatur; ignored',
      'ext_key_usage: no usage has the name WebServer; ignored',
    ])
    const said = await text(dataOf(reply).certificate)
    expect(said).not.toContain('X509v3 Key Usage')
    expect(said).toMatch(/Extended Key Usage:\s+TLS Web Server Authentication\n/)
    const known = { key_usage: 'digitalsignature', ext_key_usage: 'serverauth' }
    expect(warningsOf(await done(pki.post('sign-verbatim', { csr, ttl: '1h', ...known })))).toEqual([])
  })

  test('an empty subject makes the alternative names critical, and user_ids are a subject', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const csr = await csrOf('/', ['subjectAltName=DNS:a.example'])
    const reply = await done(pki.post('sign-verbatim', { csr, ttl: '1h' }))
    expect(await text(dataOf(reply).certificate)).toMatch(/Subject Alternative Name: critical\s+DNS:a\.example\n/)
    const made = 'the subjectAltName of the CSR was made critical, because the subject is empty'
    expect(warningsOf(reply)).toContain(made)
    const critical = await csrOf('/', ['subjectAltName=critical,DNS:a.example'])
    expect(warningsOf(await done(pki.post('sign-verbatim', { csr: critical, ttl: '1h' })))).not.toContain(made)
    const named = dataOf(await done(pki.post('sign-verbatim', { csr, ttl: '1h', user_ids: 'u' })))
    expect(await text(named.certificate)).toMatch(/Subject Alternative Name: *\s+DNS:a\.example\n/)
    const nameless = await pki.post('sign-verbatim', { csr: await csrOf('/') })
    expect(errorsOf(nameless)[0]).toContain('an empty subject needs a critical subjectAltName')
  })

  test.each([['basicConstraints=critical,CA:TRUE'], ['keyUsage=keyCertSign']])(
    'never makes a CA: %s',
    async (extension) => {
      const pki = await createAuthority(node)
      await pki.root()
      const refused = await pki.post('sign-verbatim', { csr: await csrOf('/CN=x', [extension]) })
      expect(refused.status).toBe(400)
      expect(errorsOf(refused)[0]).toContain('a CA certificate is made by sign-intermediate')
    },
  )

  test('of a role only times and keeping count', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r', { allow_any_name: false, ttl: '2h', no_store: true })
    const csr = await csrOf('/CN=any.example')
    for (const [path, name] of [
      ['sign-verbatim/r', ''],
      ['sign-verbatim', 'r'],
      ['sign-verbatim/r', 'nobody'],
    ]) {
      const data = dataOf(await done(pki.post(path ?? '', { csr, name })))
      expect((await pki.get(`cert/${data.serial_number}`)).status).toBe(404)
      const seconds = Number(data.expiration) - Date.now() / 1000
      expect(Math.abs(seconds - 7200)).toBeLessThan(120)
    }
    expect(errorsOf(await pki.post('sign-verbatim/nobody', { csr }))).toEqual(['unknown role: nobody'])
    expect(errorsOf(await pki.post('sign-verbatim', { csr, name: 'nobody' }))).toEqual(['unknown role: nobody'])
  })
})
