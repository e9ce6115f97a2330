import { describe, expect, test } from 'vitest'
import { done, expectRefused, useSharedNode } from '../../api/node.ts'
import { certificateOf, createAuthority, dataOf, errorsOf, warningsOf } from './authority.ts'

const node = useSharedNode()

describe('an issuer', () => {
  test('is read with its settings', async () => {
    const pki = await createAuthority(node)
    const made = await pki.root({ issuer_name: 'one' })
    const data = dataOf(await pki.get('issuer/one'))
    expect(data).toEqual({
      ...{ issuer_id: made.issuer_id, issuer_name: 'one', key_id: made.key_id, revoked: false },
      ...{ certificate: `${made.certificate}\n`, ca_chain: [`${made.certificate}\n`], manual_chain: null },
      ...{ leaf_not_after_behavior: 'err', usage: 'crl-signing,issuing-certificates,ocsp-signing,read-only' },
      ...{ revocation_signature_algorithm: 'ECDSAWithSHA256' },
      ...{ issuing_certificates: [], crl_distribution_points: [], ocsp_servers: [] },
    })
    for (const reference of ['default', 'DEFAULT', String(made.issuer_id)]) {
      expect(dataOf(await pki.get(`issuer/${reference}`)).issuer_id).toBe(made.issuer_id)
    }
  })

  test('that does not exist is 404 for reads and 400 for writes, by the words that clients look for', async () => {
    const pki = await createAuthority(node)
    const text = 'unable to find PKI issuer for reference: nobody'
    for (const path of ['issuer/nobody', 'issuer/nobody/json', 'issuer/nobody/der', 'issuer/nobody/pem']) {
      const reply = await pki.get(path)
      expect(reply.status).toBe(404)
      expect(errorsOf(reply)).toEqual([text])
    }
    expectRefused(await pki.post('issuer/nobody', {}), 400, text)
    expectRefused(await pki.get('issuer/default'), 400, 'no default issuer currently configured')
    expect((await pki.delete('issuer/nobody')).status).toBe(200)
  })

  test('POST sets every setting, PATCH some, null one back to its default', async () => {
    const pki = await createAuthority(node)
    const { issuer_id: id } = await pki.root({ issuer_name: 'one' })
    const written = await pki.post(`issuer/${id}`, {
      ...{ issuer_name: 'two', leaf_not_after_behavior: 'truncate', usage: 'crl-signing' },
      ...{ ocsp_servers: 'http://ocsp.example', revocation_signature_algorithm: 'ECDSAWithSHA512' },
      ...{ manual_chain: 'self' },
    })
    expect(dataOf(written)).toMatchObject({
      ...{ issuer_name: 'two', leaf_not_after_behavior: 'truncate', usage: 'crl-signing,read-only' },
      ...{ ocsp_servers: ['http://ocsp.example'], enable_aia_url_templating: false, manual_chain: [id] },
      ...{ revocation_signature_algorithm: 'ECDSAWithSHA512' },
    })
    const patched = dataOf(await pki.patch('issuer/two', { issuer_name: 'three', usage: null }))
    expect(patched).toMatchObject({
      ...{ issuer_name: 'three', leaf_not_after_behavior: 'truncate', ocsp_servers: ['http://ocsp.example'] },
      usage: 'crl-signing,issuing-certificates,ocsp-signing,read-only',
    })
    const reset = dataOf(await pki.post('issuer/three', {}))
    expect(reset).toMatchObject({
      ...{ issuer_name: '', leaf_not_after_behavior: 'err', ocsp_servers: [], manual_chain: null },
      ...{ revocation_signature_algorithm: '', usage: 'crl-signing,issuing-certificates,ocsp-signing,read-only' },
    })
    expect(reset).not.toHaveProperty('enable_aia_url_templating')
  })

  test('takes a signature algorithm in any case, and shows its name', async () => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'one' })
    const written = await pki.patch('issuer/one', { revocation_signature_algorithm: 'ecdsawithsha384' })
    expect(dataOf(written).revocation_signature_algorithm).toBe('ECDSAWithSHA384')
  })

  test.each([
    [{ usage: 'junk' }, 'Unable to parse specified usages: [junk] - valid values are'],
    [{ leaf_not_after_behavior: 'junk' }, 'Unknown value for field `leaf_not_after_behavior`: junk'],
    [{ revocation_signature_algorithm: 'junk' }, 'Unknown signature algorithm value'],
    [{ revocation_signature_algorithm: 'SHA256WithRSA' }, 'unable to use issuer of type ECDSA'],
    [{ issuer_name: 'default' }, "reserved keyword 'default'"],
    [{ issuer_name: 'other' }, 'issuer name already in use'],
    [{ manual_chain: 'other' }, 'expected first cert in chain to be a self-reference, but was: other/'],
    [{ manual_chain: 'self,nobody' }, 'unable to find PKI issuer for reference: nobody'],
    [{ manual_chain: 'self,other' }, 'manual_chain: '],
    [{ ocsp_servers: 'x' }, 'invalid URL found in Authority Information Access (AIA) parameter ocsp_servers: x'],
  ])('refuses %j', async (body, text) => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'one' })
    await pki.root({ issuer_name: 'other', common_name: 'Other' })
    const before = dataOf(await pki.get('issuer/one'))
    const reply = await pki.patch('issuer/one', body)
    expect(reply.status, reply.text).toBe(400)
    expect(errorsOf(reply)[0]).toContain(text)
    expect(dataOf(await pki.get('issuer/one'))).toEqual(before)
  })

  test('is listed by anybody, with its name, key and serial', async () => {
    const pki = await createAuthority(node)
    const made = await pki.root({ issuer_name: 'one' })
    const reply = await node.client('').list(`${pki.path}/issuers`)
    expect(dataOf(reply)).toEqual({
      keys: [made.issuer_id],
      key_info: {
        [String(made.issuer_id)]: {
          ...{ issuer_name: 'one', is_default: true, key_id: made.key_id, serial_number: made.serial_number },
        },
      },
    })
    expect((await node.client('').get(`${pki.path}/issuers`)).status).toBe(403)
  })

  test('is deleted with a word on the roles that name it; its key stays', async () => {
    const pki = await createAuthority(node)
    const made = await pki.root({ issuer_name: 'one' })
    await pki.role('a')
    await pki.role('b', { issuer_ref: 'one' })
    await pki.role('c', { issuer_ref: 'two' })
    const reply = await pki.delete('issuer/one')
    expect(warningsOf(reply)[0]).toBe('2 roles reference one')
    expect(warningsOf(reply)[1]).toContain('this was configured as the default issuer')
    expect(dataOf(await pki.get('config/issuers')).default).toBe('')
    expect((await pki.get(`key/${made.key_id}`)).status).toBe(200)
  })
})

