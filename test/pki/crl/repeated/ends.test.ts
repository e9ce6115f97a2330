import { describe, expect, test } from 'vitest'
import type { RevocationRow } from '../../../../src/engines/pki/certificates/tables.ts'
import { useWorker } from '../worker.ts'
import { hour, nodeAt, serialsOf, targetOf } from '../world.ts'

/** Certificates of one serial number that end at different times: a list names it until the last of them has ended. */

const worker = useWorker('crlends')

const inHours = (hours: number): number => worker.node.clock.wall() + hours * hour
const remove = (site = 'default') => worker.node.builder.removeEntries(worker.ca.crlIssuer, site, () => true)
const sql = (text: string) => worker.cluster.place.sql(text, [worker.ca.crlIssuer])
const placeOf = ({ seq, notAfter }: RevocationRow | undefined = never()) => ({ seq: seq ?? 0, notAfter })
const never = (): never => {
  throw new Error('no row')
}

/** Revokes a certificate that ends in two hours, and another of the same serial number that ends later. */
async function revokeTwice(later: Parameters<typeof worker.revoke>[1] = {}) {
  const first = await worker.revoke(1, { notAfter: inHours(2), reason: 1, revokedAt: Date.now() - 5 * hour })
  await worker.build()
  const serials = serialsOf(first)
  const second = await worker.revoke(1, { mount: 'n', notAfter: inHours(20), serials, ...later })
  return { first: first[0], second: second[0], serials }
}

/** Lets time pass and ended entries leave. */
async function pass(hours: number) {
  worker.node.clock.ahead += hours * hour
  await worker.build()
  return remove()
}

describe('a serial number whose second certificate ends later', () => {
  test('stays on the list when the first one has ended, and leaves when the second has', async () => {
    const { first, second, serials } = await revokeTwice()
    expect((await worker.build()).complete.serials).toEqual(serials)
    const released = await pass(4)
    expect([released.has(placeOf(first)), released.has(placeOf(second))]).toEqual([true, false])
    expect((await worker.build()).complete.serials).toEqual(serials)
    expect(await worker.node.listed.find(worker.ca.crlIssuer, serials[0] ?? '')).toBeDefined()
    expect((await pass(20)).has(placeOf(second))).toBe(true)
    expect((await worker.build()).complete.serials).toEqual([])
    expect(worker.alarms()).toEqual([])
  })

  test('keeps the time and the reason of its first revocation', async () => {
    const { first } = await revokeTwice({ reason: 4 })
    const since = Math.floor((first?.revokedAt ?? 0) / 1000) * 1000
    for (const hours of [0, 4]) {
      await pass(hours)
      expect((await worker.build()).complete).toMatchObject({ times: [since], reasons: [1] })
      const found = await worker.node.listed.find(worker.ca.crlIssuer, first?.serial ?? '')
      expect(found).toMatchObject({ revokedAt: since, reason: 1 })
    }
  })

  test('is named once where both were revoked before the first list', async () => {
    const first = await worker.revoke(2, { notAfter: inHours(2) })
    const serials = serialsOf(first)
    await worker.revoke(2, { mount: 'n', notAfter: inHours(20), serials })
    await worker.revoke(2, { mount: 'o', notAfter: inHours(40), serials })
    expect((await worker.build()).complete.serials).toEqual(serials)
    await pass(4)
    expect((await worker.build()).complete.serials).toEqual(serials)
    await pass(20)
    expect((await worker.build()).complete.serials).toEqual(serials)
    expect((await pass(40)).removed).toBe(2)
    expect((await worker.build()).complete.serials).toEqual([])
  })

  test('is named once while others of its segment leave', async () => {
    const leaving = await worker.revoke(3, { notAfter: inHours(1) })
    const { serials } = await revokeTwice({ notAfter: inHours(40) })
    expect((await worker.build()).complete.serials).toEqual([...serialsOf(leaving), ...serials])
    worker.node.clock.ahead += 1.5 * hour
    await worker.build()
    expect((await remove()).removed).toBe(3)
    expect((await worker.build()).complete.serials).toEqual(serials)
  })

  test('is on the list or its delta at all times', async () => {
    const { serials } = await revokeTwice()
    const others = await worker.revoke(1)
    const { complete, delta } = await worker.build({ kinds: 'delta' })
    expect(complete.serials).toEqual(serials)
    expect(delta.serials.toSorted()).toEqual([...serials, ...serialsOf(others)].toSorted())
    await pass(4)
    const later = await worker.build({ kinds: 'delta' })
    expect(later.complete.serials.toSorted()).toEqual([...serials, ...serialsOf(others)].toSorted())
    expect(later.delta.serials).toEqual([])
  })

  test('is on its shard', async () => {
    const { serials } = await revokeTwice()
    const shards = [{ of: 2, urls: ['http://crl.example/{{shard}}'] }]
    const shardsOut = async () => {
      const { node, ca, mount } = worker
      const name = { mount, crlIssuer: ca.crlIssuer, site: 'default', scope: 'local', kind: 'complete' } as const
      const manifest = await worker.manifest()
      const rows = await node.database.snapshot((q) => node.builder.shardLists.all(q, manifest, name, 2))
      return Buffer.concat(await Promise.all(rows.map((row) => (row === undefined ? never() : node.whole(row)))))
    }
    const count = (list: Buffer): number => list.toString('hex').split(serials[0] ?? '-').length - 1
    await worker.build({ shards })
    expect(count(await shardsOut())).toBe(1)
    worker.node.clock.ahead += 4 * hour
    await worker.build({ shards })
    await remove()
    await worker.build({ shards })
    expect(count(await shardsOut())).toBe(1)
  })

  test('is made again as it was when its segments were damaged', async () => {
    const { first, serials } = await revokeTwice()
    const others = await worker.revoke(2)
    await worker.build()
    const since = Math.floor((first?.revokedAt ?? 0) / 1000) * 1000
    await sql('DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?)')
    const { complete } = await worker.build()
    expect(complete.serials).toEqual([...serials, ...serialsOf(others)])
    expect([complete.times[0], complete.reasons[0]]).toEqual([since, 1])
    await pass(4)
    expect((await worker.build()).complete.serials).toEqual([...serials, ...serialsOf(others)])
  })
})

