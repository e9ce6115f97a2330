type Stretch = readonly [first: number, last: number]

/**
 * Numbers in ascending order: single ones, and stretches by their first and last. Older manifests and lists have only
 * single ones.
 */
export type Ranges = readonly (number | Stretch)[]

const never = () => false

/**
 * The union of all, in as few ranges as possible.
 * @param areOne whether two ranges become one, given the end of the first and the start of the second; adjacent ones
 * always do
 */
export function united(all: readonly Ranges[], areOne: (end: number, start: number) => boolean = never): Ranges {
  const stretches = all.flat().map(boundsOf)
  const made: [number, number][] = []
  for (const [first, last] of stretches.toSorted(([a], [b]) => a - b)) {
    const before = made.at(-1)
    if (before === undefined || !(first <= before[1] + 1 || areOne(before[1], first))) made.push([first, last])
    else before[1] = Math.max(before[1], last)
  }
  return made.map(([first, last]) => (first === last ? first : [first, last]))
}

/** The numbers from one to another that are not among these. @param had ascending */
export function gapsOf(from: number, to: number, had: readonly number[]): Ranges {
  const gaps: Stretch[] = []
  let next = from
  for (const number of [...had, to + 1]) {
    if (number > next) gaps.push([next, number - 1])
    next = number + 1
  }
  return united([gaps])
}

/** Whether a number is among these; by halving. @param ranges ascending, as united and gapsOf make them */
export function includes(ranges: Ranges, number: number): boolean {
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const [first, last] = boundsOf(ranges[middle] as Ranges[number])
    if (number < first) high = middle
    else if (number > last) low = middle + 1
    else return true
  }
  return false
}

/** As an operator reads them: `5, 7-9`. */
export const shown = (ranges: Ranges): string =>
  ranges
    .map(boundsOf)
    .map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
    .join(', ')

function boundsOf(range: Ranges[number]): Stretch {
  return typeof range === 'number' ? [range, range] : range
}
