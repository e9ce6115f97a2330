import { column, defineTable, type Row } from '../../../store/table.ts'
import type { Ranges } from './listed/ranges.ts'

/** The last CRL number of a CRL issuer, over all sites, mounts and kinds of lists (RFC 5280 section 5.2.3). */
export const numbersTable = defineTable(
  'pki_crl_numbers',
  { crlIssuer: column.hex(), number: column.integer() },
  { sealed: true },
)

/** A segment as a manifest names it. */
export interface SegmentName {
  readonly id: string
  /** Numbers of its first and last revocation, with gaps where tidy removed entries. */
  readonly first: number
  readonly last: number
  readonly count: number
  /** Bytes of its entries. */
  readonly bytes: number
  /** Numbers in its range or behind it that have no entry, mostly because their serial numbers were listed already. */
  readonly repeated?: Ranges
  /**
   * Numbers of entries that all lists leave out: the site has a later one of the same serial number that stays longer.
   */
  readonly superseded?: Ranges
  /** Numbers of entries that a list of all sites leaves out: another site has one that stays at least as long. */
  readonly elsewhere?: Ranges
}

/**
 * The entries of a CRL issuer's lists: by site, every revocation up to the number `absorbed` is in one of the segments,
 * unless tidy removed it. `published` has the number of each published list (by `listKey`), so that an older one cannot
 * replace it. A row has all sites, so that no site can be hidden from the unified lists; its id is derived from the CRL
 * issuer (manifests.ts). The rows of this table are a set with a sealed head.
 */
export const manifestsTable = defineTable(
  'pki_manifests',
  {
    crlIssuer: column.hex(),
    absorbed: column.json<Readonly<Record<string, number>>>(),
    segments: column.json<Readonly<Record<string, readonly SegmentName[]>>>(),
    published: column.json<Readonly<Record<string, number>>>(),
  },
  { sealed: true },
)
export type ManifestRow = Row<typeof manifestsTable>

/**
 * Entries of lists in the order of revocation, as they are encoded in a list. A segment never changes: one that grows
 * or loses entries is rewritten under another id, and the old one removed when no list names it any more.
 */
export const segmentsTable = defineTable(
  'pki_segments',
  {
    crlIssuer: column.hex(),
    site: column.text(),
    createdAt: column.integer(),
    /** DER, one SEQUENCE after the other (RFC 5280 section 5.1.2.6). */
    entries: column.bytes(),
    /** For each entry its number and when its certificate expires: marks.ts. */
    marks: column.bytes(),
  },
  { sealed: true },
)
export type SegmentRow = Row<typeof segmentsTable>

/** Digests of the serial numbers of a segment, eight bytes each, in their order; the id is the segment's. */
export const fingerprintsTable = defineTable('pki_fingerprints', { fingerprints: column.bytes() }, { sealed: true })

export type Scope = 'local' | 'unified'

/** The site that the lists of a scope belong to: none for unified ones. @param site of this node */
export const siteOf = (scope: Scope, site: string): string => (scope === 'unified' ? '' : site)
export type Kind = 'complete' | 'delta'

/** Entries of a list: those of a segment from the revocation of this number on. */
export interface Part {
  readonly segment: string
  readonly from: number
  /** Numbers that are left out. */
  readonly without?: Ranges
}

/**
 * A list as it was signed. It is never stored whole: its bytes are `head`, the entries of its parts, `tail`. `site` is
 * '' where the scope is unified.
 */
export const crlsTable = defineTable(
  'pki_crls',
  {
    crlIssuer: column.hex(),
    site: column.text(),
    scope: column.text(),
    kind: column.text(),
    /** How many lists the entries are spread over, and which of them this is; 0 and 0 for one that has them all. */
    shards: column.integer(),
    shard: column.integer(),
    number: column.integer(),
    /** Of a delta: the number of the complete list that it belongs to. */
    base: column.integer().nullable(),
    thisUpdate: column.integer(),
    nextUpdate: column.integer(),
    /** Of the whole list. */
    bytes: column.integer(),
    head: column.bytes(),
    tail: column.bytes(),
    parts: column.json<readonly Part[]>(),
    /** By site, the number of the last revocation that it takes into account. */
    covered: column.json<Readonly<Record<string, number>>>(),
    /** Of the signed part (tbsCertList). */
    sha256: column.bytes(),
  },
  { sealed: true },
)
export type CrlRow = Row<typeof crlsTable>
