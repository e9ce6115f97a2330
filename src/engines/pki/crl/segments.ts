import { Cursor } from '../../../crypto/cursor.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { ReadLane } from '../../../store/pool/pools.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { SealedAccess } from '../../../store/sealed/access.ts'
import { entrySerials } from '../../../x509/crlentry.ts'
import { fingerprintsOf } from './fingerprints.ts'
import { includes, type Ranges } from './listed/ranges.ts'
import { countMarks, firstFrom, markAt } from './marks.ts'
import { fingerprintsTable, type Part, type SegmentName, type SegmentRow, segmentsTable } from './tables.ts'

/** Entries of a segment at most: 78 kB of certificates with serial numbers of 20 bytes. */
export const mostEntries = 2000

/** The content of a segment: concatenated entries, and their marks. */
export type Content = Pick<SegmentRow, 'entries' | 'marks'>

export interface SegmentsOptions {
  readonly database: Database
  /** Milliseconds since 1970. */
  now(): number
}

/** Segments: written once, read often. */
export class Segments {
  readonly #options: SegmentsOptions
  readonly #table: SealedAccess<typeof segmentsTable>
  readonly #fingerprints: SealedAccess<typeof fingerprintsTable>

  constructor(options: SegmentsOptions) {
    this.#options = options
    this.#table = options.database.table(segmentsTable)
    this.#fingerprints = options.database.table(fingerprintsTable)
  }

  /** @throws DamagedRow when it was edited or removed */
  async get(q: Reader, id: string): Promise<SegmentRow> {
    const row = await this.#table.get(q, id)
    if (row === undefined) throw new DamagedRow(segmentsTable.name, id, 'the segment is gone')
    return row
  }

  /** Stores a segment for a manifest that is changed in the same transaction. */
  async insert(tx: Transaction, crlIssuer: string, site: string, content: Content): Promise<SegmentName> {
    const { id } = await this.#table.insert(tx, { crlIssuer, site, createdAt: this.#options.now(), ...content })
    await this.#fingerprints.insert(tx, { id, fingerprints: fingerprintsOf(content.entries) })
    return { id, ...extentOf(content) }
  }

  /** Stores entries that only a list's parts will name, in their order. @returns the ids */
  async insertUnnamed(
    tx: Transaction,
    crlIssuer: string,
    site: string,
    portions: readonly Buffer[],
  ): Promise<string[]> {
    const common = { crlIssuer, site, createdAt: this.#options.now(), marks: Buffer.alloc(0) }
    const rows = await this.#table.insertMany(
      tx,
      portions.map((entries) => ({ ...common, entries })),
    )
    return rows.map(({ id }) => id)
  }

  /**
   * The entries of a list's parts, a segment at a time, each verified. Other work gets its turn between segments.
   * @throws DamagedRow at a segment that was edited or removed
   */
  async *entries(parts: readonly Part[], lane: ReadLane = 'requests'): AsyncGenerator<Buffer, void> {
    for (const { segment, from, without } of parts) {
      yield entriesFrom(await this.#options.database.read((q) => this.get(q, segment), lane), from, without)
    }
  }
}

function extentOf({ entries, marks }: Content): Omit<SegmentName, 'id'> {
  const count = countMarks(marks)
  return { first: markAt(marks, 0).number, last: markAt(marks, count - 1).number, count, bytes: entries.length }
}

/** The entries from this revocation number on, except some. */
function entriesFrom({ entries, marks }: Content, from: number, without: Ranges = []): Buffer {
  const skipped = firstFrom(marks, from)
  if (skipped === 0 && without.length === 0) return entries
  const list = new Cursor(entries)
  for (let index = 0; index < skipped; index++) list.skip()
  const rest = entries.subarray(list.at)
  if (without.length === 0) return rest
  const kept: Buffer[] = []
  let index = skipped
  for (const { der } of entrySerials(rest)) if (!includes(without, markAt(marks, index++).number)) kept.push(der)
  return Buffer.concat(kept)
}

/** Two contents, one after the other. */
export const joined = (one: Content, other: Content): Content => ({
  entries: Buffer.concat([one.entries, other.entries]),
  marks: Buffer.concat([one.marks, other.marks]),
})
