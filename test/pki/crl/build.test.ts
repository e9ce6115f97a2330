import { hash, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Cluster, useCluster } from '../../keys/support.ts'
import {
  type BuilderNode,
  type Ca,
  createCa,
  createSet,
  hour,
  nodeAt,
  read,
  revoke,
  serialsOf,
  targetOf,
} from './world.ts'

let cluster: Cluster
let node: BuilderNode
let ca: Ca
useCluster('crlbuild', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
  node = nodeAt(begun.place.database)
  ca = await createCa(begun)
})

const build = async (of: Ca, mount: string, more: Parameters<typeof targetOf>[2] = {}) => {
  const built = await node.builder.build(targetOf(of, mount, more))
  const [complete, delta] = [await node.whole(built.complete), await node.whole(built.delta)]
  return { built, complete: read(complete, of), delta: read(delta, of), der: complete }
}

describe('a complete list', () => {
  test('names what is revoked, in the order of revocation; a delta of its number comes with it and is empty', async () => {
    const mount = randomUUID()
    const own = await createCa(cluster)
    const rows = [
      ...(await revoke(node.database, own.crlIssuer, 3)),
      ...(await revoke(node.database, own.crlIssuer, 1, { reason: 1 })),
    ]
    const { complete, delta, built, der } = await build(own, mount)
    expect(complete.serials).toEqual(serialsOf(rows))
    expect(complete.reasons).toEqual([undefined, undefined, undefined, 1])
    expect(complete).toMatchObject({ number: 1, base: undefined })
    expect(delta).toMatchObject({ serials: [], number: 1, base: 1 })
    expect(complete.nextUpdate).toBe(complete.thisUpdate + 72 * hour)
    expect(built.complete.bytes).toBe(der.length)
    expect(built.complete.sha256).toEqual(hash('sha256', complete.crl.tbs, 'buffer'))
    expect(node.alarms).toEqual([])
  })

  test('of a CRL issuer without revocations has no entries', async () => {
    const { complete } = await build(await createCa(cluster), randomUUID())
    expect(complete.serials).toEqual([])
  })

  test('that is disabled has no entries, and all of them once it is enabled again', async () => {
    const own = await createCa(cluster)
    const mount = randomUUID()
    const rows = await revoke(node.database, own.crlIssuer, 2)
    expect((await build(own, mount, { disabled: true })).complete.serials).toEqual([])
    expect((await build(own, mount)).complete.serials).toEqual(serialsOf(rows))
  })

  test.each(['rsa-2048', 'ecdsa-p384', 'ed25519'])(
    'is signed by a key of type %s by each of its algorithms',
    async (type) => {
      const own = await createCa(cluster, type)
      const rows = await revoke(node.database, own.crlIssuer, 2)
      for (const algorithm of own.signer.algorithms) {
        expect((await build(own, randomUUID(), { algorithm })).complete.serials).toEqual(serialsOf(rows))
      }
    },
  )

  test('spans segments: 4,500 entries', async () => {
    const own = await createCa(cluster)
    const rows = [
      ...(await revoke(node.database, own.crlIssuer, 1900)),
      ...(await revoke(node.database, own.crlIssuer, 1900)),
    ]
    const mount = randomUUID()
    expect((await build(own, mount)).complete.serials).toEqual(serialsOf(rows))
    rows.push(...(await revoke(node.database, own.crlIssuer, 700)))
    const { complete, built } = await build(own, mount)
    expect(complete.serials).toEqual(serialsOf(rows))
    expect(built.complete.parts).toHaveLength(3)
  })
})

test('a delta names what was revoked since the complete list that it belongs to, and its number is higher', async () => {
  const mount = randomUUID()
  const own = await createCa(cluster)
  await revoke(node.database, own.crlIssuer, 3)
  await build(own, mount)
  const later = await revoke(node.database, own.crlIssuer, 2)
  const first = await build(own, mount, { kinds: 'delta' })
  expect(first.delta).toMatchObject({ serials: serialsOf(later), number: 2, base: 1 })
  expect(first.complete.number).toBe(1)
  later.push(...(await revoke(node.database, own.crlIssuer, 1)))
  const second = await build(own, mount, { kinds: 'delta' })
  expect(second.delta).toMatchObject({ serials: serialsOf(later), number: 3, base: 1 })
})

