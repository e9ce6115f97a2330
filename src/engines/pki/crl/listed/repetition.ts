import { unlessDamaged } from '../../../../store/sealed/sound.ts'
import { magnitudeOf } from '../fingerprints.ts'
import type { Listed, ListedEntry } from '../listed.ts'
import type { Manifest } from '../manifests.ts'
import { markedEnd } from '../marks.ts'
import { type Numbered, sinceFirst } from '../record.ts'
import type { Hidden } from './memory.ts'

/**
 * Revocations, sorted by whether they get an entry. A list names a serial number once (RFC 5280 section 5.1.2.6), until
 * the last of its certificates has expired (section 3.3): a revocation gets its own entry unless the site has one that
 * stays as long.
 */
export interface Sorted {
  /** Revocations that get an entry, with the time and reason listed. */
  readonly fresh: readonly Numbered[]
  /** By site: entries, old and new, that another one replaces which stays at least as long. */
  readonly hidden: ReadonlyMap<string, Hidden>
  /** The first number that has no room any more. */
  readonly left: number | undefined
}

interface Taken {
  readonly manifest: Manifest
  readonly site: string
  readonly rows: readonly Numbered[]
  /** How many entries fit. */
  readonly room: number
}

/**
 * If the listed entries are damaged beyond repair, a second entry is the lesser evil: no revocation may be missing.
 * @param listed rebuilds damaged segments; then the manifest is out of date, and the result is not taken in
 */
export async function sortOut(listed: Pick<Listed, 'entriesOf'>, taken: Taken): Promise<Sorted> {
  const { manifest, site, rows, room } = taken
  const serials = rows.map(({ serial }) => magnitudeOf(serial))
  const known = new Map(await unlessDamaged(() => listed.entriesOf(manifest, serials)))
  const fresh: Numbered[] = []
  const hidden = new Map<string, { superseded: number[]; elsewhere: number[] }>()
  const hide = (entries: readonly ListedEntry[], how: keyof Hidden): void => {
    for (const entry of entries) {
      const ofSite = hidden.get(entry.site) ?? { superseded: [], elsewhere: [] }
      ofSite[how].push(entry.number)
      hidden.set(entry.site, ofSite)
    }
  }
  for (const [index, row] of rows.entries()) {
    const serial = serials[index]?.toString('hex') ?? ''
    const entries = known.get(serial) ?? []
    const own = entries.filter((entry) => entry.site === site)
    const others = entries.filter((entry) => entry.site !== site)
    const notAfter = markedEnd(row.notAfter)
    const staysAsLong = (entry: ListedEntry): boolean => entry.notAfter >= notAfter
    if (own.some(staysAsLong)) continue
    if (fresh.length === room) return { fresh, hidden, left: row.seq }
    const told = sinceFirst(row, entries)
    fresh.push(told)
    const shown = others.filter(({ isElsewhere }) => !isElsewhere)
    const isElsewhere = shown.some(staysAsLong)
    const { revokedAt, reason } = told
    const entry = { site, number: row.seq, notAfter, isElsewhere, revokedAt, reason: reason ?? undefined }
    hide(own, 'superseded')
    // Of all sites' entries, the list of all sites has the one that stays longest.
    hide(isElsewhere ? [entry] : shown, 'elsewhere')
    known.set(serial, [...others, entry])
  }
  return { fresh, hidden, left: undefined }
}
