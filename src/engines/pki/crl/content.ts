import type { Manifest } from './manifests.ts'
import type { Part, SegmentName } from './tables.ts'

/** Of which revocations a list is made, by site the number of the last one that was looked at. */
export type Covered = Readonly<Record<string, number>>

export interface Content {
  readonly parts: readonly Part[]
  readonly covered: Covered
  /** Bytes of all entries; undefined while only the segments themselves tell. */
  readonly bytes: number | undefined
}

export const nothing: Content = { parts: [], covered: {}, bytes: 0 }

/** All entries of these sites. */
export function completeOf({ sites }: Manifest, which: readonly string[]): Content {
  const named = which.flatMap((site) => sites[site]?.segments ?? [])
  return {
    parts: named.map(({ id, first }) => ({ segment: id, from: first })),
    covered: coveredOf(sites, which),
    bytes: named.reduce((sum, { bytes }) => sum + bytes, 0),
  }
}

/** The entries of these sites that a complete list does not take into account. */
export function deltaOf({ sites }: Manifest, which: readonly string[], base: Covered): Content {
  const parts = which.flatMap((site) => {
    const from = (base[site] ?? 0) + 1
    const later = (sites[site]?.segments ?? []).filter(({ last }) => last >= from)
    return later.map(({ id, first }: SegmentName): Part => ({ segment: id, from: Math.max(first, from) }))
  })
  return { parts, covered: coveredOf(sites, which), bytes: parts.length === 0 ? 0 : undefined }
}

const coveredOf = (sites: Manifest['sites'], which: readonly string[]): Covered =>
  Object.fromEntries(which.map((site) => [site, sites[site]?.absorbed ?? 0]))
