import { covers, groupOf, type Registration, raise, type State, type Versions } from './database.ts'
import { L, Line, type Message, type Process, pollPause, type Supervisor, type World, type Written } from './world.ts'

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

/** A worker process: it polls, hears the other workers of its node, reads and writes. */
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
  readonly facts = new Map<unknown, Map<number, number>>()
  readonly incarnation: number
  readonly slot: number
  readonly node: Supervisor
  readonly lines: readonly Line[]
  readonly lookLine: Line
  look: Look | undefined
  looking = false
  waiting = 0
  requests = 0
  readonly #world: World
  readonly #pollLine: Line
  /** Learns from a message at once, or polls when it is told. */
  readonly #direct: boolean
  #groups = new Map<number, number>()
  /** Versions of groups up to which their leaves are learned, by polls and from the own node without a gap. */
  #learned = new Map<number, number>()
  /** Groups that are acknowledged, or need no row. */
  #rows = new Map<number, number>()
  #asks: Written[] = []
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
    this.#direct = world.chance(0.5)
  }

  end(): void {
    this.dead = true
    this.#world.later(this.#world.delay(), () => this.node.forget(this))
  }

  usable(entry: Entry): boolean {
    const { without, now } = this.#world
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
    const registration: Registration = { node: node.number, slot, incarnation }
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
    yield world.delay()
    const { copy } = this.#pollLine
    const { state, live } = copy.read()
    if (live && world.chance(0.97)) this.#acknowledge(mine)
    yield world.delay()
    if (state === undefined || (!live && world.without !== 'frozen')) return this.#pollLine.move()
    if (live && state.registrations.get(mine) !== false) {
      if (world.chance(0.5)) world.later(world.delay(), () => world.remove((one) => one === mine))
      return this.#reset()
    }
    const source = world.without === 'hop' ? world.choice(world.copies) : copy
    if (!(yield* this.#learn(state, () => source.read().state))) return
    this.began = world.without === 'began' ? world.now : began
    for (const ask of this.#asks.splice(0)) this.#answer(ask)
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
  *#learn(first: State, second: () => State | undefined): Generator<number, boolean> {
    const world = this.#world
    const unlearned = ([group, v]: readonly [number, number]) =>
      v !== this.#groups.get(group) && v > (this.#learned.get(group) ?? -1)
    const changed = [...first.groups].filter(unlearned).map(([group]) => group)
    if (world.without === 'early') this.#groups = new Map(first.groups)
    let { groups } = first
    if (changed.length > 0) {
      const later = world.without === 'onesnap' || world.without === 'composeone' ? first : second()
      yield world.delay() + (world.chance(0.1) ? world.random(5) : 0)
      if (later === undefined || world.chance(0.05)) return false
      const leaves = world.without === 'order' ? first.leaves : later.leaves
      if (world.without === 'order') groups = later.groups
      const read = world.without !== 'unread' || this.#groups.size > 0
      const news = [...leaves].filter(([leaf]) => read && changed.includes(groupOf(leaf)))
      if (world.without === 'lower') for (const [leaf, v] of news) this.known.set(leaf, v)
      else raise(this.known, news)
    }
    for (const [group, v] of groups) this.#groups.set(group, v)
    raise(this.#learned, groups)
    return true
  }

  /** Learns what a worker of its node has committed, itself included. */
  learn({ leaves, groups }: { readonly leaves: Versions; readonly groups: Versions }): void {
    raise(this.known, leaves)
    const follows = ([group, v]: readonly [number, number]) => this.#learned.get(group) === v - 1
    raise(
      this.#learned,
      [...groups].filter((one) => this.#world.without === 'gap' || follows(one)),
    )
  }

  /** Over IPC. */
  *hear(message: Message): Process {
    const { without } = this.#world
    if (message.kind === 'learned') return this.believe(message.name, message.leaves)
    if (this.leaving && without !== 'leave') return
    if (without === 'before') this.#tell(message)
    if (this.#direct) this.learn(message)
    if (this.#direct && without === 'ipcfresh') this.began = this.#world.now
    if (without !== 'before') {
      if (this.#direct) this.#answer(message)
      else this.#asks.push(message)
    }
    yield* this.poll()
  }

  /** Reports the versions it has learned; those that only its own node has written then need no row. */
  #answer(ask: Written): void {
    const { without } = this.#world
    if (this.registration === undefined) return
    if (without !== 'bare' && !covers(this.known, ask.leaves)) {
      this.#asks.push(ask)
      return
    }
    this.#tell(ask)
    const next = (group: number, v: number) => this.#rows.get(group) === v - 1
    raise(
      this.#rows,
      [...ask.groups].filter(([group, v]) => without === 'skiprow' || next(group, v)),
    )
  }

  #tell({ leaves, writer, request }: Written): void {
    if (this.registration === undefined) return
    const { without } = this.#world
    const name = without === 'slot' ? this.slot : without === 'incarnation' ? this.incarnation : this.registration
    const said = without === 'number' ? new Map([[request, Number.POSITIVE_INFINITY]]) : leaves
    this.node.send(writer, { kind: 'learned', name, leaves: said })
  }

  /** Notes a fact that stays true, for every writer that waits. */
  believe(name: unknown, leaves: Versions): void {
    const facts = this.facts.get(name) ?? new Map<number, number>()
    this.facts.set(name, facts)
    raise(facts, leaves)
  }
}