test('a delta of what has no complete list yet comes with one', async () => {
  const { complete, delta } = await build(await createCa(cluster), randomUUID(), { kinds: 'delta' })
  expect([complete.number, delta.base]).toEqual([1, 1])
})

describe('numbers', () => {
  test('of a CRL issuer rise over mounts, scopes and kinds', async () => {
    const own = await createCa(cluster)
    const numbers = []
    for (const more of [{}, { scope: 'unified' }, { kinds: 'delta' }] as const) {
      for (const mount of [randomUUID(), randomUUID()]) numbers.push((await build(own, mount, more)).delta.number)
    }
    expect(numbers).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('jump ahead in a new life of the database, and do not repeat when their row is removed', async () => {
    const own = await createCa(cluster)
    const mount = randomUUID()
    await build(own, mount)
    await cluster.place.sql('DELETE FROM pki_crl_numbers WHERE crl_issuer = UNHEX(?)', [own.crlIssuer])
    expect((await build(own, mount)).complete.number).toBe(2)
    const next = nodeAt(node.database, { epoch: 3 })
    expect((await next.builder.build(targetOf(own, mount))).complete.number).toBe(2 * 2 ** 32 + 1)
    expect((await build(own, mount)).complete.number).toBe(2 * 2 ** 32 + 2)
  })
})

test('unified lists have the entries of all sites, local ones those of their own', async () => {
  const own = await createCa(cluster)
  const [here, there] = [
    await revoke(node.database, own.crlIssuer, 3),
    await revoke(node.database, own.crlIssuer, 2, { site: 'abroad' }),
  ]
  const mount = randomUUID()
  expect((await build(own, mount)).complete.serials).toEqual(serialsOf(here))
  expect((await build(own, mount, { scope: 'unified' })).complete.serials.toSorted()).toEqual(
    serialsOf([...here, ...there]).toSorted(),
  )
  const later = await revoke(node.database, own.crlIssuer, 1, { site: 'abroad' })
  const { delta } = await build(own, mount, { scope: 'unified', kinds: 'delta' })
  expect(delta.serials).toEqual(serialsOf(later))
})

test('callers that come while a build runs share the next one, which names what each of them revoked', async () => {
  const mount = randomUUID()
  const own = await createCa(cluster)
  await build(own, mount)
  const results = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const [row] = await revoke(node.database, own.crlIssuer, 1)
      const { complete } = await node.builder.build(targetOf(own, mount))
      return { row, complete }
    }),
  )
  for (const { row, complete } of results) expect(complete.covered.default).toBeGreaterThanOrEqual(row?.seq ?? Infinity)
  expect(new Set(results.map(({ complete }) => complete.number)).size).toBeLessThan(40)
})

test('what is listed is found by its serial number, and nothing else is', async () => {
  const own = await createCa(cluster)
  const rows = [
    ...(await revoke(node.database, own.crlIssuer, 2500, { reason: 4 })),
    ...(await revoke(node.database, own.crlIssuer, 3, { site: 'abroad' })),
  ]
  await build(own, randomUUID(), { scope: 'unified' })
  for (const row of [rows[0], rows[1999], rows[2499], rows[2502]]) {
    const found = await node.listed.find(own.crlIssuer, row?.serial ?? '')
    expect(found).toEqual({
      revokedAt: Math.floor((row?.revokedAt ?? 0) / 1000) * 1000,
      reason: row?.reason ?? undefined,
      site: row?.site,
    })
  }
  expect(await node.listed.find(own.crlIssuer, '00ab')).toBeUndefined()
  expect(await node.listed.find(ca.crlIssuer, rows[0]?.serial ?? '')).toBeUndefined()
  const [later] = await revoke(node.database, own.crlIssuer, 1)
  expect(await node.listed.find(own.crlIssuer, later?.serial ?? '')).toBeUndefined()
  await node.builder.absorb(own.crlIssuer, 'default')
  expect(await node.listed.find(own.crlIssuer, later?.serial ?? '')).toMatchObject({ site: 'default' })
})
