import type { Manifest } from '../manifests.ts'
import { countMarks, firstFrom, markAt } from '../marks.ts'
import type { SegmentName } from '../tables.ts'
import { includes, type Ranges, united } from './ranges.ts'

/** The numbers that a segment's name records besides its first and last. */
export type Memory = Pick<SegmentName, 'repeated' | 'superseded' | 'elsewhere'>

/** Numbers of a site's entries that lists leave out from now on. */
export interface Hidden {
  readonly superseded: readonly number[]
  readonly elsewhere: readonly number[]
}

/** The union of several memories. */
export const memoryOf = (...parts: readonly Memory[]): Memory =>
  withoutEmpty({
    repeated: united(parts.map(({ repeated = [] }) => repeated)),
    superseded: united(parts.map(({ superseded = [] }) => superseded)),
    elsewhere: united(parts.map(({ elsewhere = [] }) => elsewhere)),
  })

/**
 * The memory still needed of segments that lost entries: each field has at most one range more than there are entries
 * left.
 * @param marks of the entries that are left
 */
export function memoryLeft(parts: readonly Memory[], marks: Buffer): Memory {
  const { repeated = [], superseded = [], elsewhere = [] } = memoryOf(...parts)
  const numbers = Array.from({ length: countMarks(marks) }, (_, index) => markAt(marks, index).number)
  const stillIn = (ranges: Ranges): Ranges => united([numbers.filter((number) => includes(ranges, number))])
  const hasNoneBetween = (end: number, start: number): boolean => {
    const next = firstFrom(marks, end)
    return next === numbers.length || markAt(marks, next).number > start
  }
  return withoutEmpty({
    repeated: united([repeated], hasNoneBetween),
    superseded: stillIn(superseded),
    elsewhere: stillIn(elsewhere),
  })
}

/** The segments, the last one remembering these numbers without an entry, too. */
export function recalling(segments: readonly SegmentName[], repeated: Ranges): readonly SegmentName[] {
  const last = segments.at(-1)
  if (last === undefined || repeated.length === 0) return segments
  return [...segments.slice(0, -1), { ...last, ...memoryOf(last, { repeated }) }]
}

/** The sites, with hidden entries recorded in the names of their segments. @param hidden by site */
export function hiding(sites: Manifest['sites'], hidden: ReadonlyMap<string, Hidden>): Manifest['sites'] {
  const after = { ...sites }
  for (const [site, { superseded, elsewhere }] of hidden) {
    const entries = sites[site]
    if (entries === undefined) continue
    const segments = entries.segments.map((name) => {
      const isIn = (number: number): boolean => number >= name.first && number <= name.last
      const more = { superseded: superseded.filter(isIn), elsewhere: elsewhere.filter(isIn) }
      const isSame = more.superseded.length + more.elsewhere.length === 0
      return isSame ? name : { ...name, ...memoryOf(name, more) }
    })
    after[site] = { ...entries, segments }
  }
  return after
}

const withoutEmpty = (memory: Required<Memory>): Memory =>
  Object.fromEntries(Object.entries(memory).filter(([, ranges]) => ranges.length > 0))
