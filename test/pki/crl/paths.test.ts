import { describe, expect, test } from 'vitest'
import { done, expectRefused, useNode } from '../../api/node.ts'
import { createAuthority, type TestAuthority } from '../api/authority.ts'
import { bundleOf } from '../proof/outside.ts'
import { fetchRaw, importCa, numberOf, shown } from './reading.ts'

const node = useNode()

/** Every path of the specification's table, below a mount, by the list it shows. */
const table = [
  ['complete', 'local', 'cert/crl', 'crl', 'crl/pem'],
  ['delta', 'local', 'cert/delta-crl', 'crl/delta', 'crl/delta/pem'],
  ['complete', 'unified', 'cert/unified-crl', 'unified-crl', 'unified-crl/pem'],
  ['delta', 'unified', 'cert/unified-delta-crl', 'unified-crl/delta', 'unified-crl/delta/pem'],
  ['complete', 'local', 'issuer/default/crl', 'issuer/default/crl/der', 'issuer/default/crl/pem'],
  ['delta', 'local', 'issuer/default/crl/delta', 'issuer/default/crl/delta/der', 'issuer/default/crl/delta/pem'],
  [
    'complete',
    'unified',
    'issuer/default/unified-crl',
    'issuer/default/unified-crl/der',
    'issuer/default/unified-crl/pem',
  ],
  [
    'delta',
    'unified',
    'issuer/default/unified-crl/delta',
    'issuer/default/unified-crl/delta/der',
    'issuer/default/unified-crl/delta/pem',
  ],
] as const

const unified = { auto_rebuild: true, unified_crl: true, enable_delta: true }

describe('a list', () => {
  test.each(table)('%s and %s is at %s in JSON, at %s in DER and at %s in PEM', async (kind, scope, json, der, pem) => {
    const pki = await createAuthority(node)
    await pki.root()
    if (scope === 'unified') await done(pki.post('config/crl', unified))
    const inDer = await fetchRaw(node, `${pki.path}/${der}`)
    expect(inDer.status).toBe(200)
    expect(inDer.headers['content-type']).toBe('application/pkix-crl')
    const text = shown(inDer.body, 'DER')
    expect(text).toContain('Issuer: CN=Test Root')
    expect(text).toContain('Version 2 (0x1)')
    expect(text.includes('X509v3 Delta CRL Indicator: critical')).toBe(kind === 'delta')
    const inPem = await fetchRaw(node, `${pki.path}/${pem}`)
    expect(inPem.headers['content-type']).toBe('application/x-pem-file')
    expect(shown(inPem.body, 'PEM')).toBe(text)
    const ofIssuer = json.startsWith('issuer/')
    expect(inPem.body.toString().endsWith('-----\n')).toBe(ofIssuer)
    const inJson = JSON.parse((await fetchRaw(node, `${pki.path}/${json}`)).body.toString())
    expect(inJson.data).toEqual(
      ofIssuer
        ? { crl: inPem.body.toString() }
        : { certificate: inPem.body.toString(), revocation_time: 0, revocation_time_rfc3339: '' },
    )
  })

  test.each(table)('that is not there: %s and %s, %s 404, %s and %s 204', async (_kind, _scope, json, der, pem) => {
    const pki = await createAuthority(node)
    await pki.root()
    // It has a key but no list: it may not sign one.
    await done(
      pki.post('config/issuers', {
        default: await importCa(pki, bundleOf('No Lists', undefined, 'keyCertSign').bundle),
      }),
    )
    expect((await fetchRaw(node, `${pki.path}/${json}`)).status).toBe(404)
    for (const [path, type] of [
      [der, 'application/pkix-crl'],
      [pem, 'application/x-pem-file'],
    ] as const) {
      const reply = await fetchRaw(node, `${pki.path}/${path}`)
      expect({ status: reply.status, type: reply.headers['content-type'], body: reply.body.length }).toEqual({
        status: 204,
        type,
        body: 0,
      })
    }
  })

  test('of a mount without a default issuer is 204, in JSON 400', async () => {
    const pki = await createAuthority(node)
    expect((await fetchRaw(node, `${pki.path}/crl`)).status).toBe(204)
    expect((await fetchRaw(node, `${pki.path}/unified-crl/delta/pem`)).status).toBe(204)
    expectRefused(await pki.get('cert/crl'), 400, 'no default issuer currently configured')
    expectRefused(await pki.get('issuer/x/crl'), 404, 'unable to find PKI issuer for reference: x')
    expect((await pki.get('cert/crl/raw')).status).toBe(404)
  })

  test('of an issuer that is not the default one is at its own paths', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const other = await pki.root({ common_name: 'Other', issuer_name: 'other' })
    for (const reference of ['other', String(other.issuer_id)]) {
      const list = await fetchRaw(node, `${pki.path}/issuer/${reference}/crl/der`)
      expect(shown(list.body, 'DER')).toContain('Issuer: CN=Other')
    }
    expect(shown((await fetchRaw(node, `${pki.path}/crl`)).body, 'DER')).toContain('Issuer: CN=Test Root')
  })
})

describe('a conditional read of a list', () => {
  const tuned = async (): Promise<TestAuthority> => {
    const pki = await createAuthority(node)
    await done(
      node.root.post(`sys/mounts/${pki.path}/tune`, {
        passthrough_request_headers: ['If-Modified-Since'],
        allowed_response_headers: ['Last-Modified'],
      }),
    )
    await pki.root()
    return pki
  }

  test('is answered 304 by tag and by date, until the list is another one', async () => {
    const pki = await tuned()
    const first = await fetchRaw(node, `${pki.path}/crl`)
    const etag = String(first.headers.etag)
    const modified = String(first.headers['last-modified'])
    expect(first.headers['cache-control']).toMatch(/^public, max-age=3[56]\d\d$/)
    expect((await fetchRaw(node, `${pki.path}/crl`, { 'If-None-Match': etag })).status).toBe(304)
    const later = new Date(Date.now() + 1000).toUTCString()
    expect((await fetchRaw(node, `${pki.path}/crl`, { 'If-Modified-Since': later })).status).toBe(304)
    expect(
      (await fetchRaw(node, `${pki.path}/crl`, { 'If-Modified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' })).status,
    ).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 1100))
    await done(pki.get('crl/rotate'))
    const second = await fetchRaw(node, `${pki.path}/crl`, { 'If-None-Match': etag })
    expect(second.status).toBe(200)
    expect((await fetchRaw(node, `${pki.path}/crl`, { 'If-Modified-Since': modified })).status).toBe(200)
    expect(numberOf(shown(second.body, 'DER'))).toBeGreaterThan(numberOf(shown(first.body, 'DER')))
  })

  test('does not take a list of the same second for the one before it', async () => {
    const pki = await tuned()
    const first = await fetchRaw(node, `${pki.path}/crl`)
    await done(pki.get('crl/rotate'))
    await new Promise((resolve) => setTimeout(resolve, 1100))
    const modified = String(first.headers['last-modified'])
    expect((await fetchRaw(node, `${pki.path}/crl`, { 'If-Modified-Since': modified })).status).toBe(200)
  })

  test('HEAD tells the length of the list and sends nothing', async () => {
    const pki = await tuned()
    const [whole, head] = [await fetchRaw(node, `${pki.path}/crl`), await fetchRaw(node, `${pki.path}/crl`, {}, 'HEAD')]
    expect({ status: head.status, length: head.headers['content-length'], body: head.body.length }).toEqual({
      status: 200,
      length: String(whole.body.length),
      body: 0,
    })
  })
})
