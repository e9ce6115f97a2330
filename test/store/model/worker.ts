import { groupOf, type Registration, raise, type State, type Versions } from './database.ts'
import { type Committed, L, Line, type Logged, type Process, pollPause, type Supervisor, type World } from './world.ts'

/** A cached value: the numbers of its parts, and v of its leaf in the snapshot that gave them. */
export interface Entry {
  readonly seqs: readonly number[]
  readonly stamp: number
  readonly leaf: number
}

/** One read of all registrations and acknowledgements, shared by all waiting writers of a process. */
export interface Look {
  readonly began: number
  readonly ended: number
  readonly state: State
}

/** A fill on its way, for others to join. */
export interface Fill {
  readonly at: number
  failed?: boolean
  found?: { readonly live: boolean; readonly present: boolean; readonly entry: Entry }
}

/** A worker process: it polls, reads the log of its node, reads and writes. */
export class Worker {
  dead = false
  leaving = false
  stoppedUntil = 0
  began = Number.NEGATIVE_INFINITY
  registration: Registration | undefined
  /** Counts registrations. */
  life = 0
  known = new Map<number, number>()
  cache = new Map<string, Entry>()
  readonly fills = new Map<string, Fill>()
  readonly incarnation: number
  readonly slot: number
  readonly node: Supervisor
  readonly lines: readonly Line[]
  readonly lookLine: Line
  look: Look | undefined
  looking = false
  waiting = 0
  /** Whether it reads and writes the log of its node. */
  readonly attached: boolean
  readonly #world: World
  readonly #pollLine: Line
  #groups = new Map<number, number>()
  /** Versions of groups up to which their leaves are learned, by polls and from the own node without a gap. */
  #learned = new Map<number, number>()
  /** Groups that are acknowledged, or need no row. */
  #rows = new Map<number, number>()
  /** The next record of the log. */
  #next: number
  /** Counts the times when records were missed. */
  #missed = 0
  /** Whether it only reads the log, since a write to it has failed. */
  #detached = false
  #busy = false
  #again = false

  constructor(world: World, node: Supervisor, slot: number) {
    this.#world = world
    this.node = node
    this.slot = slot
    this.incarnation = world.id()
    this.#pollLine = new Line(world)
    this.lookLine = new Line(world)
    this.lines = world.without === 'leaseone' ? [this.#pollLine, this.#pollLine] : [new Line(world), new Line(world)]
    this.attached = world.chance(0.8)
    this.#next = node.log.end
  }

  end(): void {
    this.dead = true
    this.#world.later(this.#world.delay(), () => this.node.forget(this))
  }

  usable(entry: Entry): boolean {
    const { without, now } = this.#world
    if (without !== 'unseen') this.catchUp()
    if ((this.registration === undefined && without !== 'late') || now - this.began >= L) return false
    const unknown = without === 'unread' ? -1 : Number.POSITIVE_INFINITY
    return without === 'stamp' || entry.stamp >= (this.known.get(entry.leaf) ?? unknown)
  }

  #reset(): void {
    this.registration = undefined
    this.known = new Map()
    this.#groups = new Map()
    this.#learned = new Map()
    this.#rows = new Map()
    this.cache = new Map()
    this.began = Number.NEGATIVE_INFINITY
    this.life++
  }

