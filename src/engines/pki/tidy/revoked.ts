import type { Transaction } from '../../../store/reader.ts'
import { atMost, column, defineTable } from '../../../store/table.ts'
import {
  type CertificateRow,
  cacheKey,
  certificateTable,
  type RevocationRow,
  revocationTable,
} from '../certificates/tables.ts'
import { defaultCrlSettings } from '../crl/settings.ts'
import { revocationTally } from '../revocation/tables.ts'
import { discardCertificates, sift } from './certstore.ts'
import type { TidyDeps } from './deps.ts'
import { lastEnd, type Part, type Place, portionOf, type Work } from './part.ts'
import type { Cursor } from './tables.ts'

/** The columns of revocations that an index contains; a row is verified before it is removed. */
const traces = defineTable(
  'pki_revocations',
  {
    id: column.text(),
    mount: column.text(),
    site: column.text(),
    serial: column.hex(),
    notAfter: column.loose(),
  },
  { sealed: false },
)

/** A page of revocations of certificates that ended long enough ago. */
export interface EndedPage {
  /** The beginning of the next page; undefined after the last one. */
  readonly next: Cursor | undefined
  readonly found: number
  readonly leaving: readonly RevocationRow[]
  /** The number of revocations that must stay on lists. */
  readonly staying: number
}

/** Revocations of expired certificates and the lists that still carry them. */
export class EndedRevocations {
  readonly #deps: TidyDeps

  constructor(deps: TidyDeps) {
    this.#deps = deps
  }

  /**
   * The page after `cursor`, whose entries have left the segments as far as they may. A revocation is removed from the
   * database only after its entry has left the segments, so that it is recorded at all times.
   */
  async next(place: Place, cursor: Cursor): Promise<EndedPage> {
    const { mount, run } = place
    const { database, clock } = this.#deps
    const end = lastEnd(clock.wall(), run.order.safetyBuffer)
    const after = [cursor.notAfter, cursor.serial] as const
    const page = { by: ['notAfter', 'serial'], index: 'by_expiry', after, limit: portionOf(run.order) } as const
    const where = { mount, site: cursor.site, notAfter: atMost(end) }
    const found = await database.read((q) => database.unverified(traces).list(q, where, page))
    const last = found.at(-1)
    if (last === undefined) return { next: undefined, found: 0, leaving: [], staying: 0 }
    const ids = found.map(({ id }) => id)
    const rows = await database.read((q) => database.table(revocationTable).sound(q, ids))
    const ended = rows.filter((row) => row.mount === mount && row.site === cursor.site && row.notAfter <= end)
    const leaving: RevocationRow[] = []
    for (const row of ended) if (await this.#hasLeft(place, row, end)) leaving.push(row)
    const next = { site: cursor.site, notAfter: last.notAfter, serial: last.serial }
    return { next, found: found.length, leaving, staying: ended.length - leaving.length }
  }

  /** Whether no segment has a revocation, now or later: one without a number never had an entry. */
  async #hasLeft({ left }: Place, { crlIssuer, site, seq, notAfter }: RevocationRow, end: number): Promise<boolean> {
    if (crlIssuer === null || seq === null) return true
    const name = `${crlIssuer} ${site}`
    const known = left.get(name) ?? { end, released: await this.#deps.lists.removeEntries({ crlIssuer, site }, end) }
    left.set(name, known)
    return Math.ceil(notAfter / 1000) * 1000 <= known.end && known.released.has({ seq, notAfter })
  }

  /** Removes revocations of one mount and site; returns how many there were. */
  async discard(tx: Transaction, rows: readonly RevocationRow[]): Promise<number> {
    const [first] = rows
    if (first === undefined) return 0
    const table = this.#deps.database.table(revocationTable)
    const listed = rows.filter(({ seq }) => seq !== null).map(({ id }) => id)
    let removed = await table.removeAll(tx, listed)
    // A revocation without a number may have been given one since: then it is to be listed, and stays.
    const unlisted = rows.filter(({ seq }) => seq === null).map(({ id }) => id)
    for (const row of await table.sound(tx, unlisted)) {
      if (row.seq !== null) continue
      await table.remove(tx, row)
      removed++
    }
    for (const row of rows) tx.touch(certificateTable.name, cacheKey(row))
    tx.tally(revocationTally(first.mount, first.site), -removed)
    return removed
  }
}

/**
 * Removes revocations of this site whose certificates ended long enough ago, and these certificates. If a list must
 * carry them once more first, lists are built, once in a run.
 */
export function revokedPart(deps: TidyDeps, revocations: EndedRevocations): Part {
  const { database, site, authorities, certificates, lists } = deps
  const table = database.table(certificateTable)

  /**
   * Their certificates, if stored and in agreement with their rows; not those of the same serial numbers that end
   * later.
   */
  async function certificatesOf(mount: string, rows: readonly RevocationRow[]): Promise<readonly CertificateRow[]> {
    const found = await database.read((q) => Promise.all(rows.map(({ serial }) => table.find(q, { mount, serial }))))
    const ends = rows.map(({ notAfter }) => notAfter)
    const stored = found.flatMap((row, index) =>
      row?.site === site && row.notAfter <= (ends[index] ?? 0) ? [row] : [],
    )
    return (await sift(stored, await authorities.of({ uuid: mount }))).genuine
  }

  return async (place): Promise<Work> => {
    const { mount, run, checked, total: known } = place
    const total = place.cursor === null ? await certificates.countRevoked(mount) : known
    const cursor = place.cursor ?? { site, notAfter: 0, serial: '' }
    const { next, found, leaving, staying } = await revocations.next(place, cursor)
    if (next === undefined) return async () => ({ done: true, message: null })
    if (staying > 0 && !run.carried && !(await rebuildsAlone(deps, mount))) {
      await lists.rebuild({ uuid: mount })
      place.left.clear()
      return async () => ({ done: false, cursor, checked, total, carried: true })
    }
    const stored = await certificatesOf(mount, leaving)
    return async (tx) => {
      await discardCertificates(tx, table, stored)
      return {
        done: false,
        cursor: next,
        checked: checked + found,
        total,
        message: `Tidying revoked certificates: checking certificate ${checked + found} of ${total}`,
        counts: { revokedCertDeleted: await revocations.discard(tx, leaving) },
      }
    }
  }
}

/** Whether the lists of a mount are built automatically, at fixed times. */
export async function rebuildsAlone({ authorities }: Pick<TidyDeps, 'authorities'>, mount: string): Promise<boolean> {
  const { settings } = await authorities.of({ uuid: mount })
  return (settings.crl ?? defaultCrlSettings).autoRebuild
}
