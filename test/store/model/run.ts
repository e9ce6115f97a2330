import { Copy, emptyState, type Registration, type State } from './database.ts'
import { Node } from './node.ts'
import type { Change } from './rules.ts'
import type { Worker } from './worker.ts'

/** L, the margin and the longest pause between polls. */
export const [L, margin, pollPause] = [10, 2, 1]

/** A step of a process: yields how long until it goes on. */
export type Process = Generator<number, void>

export interface Counts {
  /** Reads by way: from the cache, by a fill, past the cache. */
  reads: number
  stale: number
  writes: number
  /** Writers that waited beyond their time. */
  overdue: number
}

/** One random history of two nodes of two workers over three database nodes. */
export class Run {
  now = 0
  database: State = emptyState()
  ids = 7
  readonly without: Change | undefined
  readonly counts: Counts = { reads: 0, stale: 0, writes: 0, overdue: 0 }
  /** The number of the last write to an object that was answered. */
  readonly answered = new Map<string, number>()
  /** How rare delays and failures are. */
  readonly calm: number
  readonly copies: readonly Copy[]
  readonly nodes: readonly Node[]
  readonly #queue: { at: number; worker: Worker | undefined; process: Process }[] = []
  #random: number
  #next = 0

  constructor(seed: number, without: Change | undefined) {
    this.#random = seed
    this.without = without
    this.calm = this.choice([1, 3, 10])
    this.copies = [new Copy(this), new Copy(this), new Copy(this)]
    this.nodes = [new Node(this, 0), new Node(this, 1)]
    this.spawn(undefined, this.#forging())
    for (const copy of this.copies) this.spawn(undefined, copy.freezing())
  }

  id(): number {
    return this.#next++
  }

  /** Mulberry32. */
  random(below = 1): number {
    this.#random = (this.#random + 0x6d2b79f5) | 0
    let t = Math.imul(this.#random ^ (this.#random >>> 15), 1 | this.#random)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return (((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below
  }

  between(low: number, high: number): number {
    return low + this.random(high - low)
  }

  chance(share: number): boolean {
    return this.random() < share
  }

  choice<T>(all: readonly T[]): T {
    return all[Math.floor(this.random(all.length))] as T
  }

  /** Mostly short, sometimes a slow or dead link. */
  delay(): number {
    const kind = this.random(this.calm)
    return kind > 0.07 ? this.random(0.2) : kind > 0.015 ? this.random(6) : this.between(5, 30)
  }

  /** A worker's process pauses while the worker is stopped, and ends with it. */
  spawn(worker: Worker | undefined, process: Process, after = 0): void {
    const at = this.now + after
    const index = this.#queue.findLastIndex((one) => one.at <= at)
    this.#queue.splice(index + 1, 0, { at, worker, process })
  }

  /** Happens whether any worker lives or not. */
  later(after: number, happen: () => void): void {
    this.spawn(undefined, once(happen), after)
  }

  go(until: number): void {
    for (let one = this.#queue.shift(); one && one.at <= until; one = this.#queue.shift()) {
      this.now = one.at
      if (one.worker?.dead) continue
      if (one.worker && one.worker.stoppedUntil > this.now) {
        this.spawn(one.worker, one.process, one.worker.stoppedUntil - this.now)
        continue
      }
      const step = one.process.next()
      if (!step.done) this.spawn(one.worker, one.process, step.value)
    }
  }

  commit(changes: Partial<State>): void {
    this.database = { ...this.database, ...changes }
  }

  remove(unwanted: (registration: Registration) => boolean): void {
    const kept = <V>(all: ReadonlyMap<Registration, V>) => new Map([...all].filter(([one]) => !unwanted(one)))
    this.commit({ registrations: kept(this.database.registrations), acks: kept(this.database.acks) })
  }

  /** Counts a read that found these numbers of objects, of which those of `floor` had been answered as it began. */
  judge(found: readonly number[], floor: readonly number[]): void {
    this.counts.reads++
    if (found.some((seq, index) => seq < (floor[index] ?? 0))) this.counts.stale++
  }

  /** A stranger who reaches the port of the nudges. */
  *#forging(): Process {
    for (;;) {
      yield this.between(1, 15)
      const worker = this.choice(this.choice(this.nodes).workers)
      const registrations = [...this.database.registrations.keys()]
      if (this.without === 'believe' && registrations.length > 0) {
        const everything = [...this.database.leaves.keys()].map((leaf) => [leaf, Number.POSITIVE_INFINITY] as const)
        worker.believe(this.choice(registrations), new Map(everything))
      }
      this.spawn(worker, worker.poll())
    }
  }
}

/** A process of one step. */
function* once(happen: () => void): Process {
  yield 0
  happen()
}

/** Runs one history of 200 units of time; L is 10. */
export function simulate(seed: number, without?: Change): Counts {
  const run = new Run(seed, without)
  run.go(200)
  return run.counts
}
