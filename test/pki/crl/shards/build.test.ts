import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Retirement } from '../../../../src/engines/pki/crl/retirement.ts'
import { parseShard, shardName, shardNumber, shardsOf } from '../../../../src/engines/pki/crl/shards/shard.ts'
import type { Scope } from '../../../../src/engines/pki/crl/tables.ts'
import { DamagedRow } from '../../../../src/store/faults.ts'
import { MovableClock, runJob } from '../../../auth/world.ts'
import { saved } from '../saved.ts'
import { useWorker } from '../worker.ts'
import { createCa, hour, serialsOf } from '../world.ts'
import { placeOf, setOf, shardsOut } from './world.ts'

const worker = useWorker('crlshards')

const shards = (of: number, scope?: Scope) => shardsOut(worker, of, scope)
const numbers = async (of: number) => (await shards(of)).map(({ number }) => number)

describe('shards of a list', () => {
  test('have every entry once, each that of its place, and the number and time of the complete list', async () => {
    const rows = await worker.revoke(300)
    const { complete } = await worker.build({ shards: [setOf(8), setOf(2)] })
    expect(complete.serials).toEqual(serialsOf(rows))
    expect(complete.points).toBeUndefined()
    for (const of of [8, 2]) {
      for (const [index, shard] of (await shards(of)).entries()) {
        const portion = { number: index + 1, of }
        expect(shard.serials).toEqual(serialsOf(rows).filter((serial) => placeOf(serial, of) === portion.number))
        expect(shard).toMatchObject({ number: complete.number, thisUpdate: complete.thisUpdate, base: undefined })
        expect(shard).toMatchObject({ nextUpdate: complete.nextUpdate, isScopeCritical: true })
        expect(shard.points).toEqual([`http://crl.example/${of}/${shardName(portion)}`])
      }
    }
    expect(worker.alarms()).toEqual([])
  })

  test('span segments: 4,500 entries over two shards', async () => {
    const rows = [...(await worker.revoke(2400)), ...(await worker.revoke(2100))]
    await worker.build({ shards: [setOf(2)] })
    const [first, second] = await shards(2)
    expect(first?.row?.parts.length).toBeGreaterThan(0)
    expect([...(first?.serials ?? []), ...(second?.serials ?? [])].toSorted()).toEqual(serialsOf(rows).toSorted())
  })

  test('to which nothing came stay as they are where only what is lacking is wanted', async () => {
    await worker.build({ shards: [setOf(4)] })
    const [row] = await worker.revoke(1)
    const place = placeOf(row?.serial ?? '', 4)
    await worker.build({ shards: [setOf(4)], lacking: true, covering: { site: 'default', seq: 1 } })
    expect(await numbers(4)).toEqual([1, 2, 3, 4].map((number) => (number === place ? 2 : 1)))
    expect((await shards(4))[place - 1]?.serials).toEqual([row?.serial])
    await worker.build({ shards: [setOf(4)] })
    expect(await numbers(4)).toEqual([3, 3, 3, 3])
  })

  test('of a count that is new come out though the complete list has what is wanted', async () => {
    const rows = await worker.revoke(20)
    const covering = { site: 'default', seq: 20 }
    await worker.build({ covering })
    await worker.build({ covering, lacking: true, shards: [setOf(2)] })
    expect((await shards(2)).flatMap(({ serials }) => serials).toSorted()).toEqual(serialsOf(rows).toSorted())
    const again = await worker.build({ covering, lacking: true, shards: [setOf(2)] })
    expect(again.complete.number).toBe(2)
  })

  test('that do not name every distribution point are made again', async () => {
    await worker.build({ shards: [setOf(2)] })
    const moved = { of: 2, urls: [...setOf(2).urls, 'http://other.example/{{shard}}'] }
    await worker.build({ shards: [moved], lacking: true })
    expect((await shards(2)).map(({ points }) => points?.[1])).toEqual(
      ['1-of-2', '2-of-2'].map((name) => `http://other.example/${name}`),
    )
  })

  test('of a count that is not wanted any more are withdrawn, and those of other mounts stay', async () => {
    const { mount } = worker
    worker.mount = randomUUID()
    await worker.build({ shards: [setOf(4)] })
    const other = worker.mount
    worker.mount = mount
    await worker.build({ shards: [setOf(4), setOf(2)] })
    await worker.build({ shards: [setOf(2)], lacking: true })
    const { published } = await worker.manifest()
    const keys = Object.keys(published).filter((key) => key.endsWith('of-4'))
    expect(keys).toHaveLength(4)
    expect(keys.every((key) => key.startsWith(other))).toBe(true)
    expect(await worker.cluster.place.sql('SELECT 1 FROM pki_crls WHERE mount = ? AND shards = 4', [mount])).toEqual([])
    expect(await numbers(2)).toHaveLength(2)
  })

  test('a delta leaves them as they are', async () => {
    await worker.build({ shards: [setOf(2)] })
    await worker.revoke(1)
    await worker.build({ kinds: 'delta', shards: [setOf(2)] })
    expect(await numbers(2)).toEqual([1, 1])
  })

  test('that are disabled are empty, and have all entries once they are enabled again', async () => {
    const rows = await worker.revoke(10)
    await worker.build({ disabled: true, shards: [setOf(2)], lacking: true })
    expect((await shards(2)).flatMap(({ serials }) => serials)).toEqual([])
    await worker.build({ shards: [setOf(2)], lacking: true })
    expect((await shards(2)).flatMap(({ serials }) => serials).toSorted()).toEqual(serialsOf(rows).toSorted())
    await worker.build({ disabled: true, shards: [setOf(2)], lacking: true })
    expect((await shards(2)).flatMap(({ serials }) => serials)).toEqual([])
  })

  test('over all sites have the entries of all, local ones those of their own', async () => {
    const [here, there] = [await worker.revoke(9), await worker.revoke(9, { site: 'abroad' })]
    await worker.build({ shards: [setOf(4)] })
    await worker.build({ shards: [setOf(4)], scope: 'unified' })
    const all = async (scope: Scope) => (await shards(4, scope)).flatMap(({ serials }) => serials).toSorted()
    expect(await all('local')).toEqual(serialsOf(here).toSorted())
    expect(await all('unified')).toEqual(serialsOf([...here, ...there]).toSorted())
  })

  test.each(['rsa-2048', 'ed25519'])('are signed by a key of type %s', async (type) => {
    worker.ca = await createCa(worker.cluster, type)
    const rows = await worker.revoke(10)
    await worker.build({ shards: [setOf(2)] })
    expect((await shards(2)).flatMap(({ serials }) => serials).toSorted()).toEqual(serialsOf(rows).toSorted())
  })
})

