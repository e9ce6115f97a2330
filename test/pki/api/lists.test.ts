import { expect, test } from 'vitest'
import { done, useNode } from '../../api/node.ts'
import { openSql } from '../../attack/sql.ts'
import { certificateOf, createAuthority, dataOf, errorsOf, warningsOf } from './authority.ts'
import { csrOf, openssl } from './csr.ts'

const node = useNode()

test('a serial number may be written in every form', async () => {
  const pki = await createAuthority(node)
  const root = await pki.root()
  const colons = String(root.serial_number)
  const stranger = node.server.client('')
  for (const serial of [colons, colons.toUpperCase(), colons.replaceAll(':', '-')]) {
    expect(dataOf(await stranger.get(`${pki.path}/cert/${serial}`)).certificate).toBe(root.certificate)
  }
  expect((await stranger.get(`${pki.path}/cert/${colons.replaceAll(':', '')}`)).status).toBe(404)
  expect((await stranger.get(`${pki.path}/cert/00:11`)).status).toBe(404)
  expect((await stranger.get(`${pki.path}/cert/00:11/raw`)).status).toBe(204)
  const raw = await stranger.get(`${pki.path}/cert/${colons}/raw`)
  expect(raw.headers['content-type']).toBe('application/pkix-cert')
})

test('the list of certificates goes page by page', async () => {
  const pki = await createAuthority(node)
  const serials = [(await pki.root()).serial_number]
  await pki.role('r')
  for (const name of ['a', 'b', 'c', 'd']) {
    serials.push(dataOf(await done(pki.post('issue/r', { common_name: `${name}.example` }))).serial_number)
  }
  const sorted = serials.map(String).toSorted()
  expect(dataOf(await pki.list('certs')).keys).toEqual(sorted)
  expect(dataOf(await pki.list('certs?limit=2')).keys).toEqual(sorted.slice(0, 2))
  expect(dataOf(await pki.list(`certs?after=${sorted[1]}&limit=2`)).keys).toEqual(sorted.slice(2, 4))
  expect((await pki.list(`certs?after=${sorted.at(-1)}`)).status).toBe(404)
  expect(errorsOf(await pki.list('certs?after=zz'))[0]).toContain('after: ')
  expect((await node.server.client('').list(`${pki.path}/certs`)).status).toBe(403)
})

test('one answer lists at most 10,000 certificates, with a warning', async () => {
  const pki = await createAuthority(node)
  await pki.root()
  await using sql = await openSql(node.server.database.url)
  const { id = null } = await sql.row('SELECT id FROM mounts WHERE path = ?', [`${pki.path}/`])
  await sql.rows(
    `INSERT INTO pki_certificates SELECT UUID(), mount, site, UNHEX(CONCAT('01', LPAD(HEX(seq), 38, '0'))), issuer, der, not_after, created_at
      FROM pki_certificates JOIN seq_1_to_9999 WHERE mount = ?`,
    [id],
  )
  const all = await pki.list('certs')
  expect({ listed: (dataOf(all).keys as string[]).length, warnings: warningsOf(all) }).toEqual({
    ...{ listed: 10_000, warnings: [] },
  })
  await sql.rows(
    `INSERT INTO pki_certificates SELECT UUID(), mount, site, UNHEX('00'), issuer, der, not_after, created_at
      FROM pki_certificates WHERE mount = ? LIMIT 1`,
    [id],
  )
  for (const limit of ['', '?limit=0', '?limit=20000']) {
    const some = await pki.list(`certs${limit}`)
    const keys = dataOf(some).keys as string[]
    expect({ limit, listed: keys.length }).toEqual({ limit, listed: 10_000 })
    expect(warningsOf(some)).toEqual([
      `There are more than these 10000 certificates: continue with after=${keys.at(-1)}`,
    ])
    expect((dataOf(await pki.list(`certs?after=${keys.at(-1)}`)).keys as string[]).length).toBe(1)
  }
})

