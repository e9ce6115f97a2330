import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import * as pkijs from 'pkijs'
import { describe, expect, test } from 'vitest'
import { shardName, shardNumber, shardsOf } from '../../../../src/engines/pki/crl/shards/shard.ts'
import { done, expectRefused, useNode } from '../../../api/node.ts'
import { type Answer, createAuthority, dataOf, warningsOf } from '../../api/authority.ts'
import { bundleOf } from '../../proof/outside.ts'
import { fetchRaw, importCa, numberOf, shown } from '../reading.ts'
import {
  allIn,
  filesOf,
  follow,
  hex,
  issue,
  opensslSays,
  revoke,
  run,
  type Spread,
  serialsIn,
  shardAt,
  spreadOn,
  template,
  templated,
} from './relying.ts'

/** Shards over HTTP: the URLs in certificates, the lists found there, and the verdicts of relying parties. */

const node = useNode({ workers: 2 })
const spread = (shards: number, settings: Answer = {}) => spreadOn(node, shards, settings)

describe('a certificate', () => {
  test('is told of the list of its shard, which openssl takes for it and for no other', async () => {
    const ca = await spread(2)
    const issued = await Promise.all(Array.from({ length: 6 }, () => issue(ca.pki)))
    const [revoked, other] = issued
    if (revoked === undefined || other === undefined) throw new Error('six were issued')
    for (const { points, serial } of issued) {
      const name = shardName({ number: shardNumber(serial, 2), of: 2 })
      const id = String(ca.root.issuer_id)
      expect(points).toEqual([`http://crl.example/v1/pki/issuer/${id}/crl/shard/${name}/der`])
    }
    await revoke(ca.pki, revoked)
    for (const extended of [[], ['-extended_crl']]) {
      for (const one of issued) {
        const list = await follow(ca, one.points[0])
        expect(await opensslSays(ca, one, list, extended)).toBe(one === revoked ? 'revoked' : 'good')
      }
    }
    const elsewhere = shardName({ number: 3 - shardNumber(revoked.serial, 2), of: 2 })
    expect(await opensslSays(ca, revoked, await shardAt(ca, elsewhere))).toBe('different CRL scope')
    const { body: complete } = await fetchRaw(node, `${ca.pki.path}/crl`)
    expect(await opensslSays(ca, revoked, complete)).toBe('revoked')
    expect(await opensslSays(ca, other, complete)).toBe('good')
  })

  test('is looked up by python and pkijs in the list of its shard, whose scope is critical', async () => {
    const ca = await spread(4)
    const [revoked, other] = [await issue(ca.pki), await issue(ca.pki)]
    await revoke(ca.pki, revoked)
    for (const [one, expected] of [
      [revoked, 'revoked'],
      [other, 'good'],
    ] as const) {
      const list = await follow(ca, one.points[0])
      const {
        ca: root = '',
        leaf = '',
        list: at = '',
      } = filesOf({ ca: `${ca.root.certificate}\n`, leaf: one.pem, list })
      const { stdout } = await run('python3', [join(import.meta.dirname, '../fixtures/shard.py'), root, leaf, at])
      expect(stdout.trim()).toBe(expected)
      const theirs = pkijs.CertificateRevocationList.fromBER(list)
      const scope = theirs.crlExtensions?.extensions.find(({ extnID }) => extnID === '2.5.29.28')
      expect(scope?.critical).toBe(true)
      const { distributionPoint } = (scope as pkijs.Extension).parsedValue as pkijs.IssuingDistributionPoint
      expect((distributionPoint as pkijs.GeneralName[]).map(({ value }) => value)).toEqual(one.points)
      const found = theirs.isCertificateRevoked(pkijs.Certificate.fromBER(new X509Certificate(one.pem).raw))
      expect(found).toBe(expected === 'revoked')
    }
  })

  test.each([
    ['sign-verbatim', { ttl: '24h' }],
    ['root/sign-intermediate', { common_name: 'Sub' }],
  ])('that %s makes is told of its shard too', async (path, body) => {
    const { pki } = await spread(8)
    const { stdout } = await run('sh', [
      '-c',
      'openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /CN=b.example',
    ])
    const { serial, points } = await issue(pki, path, { csr: stdout, ...body })
    expect(points).toEqual([expect.stringContaining(`/crl/shard/${shardNumber(serial, 8)}-of-8/der`)])
  })

  test('has no such distribution point while there are no shards, and others stay', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r')
    const plain = 'http://crl.example/whole.crl'
    const set = await done(pki.post('config/urls', { ...templated, crl_distribution_points: [template, plain] }))
    expect(warningsOf(set)).toContain(
      'crl_distribution_points with {{shard}} are left out of certificates while crl_shards of config/crl is 0',
    )
    expect((await issue(pki)).points).toEqual([plain])
    await done(pki.post('config/crl', { crl_shards: 2 }))
    expect((await issue(pki)).points).toEqual([expect.stringContaining('-of-2/der'), plain])
  })
})

