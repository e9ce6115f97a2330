import { describe, expect, test } from 'vitest'
import { shardName, shardNumber } from '../../../../src/engines/pki/crl/shards/shard.ts'
import { done, expectRefused, useNode } from '../../../api/node.ts'
import { type Answer, createAuthority, dataOf } from '../../api/authority.ts'
import { fetchRaw, shown } from '../reading.ts'
import {
  follow,
  hex,
  type Issued,
  issue,
  issuedBy,
  opensslSays,
  revoke,
  type Spread,
  serialsIn,
  shardAt,
  spreadOn,
} from './relying.ts'

/** Issuers of one name and key share their lists, which stay right for the certificates of a deleted one. */

const node = useNode({ workers: 2 })
const template = '{{ cluster_path }}/issuer/{{ issuer_id }}/crl/shard/{{shard}}/der'

/** Another issuer of the name and key of the first. @returns its id */
async function twinOf({ pki, root }: Spread): Promise<string> {
  const body = { common_name: 'Test Root', key_ref: root.key_id, ttl: '43800h' }
  return String(dataOf(await done(pki.post('root/generate/existing', body))).issuer_id)
}

/** The shard of a certificate by the path of the first issuer, as a copy of it would be elsewhere. */
const shardOf = (ca: Spread, { serial }: Issued, of = 2) =>
  shardAt(ca, shardName({ number: shardNumber(serial, of), of }))

const deleteIssuer = ({ pki }: Spread, id: string) => done(pki.delete(`issuer/${id}`))
const issueBy = ({ pki }: Spread, id: string): Promise<Issued> => issue(pki, `issuer/${id}/issue/r`)
const config = ({ pki }: Spread, body: Answer) => done(pki.post('config/crl', body))