describe('public reads', () => {
  test('have the certificate of an issuer in every form, with the headers that caches need', async () => {
    const pki = await createAuthority(node)
    const made = await pki.root({ issuer_name: 'one' })
    const stranger = node.client('')
    const pem = String(made.certificate)
    const texts: [string, string, string][] = [
      ['ca/pem', pem, 'application/pem-certificate-chain'],
      ['cert/ca/raw/pem', pem, 'application/pem-certificate-chain'],
      ['ca_chain', pem, 'application/pkix-cert'],
      ['issuer/one/pem', `${pem}\n`, 'application/pem-certificate-chain'],
      [`cert/${made.serial_number}/raw/pem`, pem, 'application/pem-certificate-chain'],
    ]
    for (const [path, text, type] of texts) {
      const reply = await stranger.get(`${pki.path}/${path}`)
      expect({ path, text: reply.text, type: reply.headers['content-type'] }).toEqual({ path, text, type })
      expect(reply.headers['cache-control']).toBe('public, max-age=3600')
      expect(reply.headers.etag).toBeDefined()
      const again = await stranger.call('GET', `${pki.path}/${path}`, undefined, {
        'If-None-Match': String(reply.headers.etag),
      })
      expect(again.status).toBe(304)
    }
    const json = dataOf(await stranger.get(`${pki.path}/issuer/one/json`))
    expect(json).toEqual({
      ...{ certificate: `${pem}\n`, ca_chain: [`${pem}\n`], issuer_id: made.issuer_id, issuer_name: 'one' },
    })
    expect(certificateOf(dataOf(await stranger.get(`${pki.path}/cert/ca`))).raw).toEqual(certificateOf(made).raw)
    expect(dataOf(await stranger.get(`${pki.path}/cert/ca_chain`)).ca_chain).toBe(pem)
  })

  test('is answered 304 to who has it already, on mounts tuned for that', async () => {
    const stranger = node.client('')
    const pki = await createAuthority(node)
    await done(
      node.root.post(`sys/mounts/${pki.path}/tune`, {
        ...{ passthrough_request_headers: 'If-Modified-Since', allowed_response_headers: 'Last-Modified' },
      }),
    )
    const made = await pki.root({ issuer_name: 'one' })
    const serial = `cert/${made.serial_number}`
    const own = ['ca', 'ca/pem', 'cert/ca', 'issuer/one/json', 'issuer/one/der', 'issuer/one/pem']
    for (const path of [...own, serial, `${serial}/raw`, `${serial}/raw/pem`]) {
      const ask = (since: string) =>
        stranger.call('GET', `${pki.path}/${path}`, undefined, { 'If-Modified-Since': since })
      const first = await stranger.get(`${pki.path}/${path}`)
      const last = String(first.headers['last-modified'])
      expect({ path, status: (await ask(last)).status }).toEqual({ path, status: 304 })
      expect((await ask(new Date(Date.parse(last) - 1000).toUTCString())).status).toBe(200)
    }
    const before = await stranger.get(`${pki.path}/ca`)
    await pki.patch(`issuer/${made.issuer_id}`, { leaf_not_after_behavior: 'permit' })
    const after = await stranger.get(`${pki.path}/ca`)
    expect(after.headers.etag).not.toBe(before.headers.etag)
  })

  test('is another answer when its chain grows or shrinks', async () => {
    const pki = await createAuthority(node)
    const stranger = node.client('')
    const root = await pki.root({ issuer_name: 'root' })
    const { csr } = dataOf(await pki.post('intermediate/generate/internal', { common_name: 'Sub', key_type: 'ec' }))
    const { certificate } = dataOf(await done(pki.post('root/sign-intermediate', { csr, ttl: '1000h' })))
    const { imported_issuers: ids } = dataOf(await pki.post('intermediate/set-signed', { certificate }))
    const [id] = ids as string[]
    await done(pki.post('config/issuers', { default: id }))
    for (const path of ['ca_chain', 'cert/ca_chain', `issuer/${id}/json`]) {
      const kept = { 'If-None-Match': String((await stranger.get(`${pki.path}/${path}`)).headers.etag) }
      const ask = async () => (await stranger.call('GET', `${pki.path}/${path}`, undefined, kept)).status
      expect({ path, status: await ask() }).toEqual({ path, status: 304 })
      await done(pki.delete('issuer/root'))
      expect({ path, status: await ask() }).toEqual({ path, status: 200 })
      await done(pki.post('issuers/import/cert', { pem_bundle: root.certificate }))
      const { keys } = dataOf(await pki.list('issuers'))
      await done(pki.patch(`issuer/${(keys as string[]).find((one) => one !== id)}`, { issuer_name: 'root' }))
    }
  })

  test('answers HEAD as it answers GET', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const stranger = node.client('')
    const [head, get] = [await stranger.call('HEAD', `${pki.path}/ca`), await stranger.get(`${pki.path}/ca`)]
    expect(head.text).toBe('')
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
    expect(head.headers.etag).toBe(get.headers.etag)
  })

  test('is empty while there is no default issuer', async () => {
    const pki = await createAuthority(node)
    for (const path of ['ca', 'ca/pem', 'ca_chain', 'cert/ca/raw', 'cert/aa-bb/raw']) {
      const reply = await pki.get(path)
      expect({ path, status: reply.status, text: reply.text }).toEqual({ path, status: 204, text: '' })
    }
    expectRefused(await pki.get('cert/ca'), 400, 'no default issuer currently configured')
    expectRefused(await pki.get('cert/aa-bb'), 404)
  })
})
