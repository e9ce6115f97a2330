import { describe, expect, test } from 'vitest'
import { table } from '../../../src/engines/pki/index.ts'
import { listRoutes } from '../../../src/engines/pki/routes/lists/table.ts'
import { done, useSharedNode } from '../../api/node.ts'
import { certificateOf, createAuthority, dataOf, type TestAuthority } from '../api/authority.ts'
import { csrOf } from '../api/csr.ts'

const node = useSharedNode()

/** The routes that the specification lets everybody read. */
const open = [
  'GET ca',
  'GET ca/pem',
  'GET ca_chain',
  'GET cert/:serial',
  'GET cert/:serial/raw',
  'GET cert/:serial/raw/pem',
  'GET cert/ca',
  'GET cert/ca/raw',
  'GET cert/ca/raw/pem',
  'GET cert/ca_chain',
  'GET issuer/:issuer_ref/der',
  'GET issuer/:issuer_ref/json',
  'GET issuer/:issuer_ref/pem',
  'LIST issuers',
  ...Object.keys(listRoutes).filter((name) => !name.includes('rotate')),
].toSorted()
/** Also open to everybody; without a request they answer with an error of OCSP's own. */
const responders = ['GET ocsp/:request**', 'GET unified-ocsp/:request**', 'POST ocsp', 'POST unified-ocsp']
const sudo = ['DELETE root', 'POST root/sign-self-issued']

const json = 'application/json'
const routes = Object.entries(table)
const guarded = routes.filter(([name]) => !open.includes(name) && !responders.includes(name))

/** The path of a route with every capture filled in. */
const filled = (path: string, name: string): string =>
  path.replace(':serial', '01-02').replace(':type', 'internal').replaceAll(/:\w+/g, name)

async function furnished(): Promise<TestAuthority> {
  const pki = await createAuthority(node)
  await pki.root({ issuer_name: 'there', key_name: 'there' })
  await pki.role('there')
  return pki
}

describe('who may do nothing', () => {
  test('may read the public paths, and no others', async () => {
    const everybodys = routes.flatMap(([name, { access }]) => (access === 'public' ? [name] : []))
    expect(everybodys.toSorted()).toEqual([...open, ...responders].toSorted())
    const pki = await furnished()
    const nobody = node.client('')
    for (const name of open) {
      const [verb = '', path = ''] = name.split(' ')
      const reply = await nobody.call(verb, `${pki.path}/${filled(path, 'there')}`)
      // No certificate has the serial number 01:02, and there are neither unified lists nor shards.
      const nothing = [':serial', 'unified', ':shard'].some((part) => path.includes(part))
      expect([name, reply.status]).toEqual([name, nothing ? (reply.headers['content-type'] === json ? 404 : 204) : 200])
      expect(reply.text).not.toContain('PRIVATE')
    }
    for (const name of responders) {
      const [verb = '', path = ''] = name.split(' ')
      const reply = await nobody.call(verb, `${pki.path}/${path.replace(':request**', 'there')}`)
      expect([name, reply.status]).toEqual([name, 400])
    }
    for (const path of ['issuers/', 'certs', 'keys', 'roles']) {
      expect((await nobody.list(`${pki.path}/${path}`)).status, path).toBe(path === 'issuers/' ? 200 : 403)
    }
    expect((await nobody.get(`${pki.path}/issuer/there`)).status).toBe(403)
  })

  test('is refused alike on every other route, whatever exists and for any body', async () => {
    const pki = await furnished()
    const before = [await pki.list('issuers'), await pki.list('keys'), await pki.list('roles'), await pki.list('certs')]
    const elsewhere = await node.limited('path "elsewhere/*" { capabilities = ["read", "update", "sudo"] }')
    const nobody = node.client('')
    for (const [name, { method, path }] of guarded) {
      for (const reference of ['there', 'nobody']) {
        for (const body of method === 'POST' || method === 'PATCH'
          ? [{}, { ttl: [], csr: {}, format: 'zz' }]
          : [undefined]) {
          const at = `${pki.path}/${filled(path, reference)}`
          const type = { 'Content-Type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' }
          const unknown = await nobody.call(method, at, body, type)
          expect([name, unknown.status, unknown.body]).toEqual([name, 403, { errors: ['permission denied'] }])
          const refused = await elsewhere.call(method, at, body, type)
          expect([name, refused.status]).toEqual([name, 403])
          expect(refused.text).toContain('permission denied')
        }
      }
    }
    const after = [await pki.list('issuers'), await pki.list('keys'), await pki.list('roles'), await pki.list('certs')]
    expect(after.map(dataOf)).toEqual(before.map(dataOf))
  }, 120_000)
})

