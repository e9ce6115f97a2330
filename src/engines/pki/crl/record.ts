import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Reader } from '../../../store/reader.ts'
import { between, column, defineTable } from '../../../store/table.ts'
import { writeCrlEntry } from '../../../x509/crlentry.ts'
import { type RevocationRow, revocationTable } from '../certificates/tables.ts'
import { magnitudeOf } from './fingerprints.ts'
import { markedEnd, writeMarks } from './marks.ts'
import type { Content } from './segments.ts'

/** The columns that can be read when one of the revocations is damaged. */
const placesTable = defineTable(
  'pki_revocations',
  { id: column.text(), crlIssuer: column.hex(), site: column.text(), seq: column.loose() },
  { sealed: false },
)

/** A range of numbers among the revocations of a CRL issuer at a site. */
export interface Stretch {
  readonly crlIssuer: string
  readonly site: string
  readonly from: number
  readonly to: number
}

/** Revocations in the order of their numbers. */
export interface Recorded {
  readonly rows: readonly Numbered[]
  /** Numbers of rows that were edited. */
  readonly damaged: readonly number[]
  /** Whether there may be further rows behind these. */
  readonly more: boolean
}
export type Numbered = RevocationRow & { readonly seq: number }

/** The recorded revocations of a stretch, at most `limit`. @param q a snapshot */
export async function readRecorded(database: Database, q: Reader, stretch: Stretch, limit: number): Promise<Recorded> {
  const { crlIssuer, site, from, to } = stretch
  const where = { crlIssuer, site, seq: between(from, to) }
  const page = { by: 'seq', limit, index: 'by_seq' } as const
  const table = database.table(revocationTable)
  try {
    const rows = (await table.list(q, where, page)).filter(isNumbered)
    return { rows, damaged: [], more: rows.length >= limit }
  } catch (error) {
    if (!(error instanceof DamagedRow)) throw error
  }
  // Forged rows are left out below, so the number of rows does not tell whether more follow.
  const places = await database.unverified(placesTable).list(q, where, page)
  const beyond = Math.max(from - 1, ...places.map(({ seq }) => seq)) + 1
  const ids = places.map(({ id }) => id)
  const sound = await table.sound(q, ids)
  const rows = sound.filter(isNumbered).filter((row) => row.crlIssuer === crlIssuer && row.site === site)
  const found = new Set(rows.map(({ seq }) => seq))
  return {
    rows: rows.toSorted((a, b) => a.seq - b.seq),
    damaged: places.map(({ seq }) => seq).filter((seq) => !found.has(seq)),
    more: await table.exists(q, { crlIssuer, site, seq: between(beyond, to) }),
  }
}

const isNumbered = (row: RevocationRow): row is Numbered => row.seq !== null

/** Revocations as a segment holds them. */
export function contentOf(rows: readonly Numbered[]): Content {
  const entries = rows.map(({ serial, revokedAt, reason }) =>
    writeCrlEntry({ serial: magnitudeOf(serial), revokedAt, reason: reason ?? undefined }),
  )
  const marks = rows.map(({ seq, notAfter }) => ({ number: seq, notAfter: markedEnd(notAfter) }))
  return { entries: Buffer.concat(entries), marks: writeMarks(marks) }
}

/**
 * A revocation as it is listed: a serial number keeps the time and the reason of its first revocation.
 * @param others of the same serial number
 */
export function sinceFirst(
  row: Numbered,
  others: readonly { readonly revokedAt: number; readonly reason?: number | null | undefined }[],
): Numbered {
  const first = others.reduce<(typeof others)[number]>(
    (one, other) => (other.revokedAt <= one.revokedAt ? other : one),
    row,
  )
  return { ...row, revokedAt: first.revokedAt, reason: first.reason ?? null }
}