  /** Polls. A worker that leaves drops everything, then deletes its registration, then ends. */
  *polling(): Process {
    while (!this.leaving) {
      yield* this.poll()
      yield this.#world.random(pollPause)
    }
    if (this.#world.without !== 'leave') this.#reset()
    yield this.#world.delay()
    this.node.forget(this)
  }

  /** One poll at a time; a request meanwhile causes one more. */
  *poll(): Process {
    if (this.#busy) {
      this.#again = true
      return
    }
    this.#busy = true
    yield* this.#pollOnce()
    this.#busy = false
    if (!this.#again) return
    this.#again = false
    this.#world.spawn(this, this.poll())
  }

  *#register(): Process {
    const world = this.#world
    const { node, slot, incarnation } = this
    const attached = this.attached && !this.#detached
    const registration: Registration = { node: node.number, slot, incarnation, log: attached ? node.number : undefined }
    if (world.without === 'late') {
      this.known = new Map(world.database.leaves)
      this.#groups = new Map(world.database.groups)
      this.began = world.now
    }
    yield world.delay() + (world.chance(0.3) ? world.random(4) : 0)
    world.commit({ registrations: new Map(world.database.registrations).set(registration, false) })
    yield world.delay()
    this.registration = registration
  }

  *#pollOnce(): Process {
    const world = this.#world
    if (this.leaving) return
    if (this.registration === undefined) yield* this.#register()
    const mine = this.registration
    if (mine === undefined) return
    if (world.chance(0.03)) this.#pollLine.move()
    const began = world.now
    const missed = this.#missed
    yield world.delay()
    const { copy } = this.#pollLine
    const { state, live } = copy.read()
    const misplaced = mine.log !== undefined && this.#detached && world.without !== 'misplaced'
    if (live && !misplaced && world.chance(0.97)) this.#acknowledge(mine)
    yield world.delay()
    if (misplaced) {
      world.later(world.delay(), () => world.remove((one) => one === mine))
      return this.#reset()
    }
    if (state === undefined || (!live && world.without !== 'frozen')) return this.#pollLine.move()
    if (live && state.registrations.get(mine) !== false) {
      if (world.chance(0.5)) world.later(world.delay(), () => world.remove((one) => one === mine))
      return this.#reset()
    }
    const source = world.without === 'hop' ? world.choice(world.copies) : copy
    if (!(yield* this.#learn(missed, state, () => source.read().state))) return
    this.began = world.without === 'began' ? world.now : began
  }

  /** Acknowledges by rows, for other nodes, the versions that the poll before this one has learned. */
  #acknowledge(mine: Registration): void {
    const { database } = this.#world
    const due = [...this.#groups].filter(([group, v]) => v > (this.#rows.get(group) ?? -1))
    if (due.length === 0) return
    const rows = new Map(database.acks.get(mine))
    raise(rows, due)
    raise(this.#rows, due)
    this.#world.commit({ acks: new Map(database.acks).set(mine, rows) })
  }

  /** The leaves of changed groups, then the groups; answers whether the second statement was answered too. */
  *#learn(missed: number, first: State, second: () => State | undefined): Generator<number, boolean> {
    const world = this.#world
    this.catchUp()
    const unlearned = ([group, v]: readonly [number, number]) =>
      v !== this.#groups.get(group) && v > (this.#learned.get(group) ?? -1)
    const changed = [...first.groups].filter(unlearned).map(([group]) => group)
    if (world.without === 'early') this.#groups = new Map(first.groups)
    let { groups } = first
    let read: Versions = new Map()
    if (changed.length > 0) {
      const later = world.without === 'onesnap' || world.without === 'composeone' ? first : second()
      yield world.delay() + (world.chance(0.1) ? world.random(5) : 0)
      if (later === undefined || world.chance(0.05)) return false
      const leaves = world.without === 'order' ? first.leaves : later.leaves
      if (world.without === 'order') groups = later.groups
      const whole = world.without !== 'unread' || this.#groups.size > 0
      read = new Map([...leaves].filter(([leaf]) => whole && changed.includes(groupOf(leaf))))
    }
    this.catchUp()
    if (missed !== this.#missed && world.without !== 'missed') return false
    this.#tell(read, changed, groups)
    if (world.without === 'lower') for (const [leaf, v] of read) this.known.set(leaf, v)
    else raise(this.known, read)
    for (const [group, v] of groups) this.#groups.set(group, v)
    raise(this.#learned, groups)
    return true
  }

  /** Before it acknowledges what it has read, for all who share the log, it writes to the log what is new of it. */
  #tell(read: Versions, changed: readonly number[], groups: Versions): void {
    const { without } = this.#world
    const first = this.began === Number.NEGATIVE_INFINITY
    if (changed.length === 0 || without === 'untold' || (without === 'firsttold' && first)) return
    const leaves = new Map([...read].filter(([leaf, v]) => v > (this.known.get(leaf) ?? -1)))
    const complete = new Map([...groups].filter(([group]) => changed.includes(group)))
    this.#append({ leaves, groups: new Map(), complete })
  }

  /** Reads the log of its node. A worker that comes too late polls before it uses its cache again. */
  catchUp(): void {
    const { without } = this.#world
    if (!this.attached) return
    const unread = without === 'cursor' && this.began === Number.NEGATIVE_INFINITY
    const { records, lost } = this.node.log.since(unread ? this.node.log.end : this.#next)
    this.#next = this.node.log.end
    if (lost && without !== 'skipped') this.#miss()
    for (const record of records) {
      // The first poll of a registration has to read all.
      const polled = [...record.complete].filter(([group]) => without === 'unpolled' || this.#learned.has(group))
      raise(this.#learned, polled)
      this.learn(record)
    }
    if (records.length > 0 && without === 'logfresh') this.began = this.#world.now
  }

  #miss(): void {
    this.#missed++
    this.began = Number.NEGATIVE_INFINITY
    // The news of others' polls presume what was missed.
    if (this.#world.without !== 'presumed') this.#learned = new Map()
  }

  /** Learns its own commit, and tells the other workers of its node; now and then that fails. */
  publish(committed: Committed): boolean {
    if (this.#world.without !== 'self') this.learn(committed)
    return this.#append({ ...committed, complete: new Map() })
  }

  #append(record: Logged): boolean {
    if (!this.attached || this.#detached) return false
    if (this.#world.chance(0.01)) {
      this.#detached = true
      return false
    }
    const { log } = this.node
    const upToDate = this.#next === log.end
    log.append(record)
    if (upToDate && this.#world.without !== 'reread') this.#next = log.end
    return true
  }

  /** The commits of a node need no row, if none before them is missing. */
  learn({ leaves, groups }: Committed): void {
    raise(this.known, leaves)
    for (const noted of [this.#learned, this.#rows]) {
      const follows = ([group, v]: readonly [number, number]) => noted.get(group) === v - 1
      raise(
        noted,
        [...groups].filter((one) => (this.#world.without === 'gap' && noted === this.#learned) || follows(one)),
      )
    }
  }
}
