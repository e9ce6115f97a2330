/** The state of a Timing, in a form that crosses processes and can be added up. */
export interface TimingState {
  /** Since the start. */
  readonly count: number
  readonly sumMilliseconds: number
  /** Of the last 30 to 60 seconds. */
  readonly recentMilliseconds: number
  /** Index and count of every bucket that is not empty, of the same time; ascending. */
  readonly recent: readonly (readonly [bucket: number, count: number])[]
}

/** Eight buckets for every doubling: a quantile is off by 6 % at most. Below 8 µs a bucket is one microsecond. */
const perDoubling = 8
const bucketCount = 29 * perDoubling
const longestMicroseconds = 2 ** 31 - 1

/**
 * Durations, counted in buckets: the counts of several processes can be added up, unlike their quantiles. An
 * observation is a few arithmetic operations.
 */
export class Timing {
  #count = 0
  #sum = 0
  #young = { sum: 0, buckets: new Uint32Array(bucketCount) }
  #old = { sum: 0, buckets: new Uint32Array(bucketCount) }

  observe(milliseconds: number): void {
    const index = bucketOf(milliseconds * 1000)
    this.#count++
    this.#sum += milliseconds
    this.#young.sum += milliseconds
    this.#young.buckets[index] = (this.#young.buckets[index] ?? 0) + 1
  }

  /** The young period becomes the old one, and the old one is forgotten. */
  roll(): void {
    const oldest = this.#old
    this.#old = this.#young
    oldest.sum = 0
    oldest.buckets.fill(0)
    this.#young = oldest
  }

  state(): TimingState {
    const [young, old] = [this.#young, this.#old]
    const recent: [number, number][] = []
    for (let index = 0; index < bucketCount; index++) {
      const count = (young.buckets[index] ?? 0) + (old.buckets[index] ?? 0)
      if (count > 0) recent.push([index, count])
    }
    return { count: this.#count, sumMilliseconds: this.#sum, recentMilliseconds: young.sum + old.sum, recent }
  }
}

/** The bucket of a duration: the position of its highest bit and the next three bits. */
function bucketOf(microseconds: number): number {
  const whole = Math.min(Math.max(microseconds, 0), longestMicroseconds) | 0
  if (whole < perDoubling) return whole
  const exponent = 31 - Math.clz32(whole)
  return (exponent - 2) * perDoubling + ((whole >> (exponent - 3)) & (perDoubling - 1))
}

/** The lower bound of a bucket. */
function startOf(bucket: number): number {
  if (bucket < 2 * perDoubling) return bucket
  const exponent = Math.floor(bucket / perDoubling) + 2
  return (perDoubling + (bucket % perDoubling)) * 2 ** (exponent - 3)
}

const middleOf = (bucket: number): number => (startOf(bucket) + startOf(bucket + 1)) / 2000

/** The sum of two states. */
export function addTimings(one: TimingState, other: TimingState): TimingState {
  const buckets = new Map(one.recent)
  for (const [bucket, count] of other.recent) buckets.set(bucket, (buckets.get(bucket) ?? 0) + count)
  return {
    count: one.count + other.count,
    sumMilliseconds: one.sumMilliseconds + other.sumMilliseconds,
    recentMilliseconds: one.recentMilliseconds + other.recentMilliseconds,
    recent: [...buckets].sort(([a], [b]) => a - b),
  }
}

/** The recent observations in a few figures: milliseconds, the extremes and the deviation from the buckets' middles. */
export interface Recent {
  readonly count: number
  readonly sum: number
  readonly minimum: number
  readonly maximum: number
  readonly deviation: number
}

/**
 * The figures of the recent observations. Count and sum are exact; the others are made of the middles of buckets, and 0
 * without observations.
 */
export function recentOf({ recent, recentMilliseconds: sum }: TimingState): Recent {
  const count = recent.reduce((total, [, some]) => total + some, 0)
  if (count === 0) return { count, sum, minimum: 0, maximum: 0, deviation: 0 }
  const mean = sum / count
  const squares = recent.reduce((total, [bucket, some]) => total + some * (middleOf(bucket) - mean) ** 2, 0)
  const [first = [0, 0]] = recent
  const last = recent.at(-1) ?? first
  return {
    ...{ count, sum },
    minimum: middleOf(first[0]),
    maximum: middleOf(last[0]),
    deviation: count < 2 ? 0 : Math.sqrt(squares / (count - 1)),
  }
}

/** The recent duration below which a share of all lies, in milliseconds; NaN without observations. */
export function quantile({ recent }: TimingState, share: number): number {
  const rank = share * recent.reduce((total, [, some]) => total + some, 0)
  let passed = 0
  for (const [bucket, count] of recent) {
    passed += count
    if (passed >= rank) return middleOf(bucket)
  }
  return Number.NaN
}
