/**
 * The coherence protocol (docs/coherence.md) with random delays, stopped processes, lost acknowledgements and
 * restarts: one object, one bucket, a linearizable database. It counts cache reads that gave a value older than a
 * write answered before.
 */
export const rules = ['delete', 'stamp', 'began', 'late', 'noack'] as const
/**
 * A rule to take away: a silent registration is deleted at once; a fill is not stamped; the poll's end counts instead
 * of its beginning; a worker caches before it registers; a writer answers at once.
 */
export type Rule = (typeof rules)[number]

const [L, margin, poll] = [10, 2, 1]

interface Registration {
  condemned: boolean
  acknowledged: number
}

/** A step of a process: yields how long until it goes on. */
type Process = Generator<number, void>

class Run {
  now = 0
  v = 0
  answered = 0
  stale = 0
  reads = 0
  readonly registrations = new Map<number, Registration>()
  readonly without: Rule | undefined
  #state: number
  #next = 0
  readonly #queue: { at: number; process: Process }[] = []

  constructor(seed: number, without: Rule | undefined) {
    this.#state = seed
    this.without = without
  }

  id(): number {
    return this.#next++
  }

  /** Mulberry32. */
  random(below = 1): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return (((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below
  }

  /** Mostly short, sometimes a stopped process or a dead link. */
  delay(): number {
    const kind = this.random()
    return kind < 0.9 ? this.random(0.3) : kind < 0.97 ? this.random(6) : 5 + this.random(35)
  }

  spawn(process: Process, after = 0): void {
    const at = this.now + after
    const index = this.#queue.findLastIndex((one) => one.at <= at)
    this.#queue.splice(index + 1, 0, { at, process })
  }

  go(until: number): void {
    for (let one = this.#queue.shift(); one && one.at <= until; one = this.#queue.shift()) {
      this.now = one.at
      const step = one.process.next()
      if (!step.done) this.spawn(one.process, step.value)
    }
  }
}

class Worker {
  readonly #run: Run
  #id: number | undefined
  #cache: number | undefined
  #known = -1
  #began = Number.NEGATIVE_INFINITY
  #life = 0

  constructor(run: Run) {
    this.#run = run
    run.spawn(this.#poller())
    run.spawn(this.#reader())
    run.spawn(this.#writer(), run.random(20))
  }

  #reset(): void {
    this.#id = undefined
    this.#cache = undefined
    this.#known = -1
    this.#began = Number.NEGATIVE_INFINITY
    this.#life++
  }

  *#poller(): Process {
    const run = this.#run
    for (;;) {
      if (this.#id === undefined) {
        if (run.without === 'late') {
          this.#known = run.v
          this.#began = run.now
          yield run.delay()
        }
        const id = run.id()
        run.registrations.set(id, { condemned: false, acknowledged: -1 })
        yield run.delay()
        this.#id = id
      }
      const began = run.now
      yield run.delay()
      const seen = run.v
      const mine = run.registrations.get(this.#id)
      const registered = mine !== undefined && !mine.condemned
      yield run.delay()
      if (!registered) {
        this.#reset()
        continue
      }
      this.#known = Math.max(this.#known, seen)
      this.#began = run.without === 'began' ? run.now : began
      yield run.delay() / 3
      if (run.random() < 0.97) mine.acknowledged = Math.max(mine.acknowledged, seen)
      if (run.random() < 0.01) this.#reset()
      yield run.random(poll)
    }
  }

  #usable(): boolean {
    const run = this.#run
    if (this.#cache === undefined || run.now - this.#began >= L) return false
    return run.without === 'stamp' || this.#cache >= this.#known
  }

  *#reader(): Process {
    const run = this.#run
    for (;;) {
      yield run.random()
      if (this.#usable()) {
        run.reads++
        if ((this.#cache ?? 0) < run.answered) run.stale++
      } else if (this.#id !== undefined || run.without === 'late') {
        const life = this.#life
        yield run.delay()
        const got = run.v
        yield run.delay()
        if (life === this.#life) this.#cache = got
      }
    }
  }

  *#writer(): Process {
    const run = this.#run
    for (;;) {
      yield -25 * Math.log(1 - run.random())
      const mine = ++run.v
      yield run.delay()
      const end = run.now + L + margin
      yield run.delay()
      const expected = [...run.registrations.keys()]
      const late = (): number[] => expected.filter((id) => (run.registrations.get(id)?.acknowledged ?? mine) < mine)
      while (run.without !== 'noack' && run.now < end && late().length > 0) yield 0.2
      run.answered = Math.max(run.answered, mine)
      for (const id of late()) this.#condemn(id)
    }
  }

  #condemn(id: number): void {
    const run = this.#run
    const registration = run.registrations.get(id)
    if (run.without === 'delete') run.registrations.delete(id)
    else if (registration && !registration.condemned) {
      registration.condemned = true
      run.spawn(this.#undertaker(id))
    }
  }

  *#undertaker(id: number): Process {
    yield this.#run.delay() + L + margin
    this.#run.registrations.delete(id)
  }
}

/** Runs three workers for 300 units of time; L is 10. */
export function simulate(seed: number, without?: Rule): { stale: number; reads: number } {
  const run = new Run(seed, without)
  for (let n = 0; n < 3; n++) new Worker(run)
  run.go(300)
  return { stale: run.stale, reads: run.reads }
}