describe('rights', () => {
  test('without sudo are not enough where sudo is needed, and there alone', async () => {
    expect(routes.flatMap(([name, { access }]) => (access === 'sudo' ? [name] : [])).toSorted()).toEqual(sudo)
    const pki = await furnished()
    const all = 'capabilities = ["create", "read", "update", "delete", "list", "patch"]'
    const client = await node.limited(`path "${pki.path}/*" { ${all} }`)
    const certificate = dataOf(await done(pki.get('cert/ca'))).certificate
    expect((await client.post(`${pki.path}/root/sign-self-issued`, { certificate })).status).toBe(403)
    expect((await client.delete(`${pki.path}/root`)).status).toBe(403)
    expect((await client.post(`${pki.path}/issuer/there/sign-self-issued`, { certificate })).status).toBe(200)
    expect(dataOf(await done(pki.list('issuers'))).keys).toHaveLength(1)
  })

  test('to issue by one role are rights to nothing else', async () => {
    const pki = await furnished()
    await pki.role('other')
    const client = await node.limited(`path "${pki.path}/issue/there" { capabilities = ["update"] }`)
    const wanted = { common_name: 'a.example' }
    expect((await client.post(`${pki.path}/issue/there`, wanted)).status).toBe(200)
    for (const path of [
      ...[
        'issue/other',
        'issue/There',
        'issuer/default/issue/there',
        'sign/there',
        'sign-verbatim',
        'sign-verbatim/there',
      ],
      ...['issue/there/', 'issue//there', 'issue/../issue/other', 'issue/there%2f..%2fother', 'roles/there/explain'],
    ]) {
      const { status } = await client.post(`${pki.path}/${path}`, wanted)
      expect([path, [400, 403, 404].includes(status)]).toEqual([path, true])
    }
    // Another name of the role in the body changes nothing.
    const named = await client.post(`${pki.path}/issue/there`, {
      ...wanted,
      role: 'other',
      name: 'other',
      issuer_ref: 'x',
    })
    expect(named.status).toBe(200)
  })

  test.each([
    ['an allowed one with another before it', { alt_names: 'evil.test,a.good.test' }],
    ['an allowed one with another behind it', { alt_names: 'a.good.test, evil.test' }],
    ['another address', { ip_sans: '10.0.0.1,192.0.2.1' }],
    ['another URI', { uri_sans: ['spiffe://good/a', 'spiffe://evil/a'] }],
    ['a field that is not named', { other_sans: '1.2.3;UTF8:evil' }],
    ['a common name beside them', { common_name: 'evil.test' }],
    ['a CSR', { csr: 'evil' }],
  ])('that name the values of parameters hold for every name: %s', async (_, body) => {
    const pki = await furnished()
    await pki.role('there', { allowed_uri_sans: '*', allowed_other_sans: '*' })
    const client = await node.limited(`path "${pki.path}/issue/there" {
      capabilities = ["update"]
      allowed_parameters = {
        "common_name" = ["*.good.test"]
        "alt_names" = ["*.good.test"]
        "ip_sans" = ["10.*"]
        "uri_sans" = ["spiffe://good/*"]
        "role" = []
      }
    }`)
    const good = { common_name: 'a.good.test', alt_names: 'b.good.test,c.good.test', ip_sans: '10.0.0.1,10.0.0.2' }
    const path = `${pki.path}/issue/there`
    const issued = await client.post(path, { ...good, uri_sans: 'spiffe://good/a' })
    expect(issued.status, issued.text).toBe(200)
    expect(certificateOf(dataOf(issued)).subjectAltName).toContain('c.good.test')
    const refused = await client.post(path, { ...good, ...body })
    expect(refused.status, refused.text).toBe(403)
  })

  test('that deny a value deny it among others', async () => {
    const pki = await furnished()
    const path = `${pki.path}/issue/there`
    const client = await node.limited(`path "${path}" {
      capabilities = ["update"]
      denied_parameters = { "alt_names" = ["evil.test"], "ttl" = ["87600h"], "format" = ["der"] }
    }`)
    const wanted = { common_name: 'a.example' }
    expect((await client.post(path, { ...wanted, alt_names: 'b.example' })).status).toBe(200)
    for (const body of [
      { alt_names: 'evil.test' },
      { alt_names: 'b.example,evil.test' },
      { alt_names: 'b.example, EVIL.test ' },
      { ALT_NAMES: 'evil.test' },
      { ttl: 315360000 },
      { ttl: '315360000s' },
      { format: 'der' },
    ]) {
      expect([body, (await client.post(path, { ...wanted, ...body })).status]).toEqual([body, 403])
    }
  })

  test('to sign by a role do not allow a CA certificate', async () => {
    const pki = await furnished()
    const client = await node.limited(`path "${pki.path}/sign/*" { capabilities = ["create", "update"] }`)
    const csr = await csrOf('/CN=a.example', ['basicConstraints=critical,CA:true', 'keyUsage=keyCertSign'])
    const data = dataOf(await done(client.post(`${pki.path}/sign/there`, { csr })))
    expect(certificateOf(data).ca).toBe(false)
    for (const path of ['root/sign-intermediate', 'issuer/there/sign-intermediate', 'sign-verbatim']) {
      expect((await client.post(`${pki.path}/${path}`, { csr })).status).toBe(403)
    }
  })
})
