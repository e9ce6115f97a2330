import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { OnAlarm } from './alarm.ts'
import type { Manifest, Manifests, SiteEntries } from './manifests.ts'
import { contentOf, type Numbered, readRecorded } from './record.ts'
import type { Segments } from './segments.ts'
import { type SegmentName, segmentsTable } from './tables.ts'

interface RestorationOptions {
  readonly database: Database
  readonly manifests: Manifests
  readonly segments: Segments
  readonly onAlarm: OnAlarm
}

const rowsAtOnce = 2000

/** Makes segments again that somebody edited or removed in SQL. */
export class Restoration {
  readonly #options: RestorationOptions

  constructor(options: RestorationOptions) {
    this.#options = options
  }

  /**
   * Makes a segment again from the recorded revocations. The manifest says how many entries it had: what tidy removed is not among
   * them, so that fewer revocations than that are a loss, which no list hides.
   * @throws DamagedRow when revocations of it are lost too
   */
  async restore(crlIssuer: string, damage: DamagedRow): Promise<void> {
    const { database, manifests, segments, onAlarm } = this.#options
    const found = find(await database.snapshot((q) => manifests.read(q, crlIssuer)), damage.id)
    // Another process was faster.
    if (found === undefined) return
    const { site, name } = found
    onAlarm({ crlIssuer, site, text: `entries of revocation lists were changed in the database: ${damage.message}` })
    const rows = await this.#rows(crlIssuer, site, name)
    if (rows.length < name.count) {
      const lost = `of its ${name.count} entries only ${rows.length} are recorded as revocations; restore a backup`
      throw new DamagedRow(segmentsTable.name, name.id, `the segment is damaged, and ${lost}`)
    }
    const content = contentOf(rows)
    await manifests.change(crlIssuer, async (tx, { sites }) => {
      const entries = sites[site]
      if (!entries?.segments.some(({ id }) => id === name.id)) return { result: undefined }
      const made = await segments.insert(tx, crlIssuer, site, content)
      return { after: { sites: { ...sites, [site]: replaced(entries, name.id, made) } }, result: undefined }
    })
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
