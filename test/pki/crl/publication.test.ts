import { describe, expect, test } from 'vitest'
import { done, expectRefused, useNode } from '../../api/node.ts'
import { createAuthority, dataOf, type TestAuthority, warningsOf } from '../api/authority.ts'
import { bundleOf } from '../proof/outside.ts'
import { fetchRaw, importCa, numberOf, textOf } from './reading.ts'

const node = useNode()

const numberAt = async (pki: TestAuthority, path = 'crl'): Promise<number> => numberOf(await textOf(node, pki, path))
const bytesAt = async (pki: TestAuthority, path: string): Promise<string> =>
  (await fetchRaw(node, `${pki.path}/${path}`)).body.toString('hex')

const usual = {
  expiry: '72h',
  disable: false,
  ocsp_disable: false,
  ocsp_expiry: '12h',
  auto_rebuild: false,
  auto_rebuild_grace_period: '12h',
  enable_delta: false,
  delta_rebuild_interval: '15m',
  allow_expired_cert_revocation: false,
  cross_cluster_revocation: false,
  unified_crl: false,
  unified_crl_on_existing_paths: false,
  crl_shards: 0,
  crl_former_shards: [],
}

describe('config/crl', () => {
  test('has its defaults before anything is set', async () => {
    const pki = await createAuthority(node)
    expect(dataOf(await pki.get('config/crl'))).toEqual(usual)
  })

  test('takes every field, keeps what a write leaves out, and shows durations as they were given', async () => {
    const pki = await createAuthority(node)
    const first = await pki.post('config/crl', { expiry: 7200, ocsp_expiry: '90', ocsp_disable: true })
    expect(dataOf(first)).toEqual({ ...usual, expiry: '7200', ocsp_expiry: '90', ocsp_disable: true })
    const given = {
      auto_rebuild: true,
      auto_rebuild_grace_period: '1h',
      enable_delta: 'true',
      delta_rebuild_interval: '10m',
      allow_expired_cert_revocation: true,
      cross_cluster_revocation: true,
      unified_crl: true,
      unified_crl_on_existing_paths: true,
    }
    const second = dataOf(await done(pki.post('config/crl', given)))
    expect(second).toEqual({
      ...usual,
      expiry: '7200',
      ocsp_expiry: '90',
      ocsp_disable: true,
      ...given,
      enable_delta: true,
    })
    expect(dataOf(await pki.get('config/crl'))).toEqual(second)
  })

  test('warns of a grace period in which the next list may come too late', async () => {
    const pki = await createAuthority(node)
    const reply = await done(pki.post('config/crl', { auto_rebuild: true, auto_rebuild_grace_period: '90s' }))
    expect(warningsOf(reply)).toEqual([
      'auto_rebuild_grace_period (90s) is below 120s: lists that are due are looked for once a minute, so that one may expire before the next is out',
    ])
    expect(warningsOf(await done(pki.post('config/crl', { auto_rebuild_grace_period: '1h' })))).toEqual([])
  })

  test('refuses what breaks a rule, and changes nothing', async () => {
    const pki = await createAuthority(node)
    const refused = await pki.post('config/crl', { expiry: '1h', enable_delta: true })
    expectRefused(
      refused,
      400,
      'Delta CRLs cannot be enabled when auto rebuilding is disabled as the complete CRL is always regenerated!',
    )
    expect(dataOf(await pki.get('config/crl'))).toEqual(usual)
  })

  test('a change of what lists hold makes them anew, another does not', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    expect(await numberAt(pki)).toBe(1)
    await done(pki.post('config/crl', { ocsp_disable: true, expiry: '100h', auto_rebuild: true }))
    expect(await numberAt(pki)).toBe(1)
    for (const [index, change] of [{ enable_delta: true }, { disable: true }, { disable: false }].entries()) {
      await done(pki.post('config/crl', change))
      expect(await numberAt(pki)).toBe(index + 2)
    }
    await done(pki.post('config/crl', { auto_rebuild: false, enable_delta: false }))
    expect(await numberAt(pki)).toBe(5)
  })

  test('unified_crl_on_existing_paths serves the unified lists there', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await done(pki.post('config/crl', { auto_rebuild: true, unified_crl: true }))
    expect(await bytesAt(pki, 'crl')).not.toBe(await bytesAt(pki, 'unified-crl'))
    await done(pki.post('config/crl', { unified_crl_on_existing_paths: true }))
    for (const path of ['crl', 'crl/delta', 'issuer/default/crl/der', 'issuer/default/crl/delta/der']) {
      expect(await bytesAt(pki, path)).toBe(await bytesAt(pki, path.replace('crl', 'unified-crl')))
    }
    await done(pki.post('config/crl', { unified_crl: false, unified_crl_on_existing_paths: false }))
    expect((await fetchRaw(node, `${pki.path}/unified-crl`)).status).toBe(204)
  })
})