describe('on the list of all sites, a serial number', () => {
  test.each([
    ['here', 'default', 'abroad'],
    ['abroad', 'abroad', 'default'],
  ])(
    'whose first certificate was revoked %s stays until the second one of the other site has ended',
    async (...names) => {
      const [, one, other] = names
      const first = await worker.revoke(1, { site: one, notAfter: inHours(2), revokedAt: Date.now() - 5 * hour })
      const serials = serialsOf(first)
      const unified = async () => (await worker.build({ scope: 'unified' })).complete
      expect((await unified()).serials).toEqual(serials)
      await worker.revoke(1, { site: other, mount: 'n', notAfter: inHours(20), serials })
      const both = await unified()
      expect(both).toMatchObject({ serials, times: [Math.floor((first[0]?.revokedAt ?? 0) / 1000) * 1000] })
      worker.node.clock.ahead += 4 * hour
      await unified()
      expect([(await remove(one)).removed, (await remove(other)).removed]).toEqual([1, 0])
      expect((await unified()).serials).toEqual(serials)
      worker.node.clock.ahead += 20 * hour
      await unified()
      expect((await remove(other)).removed).toBe(1)
      expect((await unified()).serials).toEqual([])
    },
  )

  test('stays while two sites revoke it at once, whichever is taken in first', async () => {
    const first = await worker.revoke(20, { notAfter: inHours(2) })
    const serials = serialsOf(first)
    await worker.revoke(20, { site: 'abroad', mount: 'n', notAfter: inHours(20), serials })
    const abroad = nodeAt(worker.node.database, { site: 'abroad' })
    const target = targetOf(worker.ca, worker.mount)
    await Promise.all([worker.node.builder.build(target), abroad.builder.build(target)])
    expect((await worker.build()).complete.serials).toEqual(serials)
    const unified = async () => (await worker.build({ scope: 'unified' })).complete.serials.toSorted()
    expect(await unified()).toEqual(serials.toSorted())
    worker.node.clock.ahead += 4 * hour
    await worker.build()
    await unified()
    expect((await remove()).removed).toBe(20)
    expect(await unified()).toEqual(serials.toSorted())
    expect((await worker.build()).complete.serials).toEqual([])
  })

  test('is named when a third site revokes it after the others have ended, and the one that was named has left', async () => {
    const unified = async () => (await worker.build({ scope: 'unified' })).complete.serials
    const serials = serialsOf(await worker.revoke(1, { site: 'abroad', notAfter: inHours(2) }))
    await unified()
    await worker.revoke(1, { mount: 'n', notAfter: inHours(3), serials })
    await unified()
    worker.node.clock.ahead += 4 * hour
    await unified()
    expect((await remove()).removed).toBe(1)
    await worker.revoke(1, { site: 'third', mount: 'o', notAfter: inHours(-3), serials })
    expect(await unified()).toEqual(serials)
  })
})

describe('where the segment of its first revocation was damaged, a serial number', () => {
  /** Revocations listed by the site abroad and made here too, whose first segment is gone. */
  async function damaged() {
    const serials = serialsOf(await worker.revoke(2, { site: 'abroad' }))
    await worker.build({ scope: 'unified' })
    await sql('DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?)')
    await worker.revoke(2, { mount: 'n', serials })
    return serials
  }

  test('is on the list of all sites once', async () => {
    const serials = await damaged()
    expect((await worker.build({ scope: 'unified' })).complete.serials).toEqual(serials)
  })

  test('is on the list of its site, even when that segment cannot be made again', async () => {
    const serials = await damaged()
    await sql("DELETE FROM pki_revocations WHERE site = 'abroad' AND crl_issuer = UNHEX(?)")
    expect((await worker.build()).complete.serials).toEqual(serials)
  })
})
