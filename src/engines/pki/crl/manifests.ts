import { createHash } from 'node:crypto'
import type { Database } from '../../../store/database.ts'
import { Batch } from '../../../store/group.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { SealedAccess } from '../../../store/sealed/access.ts'
import type { Head } from '../../../store/sealed/heads.ts'
import { crlSet } from './bootstrap.ts'
import { type ManifestRow, manifestsTable, type SegmentName } from './tables.ts'

/** Entries of a site: every revocation up to the number `absorbed` is in a segment, unless tidy removed it. */
export interface SiteEntries {
  readonly absorbed: number
  readonly segments: readonly SegmentName[]
}

export const noEntries: SiteEntries = { absorbed: 0, segments: [] }

/** The content of a manifest; empty for a CRL issuer without revocations or lists. */
export interface Manifest {
  readonly crlIssuer: string
  /** Grows with every change. */
  readonly rev: number
  readonly sites: Readonly<Record<string, SiteEntries>>
  readonly published: ManifestRow['published']
}

/** The change of a manifest, and the result for the caller. */
export interface Changed<T> {
  readonly after?: Partial<Pick<Manifest, 'sites' | 'published'>>
  readonly result: T
}

interface Change {
  readonly crlIssuer: string
  work(tx: Transaction, before: Manifest): Promise<Changed<unknown>>
}

const pageSize = 100

/** The manifests of all CRL issuers, as their sealed head lists them: one put back or removed in SQL is refused. */
export class Manifests {
  readonly #database: Database
  readonly #table: SealedAccess<typeof manifestsTable>
  readonly #head: Head
  readonly #changes = new Batch<Change, unknown>((changes) => this.#commit(changes))

  constructor(database: Database) {
    this.#database = database
    this.#table = database.table(manifestsTable)
    this.#head = database.head(crlSet)
  }

  /** @param q a snapshot @throws DamagedRow when any manifest was edited, removed, added or put back in SQL */
  async read(q: Reader, crlIssuer: string): Promise<Manifest> {
    const row = this.#table.get(q, manifestId(crlIssuer))
    await Promise.all([this.#head.verify(q, this.#table.revisions(q)), row])
    return manifestOf(crlIssuer, await row)
  }

  /** The manifests of all CRL issuers. @param q a snapshot @throws DamagedRow as `read` does */
  async all(q: Reader): Promise<Manifest[]> {
    await this.#head.verify(q, this.#table.revisions(q))
    const found: ManifestRow[] = []
    for (let page: ManifestRow[] | undefined; page === undefined || page.length === pageSize; found.push(...page)) {
      const after = page?.at(-1)?.id
      page = await this.#table.list(q, {}, { by: 'id', limit: pageSize, ...(after === undefined ? {} : { after }) })
    }
    return found.map((row) => manifestOf(row.crlIssuer, row))
  }

  /**
   * Changes the manifest of a CRL issuer in one commit with concurrent changes. Once it resolves, no worker's cache
   * holds the old value of (`manifestsTable.name`, the CRL issuer).
   * @param work short: all writers of the set wait for it; may be run again
   */
  change<T>(crlIssuer: string, work: (tx: Transaction, before: Manifest) => Promise<Changed<T>>): Promise<T> {
    return this.#changes.add({ crlIssuer, work }) as Promise<T>
  }

  /** Makes changes in their order and moves the head once. */
  #commit(changes: readonly Change[]): Promise<unknown[]> {
    const ids = [...new Set(changes.map(({ crlIssuer }) => manifestId(crlIssuer)))]
    return this.#database.transaction(async (tx) => {
      const [, listed, ...found] = await Promise.all([
        this.#head.lock(tx),
        this.#table.revisions(tx),
        ...ids.map((id) => this.#table.get(tx, id)),
      ])
      await this.#head.verify(tx, listed)
      const members = new Map(listed.map((member) => [member.id, member]))
      const rows = new Map(found.flatMap((row) => (row ? [[row.crlIssuer, row] as const] : [])))
      const results: unknown[] = []
      for (const { crlIssuer, work } of changes) {
        const before = rows.get(crlIssuer)
        const { after, result } = await work(tx, manifestOf(crlIssuer, before))
        results.push(result)
        if (after === undefined) continue
        const row = await this.#write(tx, crlIssuer, before, after)
        rows.set(crlIssuer, row)
        members.set(row.id, row)
        tx.touch(manifestsTable.name, crlIssuer)
      }
      await this.#head.advance(tx, [...members.values()])
      return results
    })
  }

  #write(
    tx: Transaction,
    crlIssuer: string,
    before: ManifestRow | undefined,
    after: NonNullable<Changed<unknown>['after']>,
  ): Promise<ManifestRow> {
    const { sites, published } = { ...manifestOf(crlIssuer, before), ...after }
    const each = Object.entries(sites)
    const columns = {
      absorbed: Object.fromEntries(each.map(([site, { absorbed }]) => [site, absorbed])),
      segments: Object.fromEntries(each.map(([site, { segments }]) => [site, segments])),
      published,
    }
    if (before !== undefined) return this.#table.update(tx, before, columns)
    return this.#table.insert(tx, { crlIssuer, ...columns, id: manifestId(crlIssuer) })
  }
}

function manifestOf(crlIssuer: string, row: ManifestRow | undefined): Manifest {
  if (row === undefined) return { crlIssuer, rev: 0, sites: {}, published: {} }
  const { rev, absorbed, segments, published } = row
  const each = Object.entries(absorbed).map(([site, last]) => [
    site,
    { absorbed: last, segments: segments[site] ?? [] },
  ])
  return { crlIssuer, rev, sites: Object.fromEntries(each), published }
}

/**
 * A UUID of version 8 (RFC 9562 section 5.8) derived from the CRL issuer, so that the database cannot choose its row.
 */
function manifestId(crlIssuer: string): string {
  const bytes = createHash('sha256').update(`strongroom manifest ${crlIssuer}`).digest().subarray(0, 16)
  bytes.writeUInt8(0x80 | (bytes.readUInt8(6) & 0x0f), 6)
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