describe('crl/rotate', () => {
  test('makes every list anew, each with its delta of the same number', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.root({ common_name: 'Other', issuer_name: 'other' })
    const reply = await pki.get('crl/rotate')
    expect(dataOf(reply)).toEqual({ success: true })
    expect(warningsOf(reply)).toEqual([])
    for (const path of ['crl', 'crl/delta', 'issuer/other/crl/der', 'issuer/other/crl/delta/der']) {
      expect(await numberAt(pki, path)).toBe(2)
    }
    expect((await pki.post('crl/rotate')).status).toBe(405)
  })

  test('with lists disabled they are empty, and signed all the same', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await done(pki.post('config/crl', { disable: true }))
    expect(dataOf(await pki.get('crl/rotate'))).toEqual({ success: true })
    expect(await textOf(node, pki, 'crl')).toContain('No Revoked Certificates.')
  })

  test('of deltas builds them where they are on, and says where they are not', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const off = await pki.get('crl/rotate-delta')
    expect(dataOf(off)).toEqual({ success: true })
    expect(warningsOf(off)).toEqual(['requested rebuild of delta CRL when delta CRL is not enabled; this is a no-op'])
    await done(pki.post('config/crl', { auto_rebuild: true, enable_delta: true }))
    const [complete, delta] = [await numberAt(pki), await numberAt(pki, 'crl/delta')]
    expect(warningsOf(await pki.get('crl/rotate-delta'))).toEqual([])
    expect([await numberAt(pki), await numberAt(pki, 'crl/delta')]).toEqual([complete, delta + 1])
  })
})

