import { emptyState, type Registration, type State, type Versions } from './database.ts'
import type { Change } from './rules.ts'

/** L, the margin and the longest pause between polls. */
export const [L, margin, pollPause] = [10, 2, 1]

/** A process; yields the time until its next step. */
export type Process = Generator<number, void>

/** The versions of one commit. */
export interface Committed {
  readonly leaves: Versions
  readonly groups: Versions
}

/** A record of a node's log: a commit, or the news of a poll. */
export interface Logged extends Committed {
  /** Groups of which all leaves up to this version are known to all who have read the log so far. */
  readonly complete: Versions
}

/** A worker as the world sees it: its processes pause while it is stopped, and end with it. */
export interface Mortal {
  readonly dead: boolean
  readonly stoppedUntil: number
  poll(): Process
}

/** A supervisor as its workers see it. */
export interface Supervisor {
  readonly number: number
  readonly workers: readonly Mortal[]
  readonly log: Log
  forget(worker: { readonly slot: number; readonly incarnation: number }): void
}

export interface Counts {
  /** All reads: from the cache, by a fill, past the cache. */
  reads: number
  stale: number
  writes: number
  /** Writers that waited beyond their time. */
  overdue: number
}

/** Memory that the workers of a node share: the latest commits of all of them. */
export class Log {
  /** The number of the next record. */
  end = 0
  #records: readonly Logged[] = []
  readonly #room: number

  /** @param room the most records it keeps */
  constructor(room: number) {
    this.#room = room
  }

  append(record: Logged): void {
    this.#records = [...this.#records, record].slice(-this.#room)
    this.end++
  }

  /** The records from this number on, and whether some of them are gone. */
  since(number: number): { readonly records: readonly Logged[]; readonly lost: boolean } {
    const wanted = this.end - number
    return { records: wanted === 0 ? [] : this.#records.slice(-wanted), lost: wanted > this.#records.length }
  }
}

/** Time, chance and the database, in one random history. */
export class World {
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
  nodes: readonly Supervisor[] = []
  readonly #queue: { at: number; worker: Mortal | undefined; process: Process }[] = []
  #random: number
  #next = 0

  constructor(seed: number, without: Change | undefined) {
    this.#random = seed
    this.without = without
    this.calm = this.choice([1, 3, 10])
    this.copies = [new Copy(this), new Copy(this), new Copy(this)]
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

  spawn(worker: Mortal | undefined, process: Process, after = 0): void {
    const at = this.now + after
    const index = this.#queue.findLastIndex((one) => one.at <= at)
    this.#queue.splice(index + 1, 0, { at, worker, process })
  }

  /** Calls `happen` whether any worker lives or not. */
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
}

/** A process of one step. */
function* once(happen: () => void): Process {
  yield 0
  happen()
}

/** A node of the database. Cut off it answers nothing, frozen it answers from an old state. */
export class Copy {
  mode: 'live' | 'cut off' | 'frozen' = 'live'
  state: State
  readonly #world: World

  constructor(world: World) {
    this.#world = world
    this.state = world.database
  }

  /** A causal statement, and whether the node says that it takes writes. */
  read(): { state: State | undefined; live: boolean } {
    if (this.mode === 'live') this.state = this.#world.database
    return { state: this.mode === 'cut off' ? undefined : this.state, live: this.mode === 'live' }
  }

  *freezing(): Generator<number, void> {
    const world = this.#world
    for (;;) {
      yield world.between(5, 80) * Math.sqrt(world.calm)
      if (world.copies.filter(({ mode }) => mode === 'live').length < 2) continue
      if (world.chance(0.5)) {
        this.mode = 'cut off'
        yield world.between(0, 4)
      } else this.state = world.database
      this.mode = 'frozen'
      yield world.chance(0.4) ? world.between(0.5, 4) : world.between(1, 40)
      this.mode = 'live'
    }
  }
}

/** A connection; a new one may lead to another node. */
export class Line {
  copy: Copy
  /** Whether the node took writes at the connection's last use. */
  tookWrites = false
  readonly #world: World

  constructor(world: World) {
    this.#world = world
    this.copy = world.choice(world.copies)
  }

  move(): void {
    if (this.#world.without === 'leaseone') return
    this.copy = this.#world.choice(this.#world.copies)
    this.tookWrites = false
  }
}
