import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import type { RevocationRow } from '../../../../src/engines/pki/certificates/tables.ts'
import { gapsOf, includes, type Ranges, united } from '../../../../src/engines/pki/crl/listed/ranges.ts'
import type { Scope } from '../../../../src/engines/pki/crl/tables.ts'
import { MovableClock } from '../../../auth/world.ts'
import { type Cluster, useCluster } from '../../../keys/support.ts'
import { type BuilderNode, type Ca, createCa, createSet, hour, nodeAt, read, revoke, targetOf } from '../world.ts'

let cluster: Cluster
useCluster('crlrepeated', (begun) => {
  cluster = begun
})
beforeAll(() => createSet(cluster.place.database))

const sites = ['default', 'abroad'] as const
type Site = (typeof sites)[number]
const few = Array.from({ length: 4 }, (_, index) => `4${index}`.padEnd(40, 'a'))

type Step =
  | { readonly kind: 'revoke'; readonly serials: readonly string[]; readonly hours: number; readonly site: Site }
  | { readonly kind: 'others'; readonly site: Site }
  | { readonly kind: 'local' | 'delta' | 'tidy'; readonly site: Site }
  | { readonly kind: 'unified' | 'unified delta' | 'damage' }
  | { readonly kind: 'pass'; readonly hours: number }

const site = fc.constantFrom(...sites)
const hours = fc.constantFrom(1, 3, 3, 9, 30)
const oneStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('revoke' as const),
      serials: fc.array(fc.constantFrom(...few), { minLength: 1, maxLength: 5 }),
      ...{ hours, site },
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('others' as const), site }) },
  { weight: 9, arbitrary: fc.record({ kind: fc.constantFrom('local' as const, 'delta', 'tidy', 'tidy'), site }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('unified' as const, 'unified delta', 'damage') }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('pass' as const), hours: fc.constantFrom(2, 4, 10) }) },
)

interface Seen {
  readonly serials: readonly string[]
  readonly times: Map<string, number>
}

/** A CA's revocations that have not left, and the lists that two sites make of them. */
class Story {
  readonly #clock = new MovableClock()
  readonly #nodes: Readonly<Record<Site, BuilderNode>>
  readonly #ca: Ca
  readonly #mount = randomUUID()
  readonly #rows: RevocationRow[] = []
  readonly #gone = new Set<RevocationRow>()
  readonly #complete = new Map<string, Seen>()
  #mounts = 0

  constructor(ca: Ca) {
    const { database } = cluster.place
    const clock = this.#clock
    const nodes = sites.map((one) => [one, nodeAt(database, { site: one, clock })] as const)
    this.#nodes = Object.fromEntries(nodes) as Record<Site, BuilderNode>
    this.#ca = ca
  }

  async take(step: Step): Promise<void> {
    if (step.kind === 'revoke') await this.#revoke(step.serials, step.site, step.hours)
    else if (step.kind === 'others') await this.#others(step.site)
    else if (step.kind === 'pass') this.#clock.ahead += step.hours * hour
    else if (step.kind === 'tidy') await this.#tidy(step.site)
    else if (step.kind === 'damage') await this.#damage()
    else if (step.kind === 'local') await this.#list('local', step.site)
    else if (step.kind === 'delta') await this.#delta('local', step.site)
    else if (step.kind === 'unified') await this.#list('unified')
    else await this.#delta('unified')
  }

  /** Every list, once more. */
  async end(): Promise<void> {
    for (const one of sites) await this.#list('local', one)
    await this.#list('unified')
    for (const { alarms } of Object.values(this.#nodes)) {
      expect(alarms.filter(({ text }) => !text.startsWith('entries of revocation lists were changed'))).toEqual([])
    }
  }

  async #revoke(serials: readonly string[], of: Site, lasting: number): Promise<void> {
    // Whole hours, so that many end together.
    const notAfter = Math.ceil(this.#clock.wall() / hour + lasting) * hour
    for (const serial of serials) {
      const about = { site: of, notAfter, serials: [serial], mount: `${this.#mount.slice(0, 8)}-${this.#mounts++}` }
      const revokedAt = this.#clock.wall()
      this.#rows.push(...(await revoke(cluster.place.database, this.#ca.crlIssuer, 1, { ...about, revokedAt })))
    }
  }

  async #others(of: Site): Promise<void> {
    const about = {
      site: of,
      notAfter: this.#clock.wall() + 5 * hour,
      mount: `${this.#mount.slice(0, 8)}-${this.#mounts++}`,
    }
    this.#rows.push(...(await revoke(cluster.place.database, this.#ca.crlIssuer, 1100, about)))
  }

