import { describe, expect, test } from 'vitest'
import { useWorker } from './worker.ts'
import { hour, nodeAt, serialsOf, targetOf } from './world.ts'

/** A list names a serial number once (RFC 5280 section 5.1.2.6), however often it was revoked. */

const worker = useWorker('crlonce')

const segments = async (site = 'default') => (await worker.manifest()).sites[site]?.segments ?? []
const sql = (text: string) => worker.cluster.place.sql(text, [worker.ca.crlIssuer])

describe('a serial number stands once on a list', () => {
  test('when two mounts of a CA have revoked it, one after the other or at once', async () => {
    const rows = await worker.revoke(5)
    await worker.build()
    const again = await worker.revoke(3, { mount: 'n', serials: serialsOf(rows.slice(1, 4)) })
    const covering = { site: 'default', seq: again.at(-1)?.seq ?? 0 }
    const { complete, row } = await worker.build({ covering })
    expect(complete.serials).toEqual(serialsOf(rows))
    expect(row.covered).toEqual({ default: 8 })
    const both = await worker.revoke(2)
    await worker.revoke(2, { mount: 'n', serials: serialsOf(both) })
    expect((await worker.build()).complete.serials).toEqual(serialsOf([...rows, ...both]))
    expect(worker.alarms()).toEqual([])
  })

  test('when its revocation was deleted in SQL and is made again', async () => {
    const rows = await worker.revoke(3)
    await worker.build()
    await sql('DELETE FROM pki_revocations WHERE crl_issuer = UNHEX(?) AND seq = 2')
    await worker.revoke(1, { serials: serialsOf(rows.slice(1, 2)) })
    const { complete } = await worker.build()
    expect(complete.serials).toEqual(serialsOf(rows))
    expect(worker.alarms()).toEqual([])
  })

  test('over segments: 2,100 of one mount, which another mount revokes too', async () => {
    const rows = await worker.revoke(2100)
    await worker.revoke(2100, { mount: 'n', serials: serialsOf(rows) })
    rows.push(...(await worker.revoke(1)))
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
    expect((await segments()).map(({ count }) => count)).toEqual([2000, 101])
  }, 30_000)

  test('on a delta: not at all when the complete list has it', async () => {
    const rows = await worker.revoke(3)
    await worker.build()
    await worker.revoke(2, { mount: 'n', serials: serialsOf(rows.slice(0, 2)) })
    const later = await worker.revoke(1)
    expect((await worker.build({ kinds: 'delta' })).delta.serials).toEqual(serialsOf(later))
  })

  test('on the list of all sites when two sites have revoked it, and on the list of each', async () => {
    const here = await worker.revoke(4)
    const there = await worker.revoke(3, { site: 'abroad', mount: 'n', serials: serialsOf(here.slice(0, 2)) })
    const abroad = nodeAt(worker.node.database, { site: 'abroad' })
    const target = targetOf(worker.ca, worker.mount)
    await Promise.all([worker.node.builder.build(target), abroad.builder.build(target)])
    expect((await worker.build()).complete.serials).toEqual(serialsOf(here))
    const whole = await abroad.whole((await abroad.builder.build(target)).complete)
    expect(serialsOf(there).every((serial) => whole.includes(Buffer.from(serial, 'hex')))).toBe(true)
    const unified = await worker.build({ scope: 'unified' })
    expect(unified.complete.serials.toSorted()).toEqual(serialsOf([...here, ...there.slice(2)]).toSorted())
    // A segment that has grown since, and one that was made again, forget nothing.
    const more = await worker.revoke(2, { site: 'abroad', mount: 'n', serials: serialsOf(here.slice(2, 3)) })
    await sql("DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?) AND site = 'abroad'")
    const next = await worker.build({ scope: 'unified' })
    expect(next.complete.serials.toSorted()).toEqual(
      serialsOf([...here, ...there.slice(2), ...more.slice(1)]).toSorted(),
    )
    const delta = await worker.build({ scope: 'unified', kinds: 'delta' })
    expect(delta.delta.serials).toEqual([])
  })

  test('on its shard', async () => {
    const rows = await worker.revoke(6)
    await worker.revoke(6, { mount: 'n', serials: serialsOf(rows) })
    const { complete } = await worker.build({ shards: [{ of: 2, urls: ['http://crl.example/{{shard}}'] }] })
    expect(complete.serials).toEqual(serialsOf(rows))
  })
})

describe('with serial numbers that were revoked twice', () => {
  test('a damaged segment is made again as it was', async () => {
    const rows = await worker.revoke(4)
    await worker.build()
    await worker.revoke(2, { mount: 'n', serials: serialsOf(rows.slice(0, 2)) })
    await worker.build()
    rows.push(...(await worker.revoke(2)))
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
    await sql('DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?)')
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
    expect((await segments()).map(({ count }) => count)).toEqual([6])
  })

  test('a damaged segment that lost a revocation is noticed: the second one of another does not stand in for it', async () => {
    const rows = await worker.revoke(4)
    await worker.revoke(2, { mount: 'n', serials: serialsOf(rows.slice(0, 2)) })
    await worker.revoke(1)
    await worker.build()
    await sql('DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?)')
    await sql('DELETE FROM pki_revocations WHERE crl_issuer = UNHEX(?) AND seq = 4')
    await expect(worker.build()).rejects.toThrow('of its 5 entries only 4 are recorded as revocations')
  })

  test('one that has left the lists is listed when it is revoked again', async () => {
    const { node, ca } = worker
    const [row] = await worker.revoke(1, { notAfter: node.clock.wall() + hour })
    const rows = await worker.revoke(2)
    await worker.revoke(1, { mount: 'n', serials: serialsOf(rows.slice(0, 1)) })
    node.clock.ahead = 2 * hour
    await worker.build()
    expect((await node.builder.removeEntries(ca.crlIssuer, 'default', () => true)).removed).toBe(1)
    const serial = row?.serial ?? ''
    const [again] = await worker.revoke(1, { mount: 'n', serials: [serial], notAfter: node.clock.wall() - hour })
    expect((await worker.build()).complete.serials).toEqual([...serialsOf(rows), again?.serial])
    await sql('DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?)')
    expect((await worker.build()).complete.serials).toEqual([...serialsOf(rows), again?.serial])
  })
})