test('an entry leaves only after its shard, too, carried it past the end of its certificate', async () => {
  const { node, ca } = worker
  const remove = async () => (await node.builder.removeEntries(ca.crlIssuer, 'default', () => true)).removed
  const [row] = await worker.revoke(1, { notAfter: node.clock.wall() + hour })
  await worker.build({ shards: [setOf(2)] })
  node.clock.ahead = 2 * hour
  // Nothing was added to the shard: it stays as it was, made before the end.
  await worker.build({ shards: [setOf(2)], lacking: true })
  expect(await remove()).toBe(0)
  await worker.build({ shards: [setOf(2)] })
  expect((await shards(2)).flatMap(({ serials }) => serials)).toEqual([row?.serial])
  expect(await remove()).toBe(1)
  await worker.build({ shards: [setOf(2)] })
  expect((await shards(2)).flatMap(({ serials }) => serials)).toEqual([])
  expect(worker.alarms()).toEqual([])
})

describe('a shard in the database', () => {
  const ofFirst = 'WHERE crl_issuer = UNHEX(?) AND shards = 2 AND shard = 1'
  const sql = (text: string) => worker.cluster.place.sql(text, [worker.ca.crlIssuer])
  const find = () => {
    const { node, ca, mount } = worker
    const name = { mount, crlIssuer: ca.crlIssuer, site: 'default', scope: 'local', kind: 'complete' } as const
    return node.database.snapshot((q) => node.builder.lists.find(q, { ...name, portion: { number: 1, of: 2 } }))
  }

  /** Adds a row that is not sealed, in the likeness of the first shard. */
  const forge = async (changes: Readonly<Record<string, number>>) => {
    const [row] = await sql(`SELECT * FROM pki_crls ${ofFirst}`)
    const columns = Object.entries({ ...row, id: randomUUID(), ...changes })
    const names = columns.map(([name]) => `\`${name}\``).join()
    await worker.cluster.place.sql(
      `INSERT INTO pki_crls (${names}) VALUES (${columns.map(() => '?').join()})`,
      columns.map(([, value]) => value as string),
    )
  }

  test.each([
    ['edited', `UPDATE pki_crls SET next_update = next_update + 1 ${ofFirst}`],
    ['deleted', `DELETE FROM pki_crls ${ofFirst}`],
  ])('%s: it is refused, an alarm, and made again', async (_, attack) => {
    const rows = await worker.revoke(6)
    await worker.build({ shards: [setOf(2)] })
    await sql(attack)
    await expect(find()).rejects.toBeInstanceOf(DamagedRow)
    await worker.build({ shards: [setOf(2)], lacking: true })
    expect(await numbers(2)).toEqual([2, 1])
    expect((await shards(2)).flatMap(({ serials }) => serials).toSorted()).toEqual(serialsOf(rows).toSorted())
    expect(worker.alarms()).toEqual([
      expect.stringMatching(/^a published shard of a revocation list was changed in the database: pki_crls/),
    ])
  })

  test('put back: it is refused, an alarm, and made again', async () => {
    await worker.build({ shards: [setOf(2)] })
    const putBack = await saved(worker.cluster.place, 'pki_crls', ofFirst, worker.ca.crlIssuer)
    const rows = await worker.revoke(6)
    await worker.build({ shards: [setOf(2)] })
    await putBack()
    await expect(find()).rejects.toThrow('number 2 was published, it has number 1')
    await worker.build({ shards: [setOf(2)], lacking: true })
    expect((await shards(2)).flatMap(({ serials }) => serials).toSorted()).toEqual(serialsOf(rows).toSorted())
    expect(worker.alarms()).toHaveLength(1)
  })

  test('others that claim a place that there is not leave it where it is', async () => {
    await worker.build({ shards: [setOf(2)] })
    for (const place of [-1, 0, 3, 300]) await forge({ shard: place })
    expect(await numbers(2)).toEqual([1, 1])
    await worker.build({ shards: [setOf(2)], lacking: true })
    expect(await numbers(2)).toEqual([2, 1])
    expect(worker.alarms()).toEqual([])
    // The job that removes old segments reads all lists, and refuses to work while one is forged.
    await sql('DELETE FROM pki_crls WHERE crl_issuer = UNHEX(?) AND shards = 2 AND shard NOT IN (1, 2)')
  })

  test('is the one row of its place', async () => {
    await worker.build({ shards: [setOf(2)] })
    await expect(forge({})).rejects.toThrow('Duplicate entry')
  })

  test('has segments of its own, which go once no list names them', async () => {
    await worker.revoke(6)
    await worker.build({ shards: [setOf(2)] })
    const old = (await shards(2)).flatMap(({ row }) => row?.parts ?? []).map(({ segment }) => segment)
    expect(old.length).toBeGreaterThan(0)
    const { node, cluster } = worker
    const clock = new (class extends MovableClock {
      override monotonic = () => performance.now() + this.ahead
    })()
    const { job } = new Retirement({ database: node.database, clock, manifests: node.builder.manifests })
    const look = async () => {
      for (let n = 0; n < 2; n++) {
        clock.ahead += hour
        await runJob(node.database, job)
      }
      const [found] = await cluster.place.sql(
        `SELECT COUNT(*) AS n FROM pki_segments WHERE id IN (${old.map(() => '?').join()})`,
        old,
      )
      return Number(found?.n)
    }
    expect(await look()).toBe(old.length)
    const serials = (await shards(2)).flatMap((shard) => shard.serials)
    await worker.build({ shards: [setOf(2)] })
    expect(await look()).toBe(0)
    expect((await shards(2)).flatMap((shard) => shard.serials)).toEqual(serials)
  })
})

