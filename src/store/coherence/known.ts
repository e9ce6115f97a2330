import type { Clock } from '../../clock.ts'
import { bucketCount } from './buckets.ts'

/** A moment by both clocks: the monotonic one does not step, the wall one counts a suspended machine's sleep. */
export interface Moment {
  readonly monotonic: number
  readonly wall: number
}

/** What this worker knows of `versions`, and since when: the two things a cache entry is checked against. */
export class Known {
  readonly #clock: Clock
  readonly #leaseMilliseconds: number
  readonly #versions = new Float64Array(bucketCount)
  #began: Moment | undefined

  constructor(clock: Clock, leaseMilliseconds: number) {
    this.#clock = clock
    this.#leaseMilliseconds = leaseMilliseconds
  }

  now(): Moment {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.wall() }
  }

  /** Whether the poll that gave the versions began less than L ago. */
  fresh(): boolean {
    const began = this.#began
    return (
      began !== undefined &&
      this.#clock.monotonic() - began.monotonic < this.#leaseMilliseconds &&
      this.#clock.wall() - began.wall < this.#leaseMilliseconds
    )
  }

  /** Whether an entry stamped with v of its bucket is not known to be replaced. */
  covers(bucket: number, stamp: number): boolean {
    return stamp >= this.at(bucket)
  }

  at(bucket: number): number {
    return this.#versions[bucket] ?? Number.POSITIVE_INFINITY
  }

  /** Takes over versions; answers false when one went backwards (a restored database). */
  learn(versions: Iterable<readonly [bucket: number, v: number]>): boolean {
    for (const [bucket, v] of versions) {
      if (v < this.at(bucket)) return false
      this.#versions[bucket] = v
    }
    return true
  }

  /** The versions held now are those of a poll that began at `began`. */
  confirm(began: Moment): void {
    this.#began = began
  }

  /** Nothing may be used until the next confirmation. */
  forget(): void {
    this.#began = undefined
    this.#versions.fill(0)
  }
}