describe('a revocation', () => {
  test('is on the list of its shard when it is answered, and in no other', async () => {
    const ca = await spread(4)
    const issued = await Promise.all(Array.from({ length: 12 }, () => issue(ca.pki)))
    await Promise.all(
      issued.map(async (one) => {
        await revoke(ca.pki, one)
        expect(serialsIn(await follow(ca, one.points[0]))).toContain(hex(one.serial))
      }),
    )
    expect(await allIn(ca, 4)).toEqual(issued.map(({ serial }) => hex(serial)).toSorted())
  })

  test('leaves the lists of other shards as they are', async () => {
    const ca = await spread(2)
    const issued = await issue(ca.pki)
    const place = shardNumber(issued.serial, 2)
    const bytes = (number: number) => shardAt(ca, shardName({ number, of: 2 }))
    const [own, other] = [await bytes(place), await bytes(3 - place)]
    await revoke(ca.pki, issued)
    expect((await bytes(place)).equals(own)).toBe(false)
    expect((await bytes(3 - place)).equals(other)).toBe(true)
  })

  test('with auto_rebuild is on it after crl/rotate, as on the complete list', async () => {
    const ca = await spread(2, { auto_rebuild: true })
    const issued = await issue(ca.pki)
    await revoke(ca.pki, issued)
    expect(await allIn(ca, 2)).toEqual([])
    await done(ca.pki.get('crl/rotate'))
    expect(await allIn(ca, 2)).toEqual([hex(issued.serial)])
  })

  test('of a certificate from before there were shards, or that another CA has numbered, is in its place too', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r')
    const before = await issue(pki)
    await done(pki.post('config/urls', templated))
    await done(pki.post('config/crl', { crl_shards: 2 }))
    await revoke(pki, before)
    const name = shardName({ number: shardNumber(before.serial, 2), of: 2 })
    expect(serialsIn(await shardAt({ node, pki, root }, name))).toEqual([hex(before.serial)])
  })
})

describe('config/crl', () => {
  test.each([1, 3, 6, 512, -2])('refuses crl_shards=%i', async (shards) => {
    const pki = await createAuthority(node)
    const text = `crl_shards must be 0 or a power of two from 2 to 256, got: ${shards}`
    expectRefused(await pki.post('config/crl', { crl_shards: shards }), 400, text)
  })

  test('refuses numbers of former shards that there were not', async () => {
    const { pki } = await spread(4)
    await done(pki.post('config/crl', { crl_shards: 2 }))
    const rule = 'crl_former_shards can only leave out numbers that it has (4), got: '
    expectRefused(await pki.post('config/crl', { crl_former_shards: '4,16' }), 400, `${rule}16`)
    expectRefused(await pki.post('config/crl', { crl_former_shards: '2' }), 400, `${rule}2`)
    const refused = await pki.post('config/crl', { crl_former_shards: 'x' })
    expectRefused(refused, 400, 'crl_former_shards must be a list of numbers, got: x')
    expect(dataOf(await pki.get('config/crl'))).toMatchObject({ crl_shards: 2, crl_former_shards: [4] })
  })

  test('keeps the lists of the number that it leaves, whatever it keeps of those before', async () => {
    const { pki } = await spread(4)
    await done(pki.post('config/crl', { crl_shards: 8 }))
    await done(pki.post('config/crl', { crl_shards: 2, crl_former_shards: '' }))
    expect(dataOf(await pki.get('config/crl'))).toMatchObject({ crl_shards: 2, crl_former_shards: [8] })
  })

  test('says that no URL has {{shard}}', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    expect(warningsOf(await done(pki.post('config/crl', { crl_shards: 2 })))).toEqual([
      'no crl_distribution_points of config/urls or of an issuer contains {{shard}}: certificates name no shard, and no shards are built',
    ])
    const shard = await fetchRaw(node, `${pki.path}/issuer/default/crl/shard/1-of-2/der`)
    expect(shard.status).toBe(404)
  })
})

