import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import type { RevocationRow } from '../../../src/engines/pki/certificates/tables.ts'
import { DigestTable } from '../../../src/engines/pki/crl/listed/digests.ts'
import { gapsOf } from '../../../src/engines/pki/crl/listed/ranges.ts'
import { countMarks, firstFrom, markAt, writeMarks } from '../../../src/engines/pki/crl/marks.ts'
import { type Cluster, useCluster } from '../../keys/support.ts'
import { type BuilderNode, createCa, createSet, hour, nodeAt, read, revoke, serialsOf, targetOf } from './world.ts'

let cluster: Cluster
let node: BuilderNode
useCluster('crlproperties', (begun) => {
  cluster = begun
})
beforeAll(async () => {
  await createSet(cluster.place.database)
  node = nodeAt(cluster.place.database)
})

type Step =
  | { readonly kind: 'revoke'; readonly count: number; readonly lasting: boolean; readonly site: string }
  | { readonly kind: 'complete' | 'delta' | 'unified' | 'tidy' | 'hours' }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('revoke' as const),
      count: fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 900, max: 1100 })),
      lasting: fc.boolean(),
      site: fc.constantFrom('default', 'abroad'),
    }),
    fc.record({ kind: fc.constantFrom('complete' as const, 'delta', 'unified', 'tidy', 'hours') }),
  ),
  { minLength: 4, maxLength: 12 },
)

test('a complete list has exactly what is revoked and not tidied, and its delta what came since', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const ca = await createCa(cluster)
      const mount = randomUUID()
      const rows: RevocationRow[] = []
      const gone = new Set<string>()
      const hour10 = 10 * hour
      let numbers: readonly number[] = []
      let since: readonly RevocationRow[] | undefined
      const expected = (site?: string) =>
        serialsOf(rows.filter((row) => !gone.has(row.serial) && (site === undefined || row.site === site))).toSorted()
      const build = async (more: Parameters<typeof targetOf>[2]) => {
        const { complete, delta } = await node.builder.build(targetOf(ca, mount, more))
        const lists = { complete: read(await node.whole(complete), ca), delta: read(await node.whole(delta), ca) }
        numbers = [...numbers, lists.delta.number ?? 0]
        return { complete: lists.complete.serials.toSorted(), delta: lists.delta.serials.toSorted() }
      }
      for (const step of all) {
        if (step.kind === 'revoke') {
          const notAfter = node.clock.wall() + (step.lasting ? 1000 * hour10 : hour)
          rows.push(...(await revoke(node.database, ca.crlIssuer, step.count, { site: step.site, notAfter })))
        } else if (step.kind === 'hours') node.clock.ahead += hour10
        else if (step.kind === 'complete') {
          expect(await build({})).toEqual({ complete: expected('default'), delta: [] })
          since = [...rows]
        } else if (step.kind === 'unified') expect((await build({ scope: 'unified' })).complete).toEqual(expected())
        else if (step.kind === 'delta') {
          const known = new Set(since ?? rows)
          const later = rows.filter((row) => row.site === 'default' && !known.has(row) && !gone.has(row.serial))
          expect((await build({ kinds: 'delta' })).delta).toEqual(serialsOf(later).toSorted())
          since ??= [...rows]
        } else {
          const released = await node.builder.removeEntries(ca.crlIssuer, 'default', () => true)
          const of = rows.filter(({ site }) => site === 'default')
          for (const { seq, notAfter, serial } of of) if (released.has({ seq: seq ?? 0, notAfter })) gone.add(serial)
        }
      }
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
      expect(new Set(numbers).size).toBe(numbers.length)
      expect((await build({})).complete).toEqual(expected('default'))
      expect(node.alarms).toEqual([])
    }),
    { numRuns: 12 },
  )
}, 240_000)

test('marks are read as they were written, and the first from a number is found', () => {
  const marks = fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 48 - 1 }), { maxLength: 50 })
  fc.assert(
    fc.property(marks, fc.integer({ min: 0, max: 2 ** 48 - 1 }), (numbers, from) => {
      const sorted = numbers.toSorted((a, b) => a - b).map((number) => ({ number, notAfter: number % 2 ** 40 }))
      const bytes = writeMarks(sorted)
      expect(Array.from({ length: countMarks(bytes) }, (_, index) => markAt(bytes, index))).toEqual(sorted)
      const first = sorted.findIndex(({ number }) => number >= from)
      expect(firstFrom(bytes, from)).toBe(first < 0 ? sorted.length : first)
    }),
  )
})

test('gaps are what is missing between the first number and the last', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 40 })), (had) => {
      const ranges = gapsOf(
        1,
        40,
        had.toSorted((a, b) => a - b),
      ).flatMap((gap) => {
        const [from, to] = typeof gap === 'number' ? [gap, gap] : gap
        return Array.from({ length: to - from + 1 }, (_, index) => from + index)
      })
      expect([...ranges, ...had].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
    }),
  )
})

test('a digest table finds every place of what was added, and nothing else', () => {
  const digests = fc.array(fc.tuple(fc.uint8Array({ minLength: 6, maxLength: 6 }), fc.integer({ min: 1, max: 65_535 })))
  fc.assert(
    fc.property(digests, fc.uint8Array({ minLength: 6, maxLength: 6 }), (all, other) => {
      const table = new DigestTable(0)
      for (const [digest, place] of all) table.add(Buffer.from(digest), 0, place)
      for (const wanted of [other, ...all.map(([digest]) => digest)]) {
        const places = all.filter(([digest]) => Buffer.from(digest).equals(wanted)).map(([, place]) => place)
        expect(new Set(table.find(Buffer.from(wanted)))).toEqual(new Set(places))
      }
    }),
  )
})
