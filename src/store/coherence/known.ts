import type { Clock } from '../../clock.ts'
import type { Version } from '../../workload.ts'
import { groupOf } from './leaves.ts'
import type { Group } from './versions.ts'

/**
 * A moment on both clocks: the monotonic one does not step, the wall clock also counts the sleep of a suspended
 * machine.
 */
export interface Moment {
  readonly monotonic: number
  readonly wall: number
}

/** The versions this worker knows, and the time of the poll that gave them: a cache entry is checked against both. */
export class Known {
  readonly #clock: Clock
  readonly #leaseMilliseconds: number
  readonly #leaves = new Map<number, number>()
  readonly #bases = new Map<number, number>()
  #began: Moment | undefined
  #changes = 0

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

  /** v of a leaf; the leaf has at least this version. Infinite before the first poll. */
  version(leaf: number): number {
    return Math.max(this.base(leaf), this.#leaves.get(leaf) ?? 0)
  }

  /** The part of v that counts for every leaf of its group. Infinite before the first poll. */
  base(leaf: number): number {
    return this.#bases.get(groupOf(leaf)) ?? Number.POSITIVE_INFINITY
  }

  /** Whether an entry stamped with v of its leaf is not known to have been replaced. */
  covers(leaf: number, stamp: number): boolean {
    return stamp >= this.version(leaf)
  }

  /** Changes whenever versions are learned or forgotten: until then the answers of `covers` stand. */
  get changes(): number {
    return this.#changes
  }

  /** Raises the versions of leaves. Never lowers one: a poll may be older than another worker's message. */
  learn(leaves: readonly Version[]): void {
    if (leaves.length > 0) this.#changes++
    for (const [leaf, v] of leaves) this.#leaves.set(leaf, Math.max(v, this.#leaves.get(leaf) ?? 0))
  }

  /** Those of these versions that it has not learned, as versions of leaves. */
  unlearned(leaves: readonly Version[]): Version[] {
    return leaves.filter(([leaf, v]) => v > (this.#leaves.get(leaf) ?? 0))
  }

  /** Raises the base that counts for every leaf of a group; its leaves are learned first. */
  learnBases(groups: readonly Group[]): void {
    if (groups.length > 0) this.#changes++
    for (const { group, base } of groups) this.#bases.set(group, Math.max(base, this.#bases.get(group) ?? 0))
  }

  /** The versions held now are those of a poll that began at `began`. */
  confirm(began: Moment): void {
    this.#began = began
  }

  /** Nothing may be used until the next confirmation. */
  doubt(): void {
    this.#began = undefined
  }

  /** Forgets all versions; nothing may be used until the next confirmation. */
  forget(): void {
    this.#changes++
    this.#began = undefined
    this.#leaves.clear()
    this.#bases.clear()
  }
}