type Step =
  | { readonly kind: 'revoke'; readonly count: number; readonly lasting: boolean }
  | { readonly kind: 'build' | 'lacking' | 'delta' | 'tidy' | 'hours' }
  | { readonly kind: 'counts'; readonly counts: readonly number[] }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('revoke' as const), count: fc.integer({ min: 1, max: 12 }), lasting: fc.boolean() }),
    fc.record({ kind: fc.constantFrom('build' as const, 'lacking', 'delta', 'tidy', 'hours') }),
    fc.record({ kind: fc.constant('counts' as const), counts: fc.subarray([2, 4, 8]) }),
  ),
  { minLength: 4, maxLength: 14 },
)

test('the shards of each count together are the complete list, which is exactly what is revoked and not tidied', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      await worker.renew()
      const { node, ca } = worker
      const revoked = new Map<string, { readonly seq: number; readonly notAfter: number }>()
      let counts: readonly number[] = [4]
      const check = async (lacking: boolean) => {
        const { complete } = await worker.build({ shards: counts.map(setOf), lacking })
        expect(complete.serials.toSorted()).toEqual([...revoked.keys()].toSorted())
        for (const of of counts) {
          const found = await shards(of)
          const misplaced = found.flatMap(({ serials }, index) =>
            serials.filter((serial) => placeOf(serial, of) !== index + 1),
          )
          expect(misplaced).toEqual([])
          // A shard to which nothing was added keeps tidied entries until it is made again.
          const listed = found.flatMap(({ serials }) => serials)
          if (!lacking) expect(listed.toSorted()).toEqual([...revoked.keys()].toSorted())
          else expect(listed).toEqual(expect.arrayContaining([...revoked.keys()]))
        }
      }
      for (const step of all) {
        if (step.kind === 'revoke') {
          const notAfter = node.clock.wall() + (step.lasting ? 10_000 * hour : hour)
          for (const row of await worker.revoke(step.count, { notAfter })) {
            revoked.set(row.serial, { seq: row.seq ?? 0, notAfter })
          }
        } else if (step.kind === 'counts') counts = step.counts
        else if (step.kind === 'hours') node.clock.ahead += 10 * hour
        else if (step.kind === 'delta') await worker.build({ kinds: 'delta', shards: counts.map(setOf) })
        else if (step.kind === 'tidy') {
          const released = await node.builder.removeEntries(ca.crlIssuer, 'default', () => true)
          for (const [serial, row] of revoked) if (released.has(row)) revoked.delete(serial)
        } else await check(step.kind === 'lacking')
      }
      await check(true)
      await check(false)
      expect(worker.alarms()).toEqual([])
    }),
    { numRuns: 12 },
  )
}, 240_000)

test('every serial number is in one shard of each count, and its place is that of its last bits', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.integer({ min: 1, max: 8 }), (serial, bits) => {
      const of = 2 ** bits
      expect(shardNumber(serial, of)).toBe(((serial.at(-1) ?? 0) % of) + 1)
      const portion = { number: shardNumber(serial, of), of }
      expect(shardsOf(of)).toContainEqual(portion)
      expect(parseShard(shardName(portion))).toEqual(portion)
    }),
  )
})

test.each(['', '0-of-2', '3-of-2', '1-of-1', '1-of-3', '1-of-512', '01-of-2', '1-of-2 ', '-1-of-2', '1of2'])(
  '%j names no shard',
  (text) => {
    expect(parseShard(text)).toBeUndefined()
  },
)
