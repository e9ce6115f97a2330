import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { OnAlarm } from './alarm.ts'
import { magnitudeOf } from './fingerprints.ts'
import { memoryOf } from './listed/memory.ts'
import { includes, united } from './listed/ranges.ts'
import type { Manifest, Manifests, SiteEntries } from './manifests.ts'
import { contentOf, type Numbered, readRecorded, sinceFirst } from './record.ts'
import type { Segments } from './segments.ts'
import { type SegmentName, segmentsTable } from './tables.ts'

interface RestorationOptions {
  readonly database: Database
  readonly manifests: Manifests
  readonly segments: Segments
  readonly onAlarm: OnAlarm
}

const rowsAtOnce = 2000

/** Rebuilds segments that were edited or removed in SQL. */
export class Restoration {
  readonly #options: RestorationOptions

  constructor(options: RestorationOptions) {
    this.#options = options
  }

  /**
   * Rebuilds a segment from the recorded revocations. The manifest counts its entries without those removed by tidy, so
   * fewer revocations than that are a loss, which must not be hidden.
   * @throws DamagedRow when revocations of it are lost too
   */
  async restore(crlIssuer: string, damage: DamagedRow): Promise<void> {
    const { database, manifests, segments, onAlarm } = this.#options
    const manifest = await database.snapshot((q) => manifests.read(q, crlIssuer))
    const found = find(manifest, damage.id)
    // Another process was faster.
    if (found === undefined) return
    const { site, name } = found
    onAlarm({ crlIssuer, site, text: `entries of revocation lists were changed in the database: ${damage.message}` })
    const { repeated = [] } = name
    const rows = (await this.#rows(crlIssuer, site, name)).filter(({ seq }) => !includes(repeated, seq))
    if (rows.length < name.count) {
      const lost = `of its ${name.count} entries only ${rows.length} are recorded as revocations; restore a backup`
      throw new DamagedRow(segmentsTable.name, name.id, `the segment is damaged, and ${lost}`)
    }
    const hidden = await this.#hidden(manifest)
    const content = contentOf(rows.map((row) => sinceFirst(row, hidden.get(serialOf(row)) ?? [])))
    await manifests.change(crlIssuer, async (tx, { sites }) => {
      const entries = sites[site]
      const current = entries?.segments.find(({ id }) => id === name.id)
      if (entries === undefined || current === undefined) return { result: undefined }
      const made = { ...(await segments.insert(tx, crlIssuer, site, content)), ...memoryOf(current) }
      return { after: { sites: { ...sites, [site]: replaced(entries, name.id, made) } }, result: undefined }
    })
  }

  /** Revocations whose entries lists leave out, by serial number: one may be the first of its serial number. */
  async #hidden({ crlIssuer, sites }: Manifest): Promise<ReadonlyMap<string, readonly Numbered[]>> {
    const hidden: Numbered[] = []
    for (const [site, { segments }] of Object.entries(sites)) {
      for (const name of segments) {
        const numbers = united([name.superseded ?? [], name.elsewhere ?? []])
        if (numbers.length === 0) continue
        const rows = await this.#rows(crlIssuer, site, name)
        hidden.push(...rows.filter(({ seq }) => includes(numbers, seq)))
      }
    }
    return Map.groupBy(hidden, serialOf)
  }

  async #rows(crlIssuer: string, site: string, { first, last }: SegmentName): Promise<Numbered[]> {
    const { database } = this.#options
    const rows: Numbered[] = []
    for (let from = first; from <= last; ) {
      const stretch = { crlIssuer, site, from, to: last }
      const page = await database.snapshot((q) => readRecorded(database, q, stretch, rowsAtOnce))
      const numbers = [...page.rows.map(({ seq }) => seq), ...page.damaged]
      if (numbers.length === 0) break
      rows.push(...page.rows)
      from = Math.max(...numbers) + 1
    }
    return rows
  }
}

const serialOf = ({ serial }: Numbered): string => magnitudeOf(serial).toString('hex')

function find({ sites }: Manifest, id: string): { site: string; name: SegmentName } | undefined {
  for (const [site, { segments }] of Object.entries(sites)) {
    const name = segments.find((segment) => segment.id === id)
    if (name !== undefined) return { site, name }
  }
  return undefined
}

const replaced = ({ absorbed, segments }: SiteEntries, id: string, by: SegmentName): SiteEntries => ({
  absorbed,
  segments: segments.map((name) => (name.id === id ? by : name)),
})
