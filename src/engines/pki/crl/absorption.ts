import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import { revocationTable } from '../certificates/tables.ts'
import type { OnAlarm } from './alarm.ts'
import { lastNumber, mendLedger } from './ledger.ts'
import { hiding, memoryOf, recalling } from './listed/memory.ts'
import { gapsOf, shown } from './listed/ranges.ts'
import { type Sorted, sortOut } from './listed/repetition.ts'
import type { Listed } from './listed.ts'
import { type Manifest, type Manifests, noEntries, type SiteEntries } from './manifests.ts'
import { contentOf, type Recorded, readRecorded } from './record.ts'
import { type Content, joined, mostEntries, type Segments } from './segments.ts'
import type { SegmentName } from './tables.ts'

interface AbsorptionOptions {
  readonly database: Database
  readonly manifests: Manifests
  readonly segments: Segments
  readonly listed: Pick<Listed, 'entriesOf'>
  readonly onAlarm: OnAlarm
}

/** Revocations to take in: one page, up to the first that has no room in the last segment or a new one. */
interface Step {
  readonly manifest: Manifest
  readonly before: SiteEntries
  /** The last segment, when it grows. */
  readonly growing: { readonly name: SegmentName; readonly content: Content } | undefined
  readonly recorded: Recorded
  readonly sorted: Sorted
  /** The last number that this step covers. */
  readonly end: number
  /** The last number certainly assigned, and the one in the ledger. */
  readonly given: number
  readonly ledger: number
}

/** Takes revocations into segments, in the order of their numbers. */
export class Absorption {
  readonly #options: AbsorptionOptions

  constructor(options: AbsorptionOptions) {
    this.#options = options
  }

  /**
   * Takes in all revocations of a CRL issuer at a site that were committed before. A missing number is a revocation
   * removed in SQL: it raises an alarm, and the others are taken in.
   * @returns the manifest that has them @throws DamagedRow for the last segment, when it was edited or removed
   */
  async absorb(crlIssuer: string, site: string): Promise<Manifest> {
    for (;;) {
      const step = await this.#next(crlIssuer, site)
      if (step.ledger < step.given) await this.#mend(step, site)
      if (step.end === step.before.absorbed) return this.#whole(step)
      this.#report(step, site)
      await this.#take(step, site)
    }
  }

  async #next(crlIssuer: string, site: string): Promise<Step> {
    const read = await this.#read(crlIssuer, site)
    const { manifest, growing, recorded } = read
    const room = mostEntries - (growing?.name.count ?? 0)
    const sorted = await sortOut(this.#options.listed, { manifest, site, rows: recorded.rows, room })
    return { ...read, sorted, end: sorted.left === undefined ? read.end : sorted.left - 1 }
  }

  #read(crlIssuer: string, site: string): Promise<Omit<Step, 'sorted'>> {
    const { database, manifests, segments } = this.#options
    return database.snapshot(async (q) => {
      const [manifest, ledger] = await Promise.all([
        manifests.read(q, crlIssuer),
        lastNumber(database, q, { crlIssuer, site }),
      ])
      const before = manifest.sites[site] ?? noEntries
      const last = before.segments.at(-1)
      const name = last !== undefined && last.count < mostEntries ? last : undefined
      const stretch = { crlIssuer, site, from: before.absorbed + 1, to: Number.MAX_SAFE_INTEGER }
      const recorded = await readRecorded(database, q, stretch, mostEntries)
      const numbers = numbersOf(recorded)
      // Edited rows may claim any number.
      const given = Math.max(before.absorbed, recorded.rows.at(-1)?.seq ?? 0)
      const known = Math.max(given, ledger)
      const end = recorded.more ? Math.min(known, numbers.at(-1) ?? before.absorbed) : known
      const grows = name !== undefined && recorded.rows.length > 0
      const growing = grows ? { name, content: await segments.get(q, name.id) } : undefined
      return { manifest, before, growing, recorded, end, given, ledger }
    })
  }

  /** @throws DamagedRow when damaged rows fill a page and hide those behind them */
  #whole({ manifest, recorded }: Step): Manifest {
    if (!recorded.more) return manifest
    throw new DamagedRow(revocationTable.name, '', 'revocations behind rows that are none cannot be read')
  }

  #mend({ manifest: { crlIssuer }, given, ledger }: Step, site: string): Promise<void> {
    const { database, onAlarm } = this.#options
    const text = `the count of revocations was changed in the database: it is at ${ledger}, and ${given} have been given`
    onAlarm({ crlIssuer, site, text })
    return mendLedger(database, { crlIssuer, site }, given)
  }

  #report({ manifest: { crlIssuer }, before, recorded, end }: Step, site: string): void {
    const { onAlarm } = this.#options
    const found = numbersOf(recorded).filter((number) => number <= end)
    const gone = gapsOf(before.absorbed + 1, end, found)
    if (gone.length > 0) {
      onAlarm({ crlIssuer, site, text: `revocations were removed from the database: numbers ${shown(gone)}` })
    }
    const damaged = recorded.damaged.filter((number) => number <= end)
    if (damaged.length > 0) {
      const numbers = damaged.join(', ')
      onAlarm({
        crlIssuer,
        site,
        text: `revocations were edited in the database and are not listed: numbers ${numbers}`,
      })
    }
  }

  /** Does nothing if segments of any site have changed meanwhile. */
  #take({ manifest, before, growing, sorted, end }: Step, site: string): Promise<void> {
    const { manifests, segments } = this.#options
    const { crlIssuer } = manifest
    const fresh = contentOf(sorted.fresh)
    const content = growing === undefined ? fresh : joined(growing.content, fresh)
    const repeated = gapsOf(
      before.absorbed + 1,
      end,
      sorted.fresh.map(({ seq }) => seq),
    )
    return manifests.change(crlIssuer, async (tx, now) => {
      const entries = now.sites[site] ?? noEntries
      if (entries.absorbed !== before.absorbed || !haveSameSegments(now, manifest)) return { result: undefined }
      let names = entries.segments
      if (sorted.fresh.length > 0) {
        const made = await segments.insert(tx, crlIssuer, site, content)
        const grown = growing === undefined ? [] : names.slice(-1)
        names = [...names.slice(0, names.length - grown.length), { ...made, ...memoryOf(...grown) }]
      }
      const sites = { ...now.sites, [site]: { absorbed: end, segments: recalling(names, repeated) } }
      return { after: { sites: hiding(sites, sorted.hidden) }, result: undefined }
    })
  }
}

const numbersOf = ({ rows, damaged }: Recorded): number[] =>
  [...rows.map(({ seq }) => seq), ...damaged].toSorted((a, b) => a - b)

/** Whether no entry was added, removed or rewritten: segments never change, their ids do. */
const haveSameSegments = (one: Manifest, other: Manifest): boolean => idsOf(one) === idsOf(other)

const idsOf = ({ sites }: Manifest): string =>
  Object.values(sites)
    .flatMap(({ segments }) => segments.map(({ id }) => id))
    .join()
