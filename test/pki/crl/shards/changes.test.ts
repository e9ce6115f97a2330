import { describe, expect, test } from 'vitest'
import { done, expectRefused, useNode } from '../../../api/node.ts'
import { type Answer, createAuthority, dataOf } from '../../api/authority.ts'
import { fetchRaw } from '../reading.ts'
import { allIn, follow, hex, type Issued, issue, opensslSays, revoke, spreadOn, template } from './relying.ts'

/** Certificates that name a shard stay right, whatever is set afterwards. */

const node = useNode({ workers: 2 })
const spread = (shards: number, settings: Answer = {}) => spreadOn(node, shards, settings)

describe('another number of shards', () => {
  test('is for new certificates; the lists of those before go on, until they are left out', async () => {
    const ca = await spread(2)
    const old = await issue(ca.pki)
    expect(dataOf(await done(ca.pki.post('config/crl', { crl_shards: 8 })))).toMatchObject({
      ...{ crl_shards: 8, crl_former_shards: [2] },
    })
    const young = await issue(ca.pki)
    expect(young.points).toEqual([expect.stringContaining('-of-8/der')])
    await revoke(ca.pki, old)
    await revoke(ca.pki, young)
    for (const one of [old, young]) {
      expect(await opensslSays(ca, one, await follow(ca, one.points[0]))).toBe('revoked')
    }
    const both = [old, young].map(({ serial }) => hex(serial)).toSorted()
    for (const of of [2, 8]) expect(await allIn(ca, of)).toEqual(both)
    expect(dataOf(await done(ca.pki.post('config/crl', { crl_shards: 0 })))).toMatchObject({
      ...{ crl_shards: 0, crl_former_shards: [2, 8] },
    })
    expect((await issue(ca.pki)).points).toEqual([])
    for (const of of [2, 8]) expect(await allIn(ca, of)).toEqual(both)
    expect(dataOf(await done(ca.pki.post('config/crl', { crl_former_shards: '8' })))).toMatchObject({
      crl_former_shards: [8],
    })
    const id = String(ca.root.issuer_id)
    expect((await fetchRaw(node, `${ca.pki.path}/issuer/${id}/crl/shard/1-of-2/der`)).status).toBe(404)
    expect(await allIn(ca, 8)).toEqual(both)
    expect(dataOf(await done(ca.pki.post('config/crl', { crl_former_shards: '' })))).toMatchObject({
      crl_former_shards: [],
    })
  })

  test('while certificates are issued and revoked: each is found where it was told', async () => {
    const ca = await spread(2)
    const issued: Issued[] = []
    const issuing = Array.from({ length: 24 }, async (_, index) => {
      const one = await issue(ca.pki)
      issued.push(one)
      if (index % 2 === 0) await revoke(ca.pki, one)
      return index % 2 === 0 ? [one] : []
    })
    const changing = async () => {
      for (const shards of [4, 8, 0, 2]) await done(ca.pki.post('config/crl', { crl_shards: shards }))
    }
    const [revoked] = await Promise.all([Promise.all(issuing).then((some) => some.flat()), changing()])
    const expected = revoked.map(({ serial }) => hex(serial)).toSorted()
    for (const of of [2, 4, 8]) expect(await allIn(ca, of)).toEqual(expected)
    for (const one of issued.filter(({ points }) => points.length > 0)) {
      const list = await follow(ca, one.points[0])
      expect(await opensslSays(ca, one, list)).toBe(revoked.includes(one) ? 'revoked' : 'good')
    }
  }, 60_000)
})

describe('other distribution points', () => {
  test('of the mount: lists are for certificates with the old ones, and with the new', async () => {
    const ca = await spread(2)
    const old = await issue(ca.pki)
    await done(ca.pki.post('config/urls', { crl_distribution_points: template.replace('crl.example', 'new.example') }))
    const young = await issue(ca.pki)
    expect(young.points[0]).toContain('http://new.example/')
    await revoke(ca.pki, old)
    await revoke(ca.pki, young)
    for (const one of [old, young]) {
      expect(await opensslSays(ca, one, await follow(ca, one.points[0]))).toBe('revoked')
    }
  })

  test('of an issuer, in place of those of the mount', async () => {
    const ca = await spread(2)
    const old = await issue(ca.pki)
    const own = { crl_distribution_points: 'http://own.example/v1/pki/issuer/{{issuer_id}}/crl/shard/{{shard}}/der' }
    await done(ca.pki.patch('issuer/default', { ...own, enable_aia_url_templating: true }))
    const young = await issue(ca.pki)
    expect(young.points[0]).toContain('http://own.example/')
    for (const one of [old, young]) {
      expect(await opensslSays(ca, one, await follow(ca, one.points[0]))).toBe('good')
    }
  })

  test('at another address of the mount', async () => {
    const pki = await createAuthority(node)
    const ca = { node, pki, root: await pki.root() }
    await pki.role('r')
    const point = '{{cluster_path}}/issuer/{{issuer_id}}/crl/shard/{{shard}}/der'
    await done(pki.post('config/cluster', { path: 'http://old.example/v1/pki' }))
    await done(pki.post('config/urls', { crl_distribution_points: point, enable_templating: true }))
    await done(pki.post('config/crl', { crl_shards: 2 }))
    const old = await issue(pki)
    expect(old.points[0]).toContain('http://old.example/v1/pki/issuer/')
    await done(pki.post('config/cluster', { path: 'http://new.example/v1/pki' }))
    const young = await issue(pki)
    expect(young.points[0]).toContain('http://new.example/v1/pki/issuer/')
    for (const one of [old, young]) expect(await opensslSays(ca, one, await follow(ca, one.points[0]))).toBe('good')
  })

  test('at the first address of the mount, which comes last', async () => {
    const pki = await createAuthority(node)
    const ca = { node, pki, root: await pki.root() }
    await pki.role('r')
    const point = '{{cluster_path}}/issuer/{{issuer_id}}/crl/shard/{{shard}}/der'
    await done(pki.post('config/urls', { crl_distribution_points: point, enable_templating: true }))
    await done(pki.post('config/crl', { crl_shards: 2 }))
    await done(pki.post('config/cluster', { path: 'http://crl.example/v1/pki' }))
    const one = await issue(pki)
    expect(await opensslSays(ca, one, await follow(ca, one.points[0]))).toBe('good')
  })

  test('are sixteen at most for one number of shards', async () => {
    const { pki } = await spread(2)
    const at = (index: number) => ({ crl_distribution_points: `http://crl${index}.example/{{shard}}` })
    for (let index = 1; index < 16; index++) await done(pki.post('config/urls', at(index)))
    expectRefused(
      await pki.post('config/urls', at(16)),
      400,
      'crl_distribution_points: certificates of 2 shards were given 16 URLs with {{shard}}, and their lists name all of them; for further ones set another crl_shards, and leave 2 out of crl_former_shards',
    )
    await done(pki.post('config/crl', { crl_shards: 4, crl_former_shards: [] }))
    await done(pki.post('config/urls', at(16)))
  })
})