test('the detailed list describes certificates, and filters', async () => {
  const pki = await createAuthority(node)
  const root = await pki.root({ issuer_name: 'one' })
  await pki.role('r')
  const wanted = { common_name: 'a.example', alt_names: 'b.example', ttl: '1h' }
  const leaf = dataOf(await done(pki.post('issue/r', wanted)))
  const all = dataOf(await pki.list('certs/detailed'))
  expect(all.keys).toEqual([String(root.serial_number), String(leaf.serial_number)].toSorted())
  const certificate = certificateOf(leaf)
  expect((all.key_info as Record<string, unknown>)[String(leaf.serial_number)]).toEqual({
    ...{ common_name: 'a.example', issuer: root.issuer_id, key_type: 'ec', key_bits: 256 },
    not_before: new Date(certificate.validFrom).toISOString(),
    not_after: new Date(certificate.validTo).toISOString(),
    dns_names: ['a.example', 'b.example'],
  })
  const soon = new Date(Date.now() + 7_200_000).toISOString()
  const filtered = dataOf(await pki.list(`certs/detailed?issuer=one&expires_before=${soon}`))
  expect(filtered.keys).toEqual([leaf.serial_number])
  expect((await pki.list('certs/detailed?issuer=two')).status).toBe(404)
})

test('remove_roots_from_chain', async () => {
  const pki = await createAuthority(node)
  const root = await pki.root()
  const { csr } = dataOf(await pki.post('intermediate/generate/internal', { common_name: 'Sub', key_type: 'ec' }))
  const sub = dataOf(await done(pki.post('root/sign-intermediate', { csr, ttl: '100h' })))
  const { imported_issuers: ids } = dataOf(await pki.post('intermediate/set-signed', { certificate: sub.certificate }))
  await pki.role('r', { issuer_ref: (ids as string[])[0] })
  const wanted = { common_name: 'a.example', ttl: '1h' }
  const whole = dataOf(await done(pki.post('issue/r', wanted)))
  expect(whole.ca_chain).toEqual([sub.certificate, root.certificate])
  const short = dataOf(await done(pki.post('issue/r', { ...wanted, remove_roots_from_chain: true })))
  expect(short.ca_chain).toEqual([sub.certificate])
  const signed = await pki.post('sign/r', {
    csr: await csrOf('/CN=a.example'),
    ttl: '1h',
    remove_roots_from_chain: true,
  })
  expect(dataOf(signed).ca_chain).toEqual([sub.certificate])
  const bundle = String(dataOf(await pki.post('issue/r', { ...wanted, format: 'pem_bundle' })).certificate)
  expect(bundle).toContain(String(sub.certificate))
  expect(bundle).not.toContain(String(root.certificate))
})

const text = (certificate: unknown) => openssl(['x509', '-in', 'c', '-noout', '-text'], { c: String(certificate) })

test('sign-verbatim takes usages of the body if the CSR has none', async () => {
  const pki = await createAuthority(node)
  await pki.root()
  const usages = { key_usage: 'DigitalSignature', ext_key_usage: 'ServerAuth', ext_key_usage_oids: '1.2.3.4' }
  const plain = await done(pki.post('sign-verbatim', { csr: await csrOf('/CN=a'), ttl: '1h', ...usages }))
  const said = await text(dataOf(plain).certificate)
  expect(said).toMatch(/Key Usage: critical\s+Digital Signature\n/)
  expect(said).toMatch(/TLS Web Server Authentication, 1\.2\.3\.4\n/)
  const csr = await csrOf('/CN=a', ['keyUsage=critical,keyAgreement', 'extendedKeyUsage=clientAuth'])
  const own = await text(dataOf(await done(pki.post('sign-verbatim', { csr, ttl: '1h', ...usages }))).certificate)
  expect(own).toMatch(/Key Usage: critical\s+Key Agreement\n/)
  expect(own).toMatch(/Extended Key Usage: \s+TLS Web Client Authentication\n/)
})

test('sign-intermediate adds the key usage DigitalSignature and no other', async () => {
  const pki = await createAuthority(node)
  await pki.root()
  const wanted = { csr: await csrOf('/CN=Sub'), key_usage: ['DigitalSignature', 'KeyEncipherment'] }
  const said = await text(dataOf(await done(pki.post('root/sign-intermediate', wanted))).certificate)
  expect(said).toMatch(/Key Usage: critical\s+Digital Signature, Certificate Sign, CRL Sign\n/)
})