describe('certificates of a deleted issuer whose name and key live on', () => {
  test('are looked up in the lists of their shards, by the URL of the mount', async () => {
    const ca = await spreadOn(node, 2)
    const twin = await twinOf(ca)
    const [revoked, other] = [await issueBy(ca, twin), await issueBy(ca, twin)]
    expect(revoked.points).toEqual([expect.stringContaining(`/issuer/${twin}/crl/shard/`)])
    await deleteIssuer(ca, twin)
    await revoke(ca.pki, revoked)
    expect(await opensslSays(ca, revoked, await shardOf(ca, revoked))).toBe('revoked')
    expect(await opensslSays(ca, other, await shardOf(ca, other))).toBe('good')
    const young = await issueBy(ca, String(ca.root.issuer_id))
    expect(await opensslSays(ca, young, await shardOf(ca, young))).toBe('good')
  })

  test('find them where they were told to look', async () => {
    const ca = await spreadOn(node, 2)
    const twin = await twinOf(ca)
    const one = await issueBy(ca, twin)
    await deleteIssuer(ca, twin)
    await revoke(ca.pki, one)
    const list = await follow(ca, one.points[0])
    expect(list.equals(await shardOf(ca, one))).toBe(true)
    expect(await opensslSays(ca, one, list)).toBe('revoked')
    await config(ca, { crl_shards: 4 })
    const at = async (rest: string) => (await fetchRaw(node, `${ca.pki.path}/issuer/${twin}/crl${rest}`)).status
    expect([await at('/shard/1-of-2'), await at('/shard/1-of-4'), await at('/der')]).toEqual([200, 404, 404])
  })

  test('are looked up there by URLs of its own, where the mount has none', async () => {
    const pki = await createAuthority(node)
    const ca = { node, pki, root: await pki.root() }
    await pki.role('r')
    await config(ca, { crl_shards: 2 })
    const twin = await twinOf(ca)
    const own = { crl_distribution_points: 'http://own.example/{{shard}}', enable_aia_url_templating: true }
    await done(pki.patch(`issuer/${twin}`, own))
    const one = await issueBy(ca, twin)
    expect(one.points).toEqual([expect.stringContaining('http://own.example/')])
    await deleteIssuer(ca, twin)
    expect(await opensslSays(ca, one, await shardOf(ca, one))).toBe('good')
  })

  test('are looked up there when several are deleted, one after the other', async () => {
    const ca = await spreadOn(node, 2)
    const twins = [await twinOf(ca), await twinOf(ca)]
    const issued = await Promise.all(twins.map((id) => issueBy(ca, id)))
    for (const id of twins) await deleteIssuer(ca, id)
    for (const one of issued) expect(await opensslSays(ca, one, await shardOf(ca, one))).toBe('good')
  })

  test('are looked up there after the mount has another address, and other URLs', async () => {
    const ca = await spreadOn(node, 2)
    const at = (name: string) => done(ca.pki.post('config/cluster', { path: `http://${name}.example/v1/pki` }))
    await at('old')
    await done(ca.pki.post('config/urls', { crl_distribution_points: template }))
    const twin = await twinOf(ca)
    const one = await issueBy(ca, twin)
    expect(one.points).toEqual([expect.stringContaining(`http://old.example/v1/pki/issuer/${twin}/`)])
    await deleteIssuer(ca, twin)
    await at('new')
    await done(ca.pki.post('config/urls', { crl_distribution_points: '' }))
    expect(await opensslSays(ca, one, await shardOf(ca, one))).toBe('good')
  })

  test('are looked up there though they were issued while it was deleted', async () => {
    const ca = await spreadOn(node, 2)
    const twin = await twinOf(ca)
    const issuing = Array.from({ length: 30 }, () =>
      ca.pki.post(`issuer/${twin}/issue/r`, { common_name: 'a.example', ttl: '24h' }),
    )
    await deleteIssuer(ca, twin)
    const issued = (await Promise.all(issuing)).filter(({ status }) => status === 200).map(issuedBy)
    expect(issued.length).toBeGreaterThan(0)
    for (const one of issued) expect(await opensslSays(ca, one, await shardOf(ca, one))).toBe('good')
  })

  test('have no place in lists of other numbers, and none once theirs is left out', async () => {
    const ca = await spreadOn(node, 2)
    const twin = await twinOf(ca)
    await deleteIssuer(ca, twin)
    await config(ca, { crl_shards: 4 })
    const names = async (of: number) => shown(await shardAt(ca, `1-of-${of}`), 'DER').includes(twin)
    expect([await names(2), await names(4)]).toEqual([true, false])
    await config(ca, { crl_former_shards: '' })
    await config(ca, { crl_shards: 2 })
    expect([await names(2), await names(4)]).toEqual([false, false])
  })

  test('are forgotten with the last issuer of the name and key', async () => {
    const ca = await spreadOn(node, 2)
    const key = await done(ca.pki.get(`key/${String(ca.root.key_id)}`))
    const twin = await twinOf(ca)
    const one = await issueBy(ca, twin)
    await revoke(ca.pki, one)
    for (const id of [twin, String(ca.root.issuer_id)]) await deleteIssuer(ca, id)
    const root = { ...ca.root, key_id: dataOf(key).key_id }
    const again = { ...ca, root: { ...root, issuer_id: await twinOf({ ...ca, root }) } }
    const list = await shardOf(again, one)
    expect(serialsIn(list)).toEqual([hex(one.serial)])
    expect(shown(list, 'DER')).toContain(`/issuer/${again.root.issuer_id}/crl/shard/`)
    expect(shown(list, 'DER')).not.toContain(twin)
  })
})

test('after sixteen deleted ones a further issuer of the name and key is refused, and no deletion is', async () => {
  const ca = await spreadOn(node, 2)
  const twins: string[] = []
  for (let index = 0; index < 17; index++) twins.push(await twinOf(ca))
  const [first = '', ...others] = twins
  const one = await issueBy(ca, first)
  for (const id of others) await deleteIssuer(ca, id)
  const again = () => ca.pki.post('root/generate/existing', { common_name: 'Test Root', key_ref: ca.root.key_id })
  expectRefused(
    await again(),
    400,
    'lists of 2 shards name the distribution points of 16 deleted issuers of this name and key; for a further issuer set another crl_shards, and leave 2 out of crl_former_shards',
  )
  await done(ca.pki.post('root/generate/internal', { common_name: 'Other Root', key_type: 'ec' }))
  await deleteIssuer(ca, first)
  expect(await opensslSays(ca, one, await shardOf(ca, one))).toBe('good')
  await config(ca, { crl_shards: 4 })
  await config(ca, { crl_former_shards: '' })
  await done(again())
}, 60_000)
