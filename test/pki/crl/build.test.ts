import { hash, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { useWorker } from './worker.ts'
import { createCa, hour, nodeAt, serialsOf, targetOf } from './world.ts'

const worker = useWorker('crlbuild')

describe('a complete list', () => {
  test('names what is revoked, in the order of revocation; a delta of its number comes with it and is empty', async () => {
    const rows = [...(await worker.revoke(3)), ...(await worker.revoke(1, { reason: 1 }))]
    const { complete, delta, row, der } = await worker.build()
    expect(complete.serials).toEqual(serialsOf(rows))
    expect(complete.reasons).toEqual([undefined, undefined, undefined, 1])
    expect(complete).toMatchObject({ number: 1, base: undefined })
    expect(delta).toMatchObject({ serials: [], number: 1, base: 1 })
    expect(complete.nextUpdate).toBe(complete.thisUpdate + 72 * hour)
    expect(row.bytes).toBe(der.length)
    expect(row.sha256).toEqual(hash('sha256', complete.crl.tbs, 'buffer'))
    expect(worker.node.alarms).toEqual([])
  })

  test('of a CRL issuer without revocations has no entries', async () => {
    const { complete } = await worker.build()
    expect(complete.serials).toEqual([])
  })

  test('that is disabled has no entries, and all of them once it is enabled again', async () => {
    const rows = await worker.revoke(2)
    expect((await worker.build({ disabled: true })).complete.serials).toEqual([])
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
  })

  test.each(['rsa-2048', 'ecdsa-p384', 'ed25519'])(
    'is signed by a key of type %s by each of its algorithms',
    async (type) => {
      worker.ca = await createCa(worker.cluster, type)
      const rows = await worker.revoke(2)
      for (const algorithm of worker.ca.signer.algorithms) {
        expect((await worker.build({ algorithm })).complete.serials).toEqual(serialsOf(rows))
      }
    },
  )

  test('spans segments: 4,500 entries', async () => {
    const rows = [...(await worker.revoke(1900)), ...(await worker.revoke(1900))]
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
    rows.push(...(await worker.revoke(700)))
    const { complete, row } = await worker.build()
    expect(complete.serials).toEqual(serialsOf(rows))
    expect(row.parts).toHaveLength(3)
  })
})

test('a delta names what was revoked since the complete list that it belongs to, and its number is higher', async () => {
  await worker.revoke(3)
  await worker.build()
  const later = await worker.revoke(2)
  const first = await worker.build({ kinds: 'delta' })
  expect(first.delta).toMatchObject({ serials: serialsOf(later), number: 2, base: 1 })
  expect(first.complete.number).toBe(1)
  later.push(...(await worker.revoke(1)))
  const second = await worker.build({ kinds: 'delta' })
  expect(second.delta).toMatchObject({ serials: serialsOf(later), number: 3, base: 1 })
})

test('a delta of what has no complete list yet comes with one', async () => {
  const { complete, delta } = await worker.build({ kinds: 'delta' })
  expect([complete.number, delta.base]).toEqual([1, 1])
})

describe('numbers', () => {
  test('of a CRL issuer rise over mounts, scopes and kinds', async () => {
    const numbers = []
    for (const more of [{}, { scope: 'unified' }, { kinds: 'delta' }] as const) {
      for (const mount of [randomUUID(), randomUUID()])
        numbers.push((await worker.build({ ...more, mount })).delta.number)
    }
    expect(numbers).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('jump ahead in a new life of the database, and do not repeat when their row is removed', async () => {
    await worker.build()
    await worker.cluster.place.sql('DELETE FROM pki_crl_numbers WHERE crl_issuer = UNHEX(?)', [worker.ca.crlIssuer])
    expect((await worker.build()).complete.number).toBe(2)
    const next = nodeAt(worker.node.database, { epoch: 3 })
    expect((await next.builder.build(targetOf(worker.ca, worker.mount))).complete.number).toBe(2 * 2 ** 32 + 1)
    expect((await worker.build()).complete.number).toBe(2 * 2 ** 32 + 2)
  })
})

test('unified lists have the entries of all sites, local ones those of their own', async () => {
  const [here, there] = [await worker.revoke(3), await worker.revoke(2, { site: 'abroad' })]
  expect((await worker.build()).complete.serials).toEqual(serialsOf(here))
  expect((await worker.build({ scope: 'unified' })).complete.serials.toSorted()).toEqual(
    serialsOf([...here, ...there]).toSorted(),
  )
  const later = await worker.revoke(1, { site: 'abroad' })
  const { delta } = await worker.build({ scope: 'unified', kinds: 'delta' })
  expect(delta.serials).toEqual(serialsOf(later))
})

test('callers that come while a build runs share the next one, which names what each of them revoked', async () => {
  await worker.build()
  const results = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const [row] = await worker.revoke(1)
      const { complete } = await worker.node.builder.build(targetOf(worker.ca, worker.mount))
      return { row, complete }
    }),
  )
  for (const { row, complete } of results) expect(complete.covered.default).toBeGreaterThanOrEqual(row?.seq ?? Infinity)
  expect(new Set(results.map(({ complete }) => complete.number)).size).toBeLessThan(40)
})

test('what is listed is found by its serial number, and nothing else is', async () => {
  const rows = [...(await worker.revoke(2500, { reason: 4 })), ...(await worker.revoke(3, { site: 'abroad' }))]
  await worker.build({ scope: 'unified' })
  const other = await createCa(worker.cluster)
  for (const row of [rows[0], rows[1999], rows[2499], rows[2502]]) {
    const found = await worker.node.listed.find(worker.ca.crlIssuer, row?.serial ?? '')
    expect(found).toEqual({
      revokedAt: Math.floor((row?.revokedAt ?? 0) / 1000) * 1000,
      reason: row?.reason ?? undefined,
      site: row?.site,
    })
  }
  expect(await worker.node.listed.find(worker.ca.crlIssuer, '00ab')).toBeUndefined()
  expect(await worker.node.listed.find(other.crlIssuer, rows[0]?.serial ?? '')).toBeUndefined()
  const [later] = await worker.revoke(1)
  expect(await worker.node.listed.find(worker.ca.crlIssuer, later?.serial ?? '')).toBeUndefined()
  await worker.node.builder.absorb(worker.ca.crlIssuer, 'default')
  expect(await worker.node.listed.find(worker.ca.crlIssuer, later?.serial ?? '')).toMatchObject({ site: 'default' })
})
