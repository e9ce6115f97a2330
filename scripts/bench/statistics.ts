/** The median of some measurements, and the quartiles around it. */
export interface Spread {
  readonly median: number
  readonly lowerQuartile: number
  readonly upperQuartile: number
}

/** Quartiles by linear interpolation between the sorted values. NaN for none. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => {
    const place = share * (sorted.length - 1)
    const below = sorted[Math.floor(place)] ?? Number.NaN
    const above = sorted[Math.ceil(place)] ?? Number.NaN
    return below + (above - below) * (place - Math.floor(place))
  }
  return { median: at(0.5), lowerQuartile: at(0.25), upperQuartile: at(0.75) }
}

export const median = (values: readonly number[]): number => spread(values).median
