import { describe, expect, test } from 'vitest'
import { expectRefused, useSharedNode } from '../../api/node.ts'
import { createAuthority, dataOf, warningsOf } from './authority.ts'

const node = useSharedNode()

describe('config/urls', () => {
  test('is absent until set; a write keeps absent fields and removes blank ones', async () => {
    const pki = await createAuthority(node)
    expect((await pki.get('config/urls')).status).toBe(404)
    const first = await pki.post('config/urls', {
      issuing_certificates: 'http://a.example/ca,http://b.example/ca',
      ocsp_servers: ['http://ocsp.example'],
    })
    expect(dataOf(first)).toEqual({
      issuing_certificates: ['http://a.example/ca', 'http://b.example/ca'],
      crl_distribution_points: [],
      ocsp_servers: ['http://ocsp.example'],
      enable_templating: false,
    })
    const second = await pki.post('config/urls', { ocsp_servers: '', crl_distribution_points: 'http://crl.example/x' })
    expect(dataOf(second)).toEqual({
      issuing_certificates: ['http://a.example/ca', 'http://b.example/ca'],
      crl_distribution_points: ['http://crl.example/x'],
      ocsp_servers: [],
      enable_templating: false,
    })
    expect(dataOf(await pki.get('config/urls'))).toEqual(dataOf(second))
  })

  test.each(['junk', 'http://', '//no.scheme/x', 'http://a b/', 'http://ä.example/', '{{cluster_path}}/ca'])(
    'refuses %j',
    async (url) => {
      const pki = await createAuthority(node)
      expectRefused(
        await pki.post('config/urls', { issuing_certificates: [url] }),
        400,
        `invalid URL found in Authority Information Access (AIA) parameter issuing_certificates: ${url}`,
      )
      expect((await pki.get('config/urls')).status).toBe(404)
    },
  )

  test('a template is taken when templating is on, with a warning while the cluster has no path', async () => {
    const pki = await createAuthority(node)
    const body = { crl_distribution_points: '{{cluster_path}}/issuer/{{issuer_id}}/crl/der', enable_templating: true }
    expect(warningsOf(await pki.post('config/urls', body))[0]).toMatch(/^issuance may fail: /)
    const refused = await pki.post('config/urls', { enable_templating: false })
    expect(refused.status).toBe(400)
    await pki.post('config/cluster', { path: 'https://pki.example/v1/pki' })
    expect(warningsOf(await pki.post('config/urls', body))).toEqual([])
  })
})

describe('config/cluster', () => {
  test('keeps the fields absent from a write', async () => {
    const pki = await createAuthority(node)
    expect(dataOf(await pki.get('config/cluster'))).toEqual({ path: '', aia_path: '' })
    await pki.post('config/cluster', { path: 'https://a.example/v1/pki' })
    const both = { path: 'https://a.example/v1/pki', aia_path: 'http://aia.example' }
    expect(dataOf(await pki.post('config/cluster', { aia_path: 'http://aia.example' }))).toEqual(both)
    expect(dataOf(await pki.get('config/cluster'))).toEqual(both)
  })

  test('refuses a value that is not a URL', async () => {
    const pki = await createAuthority(node)
    expectRefused(await pki.post('config/cluster', { path: 'x' }), 400, 'invalid, non-URL path given to cluster: x')
    const text = 'invalid, non-URL aia_path given to cluster: x'
    expectRefused(await pki.post('config/cluster', { aia_path: 'x' }), 400, text)
  })
})

describe('config/issuers and config/keys', () => {
  test('name the first issuer and key, then the ones they are set to', async () => {
    const pki = await createAuthority(node)
    expect(dataOf(await pki.get('config/issuers'))).toEqual({ default: '', default_follows_latest_issuer: false })
    expect(dataOf(await pki.get('config/keys'))).toEqual({ default: '', residence: 'wrapped' })
    const first = await pki.root({ common_name: 'First' })
    const second = await pki.root({ common_name: 'Second', issuer_name: 'second', key_name: 'k2' })
    expect(dataOf(await pki.get('config/issuers')).default).toBe(first.issuer_id)
    expect(dataOf(await pki.get('config/keys')).default).toBe(first.key_id)
    const set = await pki.post('config/issuers', { default: 'second' })
    expect(dataOf(set)).toEqual({ default: second.issuer_id, default_follows_latest_issuer: false })
    expect(dataOf(await pki.post('config/keys', { default: 'k2' }))).toEqual({
      default: second.key_id,
      residence: 'wrapped',
    })
    const follows = await pki.post('config/issuers', { default_follows_latest_issuer: true })
    expect(dataOf(follows)).toEqual({ default: second.issuer_id, default_follows_latest_issuer: true })
    const third = await pki.root({ common_name: 'Third' })
    expect(dataOf(await pki.get('config/issuers')).default).toBe(third.issuer_id)
  })

  test('root/replace takes the issuer named next', async () => {
    const pki = await createAuthority(node)
    await pki.root({ common_name: 'Now' })
    const rotated = dataOf(await pki.post('root/rotate/internal', { common_name: 'Next', key_type: 'ec' }))
    expect(rotated.issuer_name).toBe('next')
    expect(dataOf(await pki.post('root/replace')).default).toBe(rotated.issuer_id)
  })

  test.each([['issuers'], ['keys']])('config/%s refuses default, nothing and strangers', async (what) => {
    const pki = await createAuthority(node)
    await pki.root()
    const kind = what === 'keys' ? 'key' : 'issuer'
    const rule = `Invalid ${kind} specification; must be non-empty and can't be 'default'.`
    expectRefused(await pki.post(`config/${what}`, { default: 'default' }), 400, rule)
    expectRefused(await pki.post(`config/${what}`, { default: '' }), 400, rule)
    const unknown = `Error resolving issuer reference: unable to find PKI ${kind} for reference: stranger`
    expectRefused(await pki.post(`config/${what}`, { default: 'stranger' }), 400, unknown)
  })
})
