import { expect, test } from 'vitest'
import { readBlocks } from '../../../src/crypto/pem.ts'
import { entrySerials } from '../../../src/x509/crlentry.ts'
import { readCrl } from '../../../src/x509/crlreader.ts'
import { done, expectRefused, useSharedNode } from '../../api/node.ts'
import { createAuthority, dataOf, errorsOf, type TestAuthority, warningsOf } from './authority.ts'
import { csrOf } from './csr.ts'

/** Fields that are refused, or ignored with a warning. */

const node = useSharedNode()

test.each(['intermediate/generate/internal', 'issuers/generate/intermediate/internal', 'intermediate/cross-sign'])(
  '%s refuses a request without a subject',
  async (path) => {
    const pki = await createAuthority(node)
    await pki.root()
    for (const body of [{}, { common_name: '' }, { alt_names: 'a.example', exclude_cn_from_sans: true }]) {
      expectRefused(await pki.post(path, body), 400, 'a CA certificate needs a subject: give a common_name')
    }
    expect((await pki.list('keys')).body).toMatchObject({ data: { keys: [expect.any(String)] } })
    await done(pki.post(path, { organization: 'Any' }))
  },
)

test('key_name of an existing key and key_ref of a new one are ignored with a warning', async () => {
  const pki = await createAuthority(node)
  const { key_id: key } = await pki.root()
  const again = { common_name: 'Again', key_ref: key, key_name: 'other' }
  const existing = await done(pki.post('root/generate/existing', again))
  expect(warningsOf(existing)).toContain('key_name is for new keys, and was ignored')
  expect(dataOf(existing).key_id).toBe(key)
  const made = await done(pki.post('root/generate/internal', { common_name: 'New', key_type: 'ec', key_ref: key }))
  expect(warningsOf(made)).toContain('key_ref is for keys of type existing, and was ignored')
  expect(dataOf(made).key_id).not.toBe(key)
})

test('use_csr_sans ignores every kind of name in the body with a warning', async () => {
  const pki = await createAuthority(node)
  await pki.root()
  await pki.role('r')
  const csr = await csrOf('/CN=a.example', ['subjectAltName=DNS:b.example'])
  const names = { alt_names: 'c.example', ip_sans: '10.0.0.1', uri_sans: 'urn:x' }
  const warnings = warningsOf(await done(pki.post('sign/r', { csr, ttl: '1h', ...names })))
  for (const field of Object.keys(names)) {
    expect(warnings).toContain(`the ${field} field was provided but the role is set with "use_csr_sans" set to true`)
  }
})

test('PSS for the lists of an issuer is answered with a warning about its OCSP answers', async () => {
  const pki = await createAuthority(node)
  await pki.root({ key_type: 'rsa' })
  const set = (revocation_signature_algorithm: string) =>
    done(pki.patch('issuer/default', { revocation_signature_algorithm }))
  expect(warningsOf(await set('SHA256WithRSAPSS'))).toEqual([
    'revocation lists are signed with PSS; OCSP answers of this issuer are signed with PKCS#1 v1.5 and the same hash',
  ])
  expect(warningsOf(await set('SHA256WithRSA'))).toEqual([])
})

test('a PEM block that is no key is not said to be an encrypted one', async () => {
  const pki = await createAuthority(node)
  await pki.root()
  const csr = await csrOf('/CN=a.example')
  for (const path of ['config/ca', 'issuers/import/bundle', 'keys/import']) {
    const [error] = errorsOf(await pki.post(path, { pem_bundle: csr }))
    expect(error, path).toContain('it is not a private key, or an encrypted one')
  }
  const encrypted = csr.replaceAll('CERTIFICATE REQUEST', 'ENCRYPTED PRIVATE KEY')
  expect(errorsOf(await pki.post('keys/import', { pem_bundle: encrypted }))[0]).toContain('the key is encrypted')
})

test('a path below a public one that is none is 404 to everybody, and other paths say nothing to strangers', async () => {
  const pki = await createAuthority(node)
  const stranger = node.client('')
  for (const path of ['cert/zz', 'cert/crl/raw', 'cert/not-a-serial/raw/pem']) {
    for (const client of [stranger, node.root]) {
      const reply = await client.get(`${pki.path}/${path}`)
      expect([path, reply.status, reply.body]).toEqual([...[path, 404], { errors: ['unsupported path'] }])
      expect(errorsOf(await client.call('PUT', `${pki.path}/ca/pem`, {}))).toEqual(['unsupported operation'])
    }
  }
  expect((await stranger.list(`${pki.path}/issuers`)).status).toBe(404)
  const listOnly = await stranger.get(`${pki.path}/issuers`)
  expect([listOnly.status, errorsOf(listOnly)]).toEqual([403, ['permission denied']])
  expect((await node.root.get(`${pki.path}/issuers`)).status).toBe(405)
  expect((await stranger.get(`${pki.path}/nowhere`)).status).toBe(403)
})

test.each(['import', 'rotation'])(
  'a certificate revoked while its issuer was gone is on the list after %s',
  async (how) => {
    const pki = await createAuthority(node)
    const { certificate, key_id: key } = await pki.root({ issuer_name: 'gone' })
    await pki.role('r')
    const { serial_number: serial } = dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' })))
    await done(pki.delete('issuer/gone'))
    expect(warningsOf(await done(pki.post('revoke', { serial_number: serial })))).toEqual([
      expect.stringContaining('imported again'),
    ])
    if (how === 'import') await done(pki.post('issuers/import/cert', { pem_bundle: certificate }))
    else {
      await done(pki.post('root/generate/existing', { common_name: 'Test Root', key_ref: key, ttl: '1000h' }))
      await done(pki.get('crl/rotate'))
    }
    await done(
      pki.post('config/issuers', { default: String(((await pki.list('issuers')).body as Listed).data.keys[0]) }),
    )
    expect(await listed(pki)).toContain(serial)
  },
)

interface Listed {
  readonly data: { readonly keys: readonly string[] }
}

async function listed(pki: TestAuthority): Promise<readonly string[]> {
  const { body } = await done(pki.get('cert/crl'))
  const { der } = readBlocks(String((body as { data: { certificate: string } }).data.certificate), 1)[0] ?? {}
  return [...entrySerials(readCrl(der ?? Buffer.alloc(0)).entries)].map(({ serial }) =>
    (serial.toString('hex').match(/../g) ?? []).join(':'),
  )
}