describe('issuers and their lists', () => {
  test('two issuers of one name and key share a list, signed by the default one while it may', async () => {
    const pki = await createAuthority(node)
    const first = await pki.root()
    const again = await done(
      pki.post('root/generate/existing', { common_name: 'Test Root', key_ref: first.key_id, issuer_name: 'twin' }),
    )
    expect(dataOf(again).issuer_id).not.toBe(first.issuer_id)
    const shared = await bytesAt(pki, 'issuer/twin/crl/der')
    expect(await bytesAt(pki, `issuer/${first.issuer_id}/crl/der`)).toBe(shared)
    await done(pki.patch(`issuer/${first.issuer_id}`, { usage: 'read-only' }))
    expect(warningsOf(await pki.get('crl/rotate'))).toEqual([])
    expect(await numberAt(pki)).toBe(3)
    await done(pki.delete(`issuer/${first.issuer_id}`))
    expect(await numberAt(pki, 'issuer/twin/crl/der')).toBe(4)
  })

  test('a read-only issuer keeps its list as it is, with a warning', async () => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'main' })
    const before = await bytesAt(pki, 'crl')
    await done(pki.patch('issuer/main', { usage: 'read-only' }))
    const reply = await pki.get('crl/rotate')
    expect(dataOf(reply)).toEqual({ success: true })
    expect(warningsOf(reply)).toEqual([
      'the list of main stays as it is: no issuer of this name and key has the usage crl-signing',
    ])
    expect(await bytesAt(pki, 'crl')).toBe(before)
    await done(pki.patch('issuer/main', { usage: 'crl-signing' }))
    await done(pki.get('crl/rotate'))
    expect(await numberAt(pki)).toBe(2)
  })

  test('a deleted issuer takes its list along, and comes back with a higher number', async () => {
    const pki = await createAuthority(node)
    const ca = bundleOf('Comes and Goes')
    await importCa(pki, ca.bundle)
    expect(await numberAt(pki)).toBe(1)
    const [other] = [await createAuthority(node)]
    await importCa(other, ca.bundle)
    expect(await numberAt(other)).toBe(2)
    await done(pki.delete('issuer/default'))
    expect((await fetchRaw(node, `${pki.path}/crl`)).status).toBe(204)
    await importCa(pki, ca.certificate)
    await done(pki.post('config/issuers', { default: String((dataOf(await pki.list('issuers')).keys as string[])[0]) }))
    expect(await numberAt(pki)).toBe(3)
    expect(await numberAt(other)).toBe(2)
    await done(pki.delete('root'))
    expect((await fetchRaw(node, `${pki.path}/crl`)).status).toBe(204)
  })

  test('a certificate gets its list when its key comes', async () => {
    const pki = await createAuthority(node)
    const ca = bundleOf('Key Comes Later')
    const id = await importCa(pki, ca.certificate)
    expect((await fetchRaw(node, `${pki.path}/issuer/${id}/crl/der`)).status).toBe(204)
    expect(warningsOf(await pki.get('crl/rotate'))).toEqual([])
    await done(pki.post('keys/import', { pem_bundle: ca.privateKey }))
    expect(await numberAt(pki, `issuer/${id}/crl/der`)).toBe(1)
  })

  test('revocation_signature_algorithm says how lists are signed', async () => {
    const pki = await createAuthority(node)
    await pki.root({ key_type: 'rsa', key_bits: 2048 })
    expect(await textOf(node, pki, 'crl')).toContain('Signature Algorithm: sha256WithRSAEncryption')
    await done(pki.patch('issuer/default', { revocation_signature_algorithm: 'SHA384WithRSAPSS' }))
    await done(pki.get('crl/rotate'))
    const text = await textOf(node, pki, 'crl')
    expect(text).toContain('Signature Algorithm: rsassaPss')
    expect(text).toContain('Hash Algorithm: sha384')
  })
})

describe('what an operator sees', () => {
  test('sys/health?detail counts lists and issuers, names none, and sys/health leaves it out', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const reply = await fetchRaw(node, 'sys/health?detail=1')
    expect(reply.status).toBe(200)
    expect(JSON.parse(reply.body.toString()).detail).toEqual({
      pki: { lists_expiring: 0, lists_missing: 0, issuers_without_ocsp_signer: expect.any(Number) },
    })
    expect(JSON.parse((await fetchRaw(node, 'sys/health')).body.toString())).not.toHaveProperty('detail')
  })

  test('a metric counts issuers that cannot answer OCSP', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await done(pki.patch('issuer/default', { usage: 'crl-signing,issuing-certificates' }))
    const { text } = await done(node.root.get('sys/metrics?format=prometheus'))
    expect(text).toMatch(/^strongroom_pki_ocsp_issuers_without_signer \d+$/m)
  })

  test('a metric tells the seconds until the next update of each list', async () => {
    const pki = await createAuthority(node)
    const { issuer_id: issuer } = await pki.root()
    const { text } = await done(node.root.get('sys/metrics?format=prometheus'))
    const line = text.split('\n').find((one) => one.includes('next_update') && one.includes(String(issuer)))
    expect(line).toMatch(/^strongroom_pki_crl_next_update_seconds\{/)
    expect(line).toContain(`mount="${pki.path}/"`)
    const seconds = Number(line?.split(' ').at(-1))
    expect(seconds).toBeGreaterThan(71 * 3600)
    expect(seconds).toBeLessThanOrEqual(72 * 3600)
  })
})
