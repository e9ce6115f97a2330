import { describe, expect, test } from 'vitest'
import { done, expectRefused, useSharedNode } from '../../api/node.ts'
import { certificateOf, createAuthority, dataOf, warningsOf } from './authority.ts'

const node = useSharedNode()

describe('root/generate', () => {
  test.each([
    [{ key_type: 'rsa' }, 'sha256WithRSAEncryption'],
    [{ key_type: 'rsa', signature_bits: 512 }, 'sha512WithRSAEncryption'],
    [{ key_type: 'rsa', use_pss: true, signature_bits: 384 }, 'rsassaPss'],
    [{ key_type: 'ec', key_bits: 384, signature_bits: 256 }, 'ecdsa-with-SHA384'],
    [{ key_type: 'ec', key_bits: 521 }, 'ecdsa-with-SHA512'],
    [{ key_type: 'ed25519' }, 'ED25519'],
  ])('signs itself: %j', async (body, algorithm) => {
    const pki = await createAuthority(node)
    const data = await pki.root(body)
    const certificate = certificateOf(data)
    expect(certificate.verify(certificate.publicKey)).toBe(true)
    expect(certificate.ca).toBe(true)
    expect(certificate.signatureAlgorithm?.toLowerCase()).toBe(algorithm.toLowerCase())
    expect(data).toEqual({
      ...{ certificate: expect.any(String), issuing_ca: data.certificate },
      ...{ serial_number: expect.any(String), expiration: Date.parse(certificate.validTo) / 1000 },
      ...{ issuer_id: expect.any(String), issuer_name: '', key_id: expect.any(String), key_name: '' },
    })
    const serial = String(data.serial_number).replaceAll(':', '')
    expect(certificate.serialNumber.toLowerCase().padStart(40, '0')).toBe(serial.padStart(40, '0'))
  })

  test('has the subject, names and constraints that are asked for', async () => {
    const pki = await createAuthority(node)
    const data = await pki.root({
      ...{ common_name: 'ca.example', organization: 'A,B', ou: ['U'], country: 'SE', max_path_length: 1 },
      ...{ alt_names: 'x.example,m@y.example', ip_sans: '10.0.0.1', permitted_dns_domains: '.example' },
    })
    const certificate = certificateOf(data)
    expect(certificate.subject).toBe('C=SE\nO=A\nO=B\nOU=U\nCN=ca.example'.replace('O=A\nO=B', 'O=A + O=B'))
    expect(certificate.subjectAltName).toBe('DNS:ca.example, DNS:x.example, email:m@y.example, IP Address:10.0.0.1')
    expect(certificate.toString()).toBe(`${data.certificate}\n`)
  })

  test('an existing key signs a second root', async () => {
    const pki = await createAuthority(node)
    const first = await pki.root({ key_name: 'k' })
    const second = dataOf(await pki.post('root/generate/existing', { common_name: 'Again', key_ref: 'k' }))
    expect(second.key_id).toBe(first.key_id)
    expect(second.issuer_id).not.toBe(first.issuer_id)
    expect(certificateOf(second).publicKey.equals(certificateOf(first).publicKey)).toBe(true)
  })

  test('rotate names the new issuer next while that is free', async () => {
    const pki = await createAuthority(node)
    const rotate = async () => dataOf(await pki.post('root/rotate/internal', { common_name: 'R', key_type: 'ec' }))
    expect((await rotate()).issuer_name).toBe('next')
    expect((await rotate()).issuer_name).toBe('')
  })

  test('its certificate is stored, and the chain of the default issuer is it', async () => {
    const pki = await createAuthority(node)
    const data = await pki.root()
    const stored = dataOf(await pki.get(`cert/${data.serial_number}`))
    expect(stored).toEqual({
      ...{ certificate: data.certificate, revocation_time: 0, revocation_time_rfc3339: '' },
    })
    expect(dataOf(await pki.list('certs'))).toEqual({ keys: [data.serial_number] })
    expect(dataOf(await pki.get('cert/ca')).certificate).toBe(data.certificate)
    expect((await pki.get('ca_chain')).text).toBe(data.certificate)
  })

  test.each([
    ['zz', {}, 'the "exported" path parameter must be "internal", "existing", exported" or "kms"'],
    ['internal', { issuer_name: 'default' }, "reserved keyword 'default' can not be used as issuer name"],
    ['internal', { issuer_name: 'a/b' }, 'issuer name contained invalid characters'],
    ['internal', { key_name: 'default' }, "reserved keyword 'default' can not be used as key name"],
    ['existing', { key_type: 'rsa' }, 'invalid parameter for the kms/existing path parameter'],
    ['existing', {}, 'failed to lookup public key from existing key: no default key currently configured'],
    ['existing', { key_ref: 'x' }, 'failed to lookup public key from existing key: unable to find PKI key'],
    ['kms', {}, 'missing argument managed_key_name or managed_key_id'],
    ['internal', { common_name: '' }, 'a CA certificate needs a subject'],
    ['internal', { ttl: '1h', not_after: '2030-01-01T00:00:00Z' }, 'Either ttl or not_after should be provided'],
    ['internal', { permitted_ip_ranges: '10.0.0.1' }, 'permitted_ip_ranges: "10.0.0.1" is not a network'],
    ['internal', { max_path_length: -2 }, 'max_path_length must be -1 or greater'],
    ['internal', { signature_bits: 100 }, 'unsupported hash signature algorithm: 100'],
    ['internal', { format: 'x' }, 'the "format" path parameter must be "pem", "der", or "pem_bundle"'],
    ['internal', { residence: 'x' }, 'residence must be "wrapped" or "token"'],
  ])('root/generate/%s refuses %j and leaves nothing', async (type, body, text) => {
    const pki = await createAuthority(node)
    const reply = await pki.post(`root/generate/${type}`, { common_name: 'R', ...body })
    expect(reply.status, reply.text).toBe(400)
    expect((reply.body as { errors: string[] }).errors[0]).toContain(text)
    expect((await pki.list('issuers')).status).toBe(404)
    expect((await pki.list('keys')).status).toBe(404)
  })

  test('warns of a mount without any URLs, and of a path length of zero', async () => {
    const pki = await createAuthority(node)
    const body = { common_name: 'R', key_type: 'ec', ttl: '1h', max_path_length: 0 }
    const zero = expect.stringMatching(/^Max path length of the generated certificate is zero\./)
    expect(warningsOf(await done(pki.post('root/generate/internal', body)))).toEqual([
      expect.stringMatching(/^This mount hasn't configured any authority information access/),
      zero,
    ])
    await done(pki.post('config/urls', { crl_distribution_points: 'http://crl.example' }))
    expect(warningsOf(await done(pki.post('root/generate/internal', body)))).toEqual([zero])
  })

  test('refuses with texts that do not mention a role', async () => {
    const pki = await createAuthority(node)
    const reply = await pki.post('root/generate/internal', { common_name: 'R', not_after: '2020-01-01T00:00:00Z' })
    expect((reply.body as { errors: string[] }).errors).toEqual([
      expect.stringMatching(/^The certificate's Not Before/),
      'a certificate must not be expired when it is issued',
    ])
  })

  test('names are unique', async () => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'one', key_name: 'k' })
    const body = { common_name: 'R', key_type: 'ec' }
    const again = await pki.post('root/generate/internal', { ...body, issuer_name: 'one' })
    expectRefused(again, 400, 'issuer name already in use')
    expectRefused(await pki.post('root/generate/internal', { ...body, key_name: 'k' }), 400, 'key name already in use')
  })

  test('warns of the URLs it leaves out, and of missing ones', async () => {
    const pki = await createAuthority(node)
    await pki.post('config/urls', {
      issuing_certificates: ['http://ca.example/{{issuer_id}}', 'http://ca.example/{{ issuer_id }}.crt'],
      ocsp_servers: 'http://ocsp.example',
      enable_templating: true,
    })
    const reply = await pki.post('root/generate/internal', { common_name: 'R', key_type: 'ec', ttl: '1h' })
    expect(warningsOf(reply)).toEqual([
      'http://ca.example/{{issuer_id}} was left out: the id of a new root is not known yet',
      'http://ca.example/{{ issuer_id }}.crt was left out: the id of a new root is not known yet',
    ])
    expect(certificateOf(dataOf(reply)).infoAccess).toBe('OCSP - URI:http://ocsp.example')
  })
})

describe('DELETE root', () => {
  test('removes every issuer and key', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.root({ common_name: 'B' })
    const reply = await pki.delete('root')
    expect(reply.status).toBe(200)
    expect(warningsOf(reply)).toHaveLength(1)
    for (const what of ['issuers', 'keys']) expect((await pki.list(what)).status).toBe(404)
    expect(dataOf(await pki.get('config/issuers')).default).toBe('')
    await pki.root()
  })

  test('needs sudo', async () => {
    const pki = await createAuthority(node)
    const limited = await node.limited(`path "${pki.path}/root" { capabilities = ["delete"] }`)
    expect((await limited.delete(`${pki.path}/root`)).status).toBe(403)
  })
})
