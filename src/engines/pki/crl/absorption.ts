import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import { revocationTable } from '../certificates/tables.ts'
import type { OnAlarm } from './alarm.ts'
import { lastNumber, mendLedger } from './ledger.ts'
import { type Manifest, type Manifests, noEntries, type SiteEntries } from './manifests.ts'
import { contentOf, gapsOf, type Recorded, readRecorded } from './record.ts'
import { type Content, joined, mostEntries, type Segments } from './segments.ts'
import type { SegmentName } from './tables.ts'

interface AbsorptionOptions {
  readonly database: Database
  readonly manifests: Manifests
  readonly segments: Segments
  readonly onAlarm: OnAlarm
}

/** Revocations to take in: as many as the last segment has room for, or a new one takes. */
interface Step {
  readonly manifest: Manifest
  readonly before: SiteEntries
  /** The last segment, when it grows. */
  readonly growing: { readonly name: SegmentName; readonly content: Content } | undefined
  readonly recorded: Recorded
  /** The last number that is dealt with then. */
  readonly end: number
  /** The last number that has certainly been given, and what the ledger says. */
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
   * Takes in all revocations of a CRL issuer at a site that were committed before. A missing number is a revocation that somebody
   * removed: an alarm, and the others go on.
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

  #next(crlIssuer: string, site: string): Promise<Step> {
    const { database, manifests, segments } = this.#options
    return database.snapshot(async (q) => {
      const [manifest, ledger] = await Promise.all([
        manifests.read(q, crlIssuer),
        lastNumber(database, q, { crlIssuer, site }),
      ])
      const before = manifest.sites[site] ?? noEntries
      const last = before.segments.at(-1)
      const name = last !== undefined && last.count < mostEntries ? last : undefined
      const limit = mostEntries - (name?.count ?? 0)
      const stretch = { crlIssuer, site, from: before.absorbed + 1, to: Number.MAX_SAFE_INTEGER }
      const recorded = await readRecorded(database, q, stretch, limit)
      const numbers = numbersOf(recorded)
      // What was edited may have any number.
      const given = Math.max(before.absorbed, recorded.rows.at(-1)?.seq ?? 0)
      const known = Math.max(given, ledger)
      const end = recorded.more ? Math.min(known, numbers.at(-1) ?? before.absorbed) : known
      const grows = name !== undefined && recorded.rows.length > 0
      const growing = grows ? { name, content: await segments.get(q, name.id) } : undefined
      return { manifest, before, growing, recorded, end, given, ledger }
    })
  }

  /** @throws DamagedRow when rows that are none are in the way of others */
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
      onAlarm({ crlIssuer, site, text: `revocations were removed from the database: numbers ${gone.join(', ')}` })
    }
    if (recorded.damaged.length > 0) {
      const numbers = recorded.damaged.join(', ')
      onAlarm({
        crlIssuer,
        site,
        text: `revocations were edited in the database and are not listed: numbers ${numbers}`,
      })
    }
  }

  /** Does nothing when somebody else has changed the segments meanwhile. */
  #take({ manifest: { crlIssuer }, before, growing, recorded, end }: Step, site: string): Promise<void> {
    const { manifests, segments } = this.#options
    const fresh = contentOf(recorded.rows)
    return manifests.change(crlIssuer, async (tx, now) => {
      const entries = now.sites[site] ?? noEntries
      if (!same(entries, before)) return { result: undefined }
      const kept = growing === undefined ? entries.segments : entries.segments.slice(0, -1)
      const added: SegmentName[] = []
      if (recorded.rows.length > 0) {
        const content = growing === undefined ? fresh : joined(growing.content, fresh)
        added.push(await segments.insert(tx, crlIssuer, site, content))
      }
      const after = { absorbed: end, segments: [...kept, ...added] }
      return { after: { sites: { ...now.sites, [site]: after } }, result: undefined }
    })
  }
}

const numbersOf = ({ rows, damaged }: Recorded): number[] =>
  [...rows.map(({ seq }) => seq), ...damaged].toSorted((a, b) => a - b)

/** Whether nothing was absorbed, removed or made again in between: segments never change, their ids do. */
const same = (one: SiteEntries, other: SiteEntries): boolean =>
  one.absorbed === other.absorbed &&
  one.segments.length === other.segments.length &&
  one.segments.every(({ id }, index) => id === other.segments[index]?.id)