  /**
   * Serial numbers that `must` be listed: they have a revoked certificate that ends later than all that have left.
   * Those whose latest certificates end together, some having left and some not, `may` be listed.
   */
  #expected(which: readonly Site[]): { readonly must: readonly string[]; readonly may: ReadonlySet<string> } {
    const rows = this.#rows.filter((row) => which.some((one) => one === row.site))
    const left = new Map<string, number>()
    for (const { serial, notAfter } of rows.filter((row) => this.#gone.has(row))) {
      left.set(serial, Math.max(notAfter, left.get(serial) ?? 0))
    }
    const staying = rows.filter((row) => !this.#gone.has(row))
    const later = staying.filter(({ serial, notAfter }) => notAfter > (left.get(serial) ?? 0))
    const asLate = staying.filter(({ serial, notAfter }) => notAfter === left.get(serial))
    const must = [...new Set(later.map(({ serial }) => serial))]
    return { must, may: new Set([...must, ...asLate.map(({ serial }) => serial)]) }
  }

  async #build(scope: Scope, of: Site, kinds: 'complete' | 'delta') {
    const node = this.#nodes[of]
    const built = await node.builder.build(targetOf(this.#ca, this.#mount, { scope, kinds }))
    const lists = [read(await node.whole(built.complete), this.#ca), read(await node.whole(built.delta), this.#ca)]
    return lists as [ReturnType<typeof read>, ReturnType<typeof read>]
  }

  /** A complete list names the expected serial numbers, each once, with no later time of revocation than before. */
  async #list(scope: Scope, of: Site = 'default'): Promise<void> {
    const [{ serials, times }] = await this.#build(scope, of, 'complete')
    const { must, may } = this.#expected(scope === 'local' ? [of] : sites)
    expect(new Set(serials).size).toBe(serials.length)
    expect(must.filter((serial) => !serials.includes(serial))).toEqual([])
    expect(serials.filter((serial) => !may.has(serial))).toEqual([])
    const name = `${scope} ${scope === 'local' ? of : ''}`
    const before = this.#complete.get(name)
    const now = new Map(serials.map((serial, index) => [serial, times[index] ?? 0]))
    for (const [serial, time] of now) expect(time).toBeLessThanOrEqual(before?.times.get(serial) ?? time)
    this.#complete.set(name, { serials, times: now })
  }

  /**
   * A delta names only serial numbers that may be listed, each once; with its complete list it names all that must be.
   */
  async #delta(scope: Scope, of: Site = 'default'): Promise<void> {
    const name = `${scope} ${scope === 'local' ? of : ''}`
    const base = this.#complete.get(name)
    if (base === undefined) return this.#list(scope, of)
    const [{ serials: listed }, { serials }] = await this.#build(scope, of, 'delta')
    expect(listed).toEqual(base.serials)
    const { must, may } = this.#expected(scope === 'local' ? [of] : sites)
    expect(new Set(serials).size).toBe(serials.length)
    expect(serials.filter((serial) => !may.has(serial))).toEqual([])
    const named = new Set([...base.serials, ...serials])
    expect(must.filter((serial) => !named.has(serial))).toEqual([])
  }

  async #absorb(): Promise<void> {
    for (const one of sites) await this.#nodes[one].builder.absorb(this.#ca.crlIssuer, one)
  }

  /** As in tidying: revocations leave the database once their entries have left. */
  async #tidy(of: Site): Promise<void> {
    await this.#absorb()
    const released = await this.#nodes[of].builder.removeEntries(this.#ca.crlIssuer, of, () => true)
    for (const row of this.#rows) {
      if (row.site !== of || this.#gone.has(row) || !released.has({ seq: row.seq ?? 0, notAfter: row.notAfter }))
        continue
      this.#gone.add(row)
      await cluster.place.sql('DELETE FROM pki_revocations WHERE id = ?', [row.id])
      this.#forget(row)
    }
  }

  /** Once the last revocation of a serial number has left, a new one has a time of its own. */
  #forget({ serial }: RevocationRow): void {
    const staying = this.#rows.filter((row) => row.serial === serial && !this.#gone.has(row))
    for (const [name, { times }] of this.#complete) {
      if (!staying.some((row) => name === 'unified ' || name === `local ${row.site}`)) times.delete(serial)
    }
  }

  /** Removes all segments in SQL: a first revocation that has left the database is then unknown. */
  async #damage(): Promise<void> {
    await this.#absorb()
    await cluster.place.sql('DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?)', [this.#ca.crlIssuer])
    this.#complete.clear()
    await this.#list('unified')
  }
}

test('a list has exactly the serial numbers of which a certificate is revoked and may not leave yet', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(oneStep, { minLength: 6, maxLength: 24 }), async (steps) => {
      const story = new Story(await createCa(cluster))
      for (const step of steps) await story.take(step)
      await story.end()
    }),
    { numRuns: 12 },
  )
}, 600_000)

const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 60 }))
const all = Array.from({ length: 60 }, (_, index) => index + 1)
const inOrder = (some: readonly number[]) => some.toSorted((a, b) => a - b)
const numbersOf = (ranges: Ranges): number[] => all.filter((number) => includes(ranges, number))

test('ranges have the numbers of which they were made, and are as few as can be', () => {
  fc.assert(
    fc.property(numbers, numbers, (some, others) => {
      const ranges = united([united([some]), united([others])])
      expect(numbersOf(ranges)).toEqual(inOrder([...new Set([...some, ...others])]))
      expect(numbersOf(gapsOf(1, 60, inOrder(some)))).toEqual(all.filter((number) => !some.includes(number)))
      const starts = numbersOf(ranges).filter((number) => !includes(ranges, number - 1))
      expect(ranges).toHaveLength(starts.length)
    }),
  )
})