describe('the paths of shards', () => {
  test('show a list in JSON, DER and PEM, as those of complete lists do', async () => {
    const ca = await spread(2, { auto_rebuild: true, unified_crl: true })
    for (const path of ['issuer/default/crl/shard/2-of-2', 'issuer/default/unified-crl/shard/2-of-2']) {
      const at = (rest: string) => fetchRaw(node, `${ca.pki.path}/${path}${rest}`)
      const der = await at('/der')
      expect([der.status, der.headers['content-type']]).toEqual([200, 'application/pkix-crl'])
      const pem = await at('/pem')
      expect([pem.status, pem.headers['content-type']]).toEqual([200, 'application/x-pem-file'])
      expect(shown(pem.body, 'PEM')).toBe(shown(der.body, 'DER'))
      expect(shown(der.body, 'DER')).toContain('X509v3 Issuing Distribution Point: critical')
      expect(JSON.parse((await at('')).body.toString()).data).toEqual({ crl: pem.body.toString() })
      const { etag } = der.headers
      expect((await fetchRaw(node, `${ca.pki.path}/${path}/der`, { 'If-None-Match': String(etag) })).status).toBe(304)
    }
  })

  test.each(['1-of-4', '3-of-2', '0-of-2', '1-of-3', 'x', '1', '1-of-2-of-2'])('know no %s of two', async (name) => {
    const { pki } = await spread(2)
    for (const form of ['', '/der', '/pem']) {
      expect((await fetchRaw(node, `${pki.path}/issuer/default/crl/shard/${name}${form}`)).status).toBe(404)
    }
  })

  test('serve the unified list with unified_crl_on_existing_paths', async () => {
    const ca = await spread(2, { auto_rebuild: true, unified_crl: true, unified_crl_on_existing_paths: true })
    const at = async (path: string) =>
      (await fetchRaw(node, `${ca.pki.path}/issuer/default/${path}/shard/1-of-2/der`)).body
    expect((await at('crl')).toString('hex')).toBe((await at('unified-crl')).toString('hex'))
  })
})

describe('whatever holds for complete lists holds for shards:', () => {
  const numbersOf = async (ca: Spread, shards: number) => {
    const lists = await Promise.all(shardsOf(shards).map((shard) => shardAt(ca, shardName(shard))))
    return lists.map((list) => numberOf(shown(list, 'DER')))
  }

  test('disable empties them', async () => {
    const ca = await spread(2)
    const one = await issue(ca.pki)
    await revoke(ca.pki, one)
    await done(ca.pki.post('config/crl', { disable: true }))
    expect(await allIn(ca, 2)).toEqual([])
    await done(ca.pki.post('config/crl', { disable: false }))
    expect(await allIn(ca, 2)).toEqual([hex(one.serial)])
  })

  test('crl/rotate makes all of them anew', async () => {
    const ca = await spread(2)
    const [before = 0] = await numbersOf(ca, 2)
    await done(ca.pki.get('crl/rotate'))
    expect(await numbersOf(ca, 2)).toEqual([before + 1, before + 1])
  })

  test('a CA that is deleted and imported again goes on with numbers and entries', async () => {
    const pki = await createAuthority(node)
    const { bundle, certificate } = bundleOf('shards imported')
    const first = await importCa(pki, bundle)
    await pki.role('r')
    await done(pki.post('config/urls', templated))
    await done(pki.post('config/crl', { crl_shards: 2 }))
    const one = await issue(pki)
    await revoke(pki, one)
    const ca = { node, pki, root: { issuer_id: first, certificate } }
    const before = Math.max(...(await numbersOf(ca, 2)))
    await done(pki.delete(`issuer/${first}`))
    expect((await fetchRaw(node, `${pki.path}/issuer/${first}/crl/shard/1-of-2/der`)).status).toBe(404)
    const again = { node, pki, root: { issuer_id: await importCa(pki, bundle), certificate } }
    expect(await allIn(again, 2)).toEqual([hex(one.serial)])
    for (const number of await numbersOf(again, 2)) expect(number).toBeGreaterThan(before)
  })

  test('the metric has one line for an issuer, and sys/health counts none of them while all are out', async () => {
    const ca = await spread(8)
    const { text } = await done(node.root.get('sys/metrics?format=prometheus'))
    const lines = text
      .split('\n')
      .filter((one) => one.includes('next_update') && one.includes(String(ca.root.issuer_id)))
    expect(lines).toHaveLength(1)
    const reply = await fetchRaw(node, 'sys/health?detail=1')
    expect(JSON.parse(reply.body.toString()).detail.pki).toMatchObject({ lists_expiring: 0, lists_missing: 0 })
  })
})
