import { nextTurn } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import type { Database } from '../../../store/database.ts'
import { entrySerials } from '../../../x509/crlentry.ts'
import { nameOfKey } from './list.ts'
import { memoryLeft } from './listed/memory.ts'
import type { Lists } from './lists.ts'
import { type Manifest, type Manifests, noEntries } from './manifests.ts'
import { countMarks, type Mark, markAt, markedEnd, writeMarks } from './marks.ts'
import { type Content, joined, mostEntries, type Segments } from './segments.ts'
import type { CrlRow, SegmentName } from './tables.ts'

interface EntryRemovalOptions {
  readonly database: Database
  readonly clock: Clock
  readonly manifests: Manifests
  readonly segments: Segments
  readonly lists: Lists
}

/** The entries removed from segments. */
export interface Released {
  /** How many entries were removed. */
  readonly removed: number
  /** Whether a revocation to be removed is in no segment, now and later; its `notAfter` in milliseconds. */
  has(revocation: { readonly seq: number; readonly notAfter: number }): boolean
}

/** Neighbouring segments to be merged into one. */
interface Pending {
  readonly names: readonly SegmentName[]
  readonly content: Content
  readonly removed: number
}

/** Removes entries from segments, and merges neighbours whose remaining entries fit into one. */
export class EntryRemoval {
  readonly #options: EntryRemovalOptions

  constructor(options: EntryRemovalOptions) {
    this.#options = options
  }

  /** @throws DamagedRow for a segment or a list that was edited or removed */
  async remove(crlIssuer: string, site: string, isWanted: (mark: Mark) => boolean): Promise<Released> {
    const { database, manifests, segments } = this.#options
    const manifest = await database.snapshot((q) => manifests.read(q, crlIssuer))
    let { before, upTo } = await this.#bound(manifest, site)
    const goes = (mark: Mark) => mark.notAfter * 1000 < before && mark.number <= upTo && isWanted(mark)
    let [removed, pending]: [number, Pending | undefined] = [0, undefined]
    const flush = async (): Promise<void> => {
      if (pending === undefined) return
      if (await this.#replace(crlIssuer, site, pending)) removed += pending.removed
      else upTo = Math.min(upTo, (pending.names[0]?.first ?? 1) - 1)
    }
    for (const name of (manifest.sites[site] ?? noEntries).segments) {
      const whole = await database.read((q) => segments.get(q, name.id))
      const kept = without(whole, goes)
      const left: Pending = { names: [name], content: kept, removed: name.count - countMarks(kept.marks) }
      if (pending !== undefined && fits(pending, left)) pending = together(pending, left)
      else {
        await flush()
        pending = left
      }
      await nextTurn()
    }
    await flush()
    return { removed, has: ({ seq, notAfter }) => seq <= upTo && markedEnd(notAfter) * 1000 < before }
  }

  /** Bounds set by the published complete lists and shards, except those that expired long ago and empty ones. */
  async #bound(manifest: Manifest, site: string): Promise<{ before: number; upTo: number }> {
    const { database, clock, lists } = this.#options
    const now = clock.wall()
    let [before, upTo] = [now, manifest.sites[site]?.absorbed ?? 0]
    await database.snapshot(async (q) => {
      const current = await this.#options.manifests.read(q, manifest.crlIssuer)
      for (const key of Object.keys(current.published)) {
        const name = nameOfKey(manifest.crlIssuer, key)
        if (name.kind !== 'complete' || (name.scope === 'local' && name.site !== site)) continue
        const list = await lists.named(q, current, name)
        const covered = list?.covered[site]
        if (list === undefined || covered === undefined || isForgotten(list, now)) continue
        before = Math.min(before, list.thisUpdate)
        upTo = Math.min(upTo, covered)
      }
    })
    return { before, upTo }
  }

  /** @returns whether the segments were still there, and are replaced; true when there is nothing to replace */
  async #replace(crlIssuer: string, site: string, { names, content, removed }: Pending): Promise<boolean> {
    if (removed === 0 && names.length === 1) return true
    const { manifests, segments } = this.#options
    return manifests.change(crlIssuer, async (tx, { sites }) => {
      const entries = sites[site] ?? noEntries
      const start = entries.segments.findIndex(({ id }) => id === names[0]?.id)
      const isThere = start >= 0 && names.every(({ id }, index) => entries.segments[start + index]?.id === id)
      if (!isThere) return { result: false }
      const memory = memoryLeft(entries.segments.slice(start, start + names.length), content.marks)
      const made = async () => ({ ...(await segments.insert(tx, crlIssuer, site, content)), ...memory })
      const left = countMarks(content.marks) > 0 ? [await made()] : []
      const next = entries.segments.toSpliced(start, names.length, ...left)
      return { after: { sites: { ...sites, [site]: { ...entries, segments: next } } }, result: true }
    })
  }
}

const isForgotten = ({ thisUpdate, nextUpdate }: CrlRow, now: number): boolean =>
  nextUpdate + (nextUpdate - thisUpdate) < now

const fits = (one: Pending, other: Pending): boolean =>
  countMarks(one.content.marks) + countMarks(other.content.marks) <= mostEntries

const together = (one: Pending, other: Pending): Pending => ({
  names: [...one.names, ...other.names],
  content: joined(one.content, other.content),
  removed: one.removed + other.removed,
})

/** The content without entries that go. */
function without(content: Content, goes: (mark: Mark) => boolean): Content {
  const marks = Array.from({ length: countMarks(content.marks) }, (_, index) => markAt(content.marks, index))
  const stays = marks.map((mark) => !goes(mark))
  if (stays.every(Boolean)) return content
  let index = 0
  const entries: Buffer[] = []
  for (const { der } of entrySerials(content.entries)) if (stays[index++]) entries.push(der)
  return { entries: Buffer.concat(entries), marks: writeMarks(marks.filter((_, at) => stays[at])) }
}
