import { united } from './listed/ranges.ts'
import type { Manifest } from './manifests.ts'
import type { Part, SegmentName } from './tables.ts'

/** The revocations that a list is made from: by site, the number of the last one considered. */
export type Covered = Readonly<Record<string, number>>

export interface Content {
  readonly parts: readonly Part[]
  readonly covered: Covered
  /** Bytes of all entries but those of `unmeasured`. */
  readonly bytes: number
  /** Parts whose length only their segments tell, since some of the entries are left out. */
  readonly unmeasured: readonly Part[]
}

export const nothing: Content = { parts: [], covered: {}, bytes: 0, unmeasured: [] }

/** All entries of these sites, each serial number once. */
export function completeOf({ sites }: Manifest, which: readonly string[]): Content {
  const named = which.flatMap((site) => sites[site]?.segments ?? [])
  return contentOf(
    named.map((name) => ({ name, part: partOf(name, name.first, which) })),
    coveredOf(sites, which),
  )
}

/** The entries of these sites that a complete list does not take into account. */
export function deltaOf({ sites }: Manifest, which: readonly string[], base: Covered): Content {
  const named = which.flatMap((site) => {
    const from = (base[site] ?? 0) + 1
    const later = (sites[site]?.segments ?? []).filter(({ last }) => last >= from)
    return later.map((name) => ({ name, part: partOf(name, Math.max(name.first, from), which) }))
  })
  return contentOf(named, coveredOf(sites, which))
}

interface Named {
  readonly name: SegmentName
  readonly part: Part
}

function contentOf(named: readonly Named[], covered: Covered): Content {
  const isWhole = ({ name, part }: Named): boolean => part.without === undefined && part.from === name.first
  return {
    parts: named.map(({ part }) => part),
    covered,
    bytes: named.filter(isWhole).reduce((sum, { name }) => sum + name.bytes, 0),
    unmeasured: named.filter((one) => !isWhole(one)).map(({ part }) => part),
  }
}

/** Each serial number has one entry: one per site, or on a list of several sites a single one. */
function partOf({ id, superseded = [], elsewhere = [] }: SegmentName, from: number, which: readonly string[]): Part {
  const without = which.length > 1 ? united([superseded, elsewhere]) : superseded
  return { segment: id, from, ...(without.length > 0 ? { without } : {}) }
}

const coveredOf = (sites: Manifest['sites'], which: readonly string[]): Covered =>
  Object.fromEntries(which.map((site) => [site, sites[site]?.absorbed ?? 0]))
