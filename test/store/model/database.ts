import type { Run } from './run.ts'

/** A worker's registration; compared by identity. */
export interface Registration {
  readonly node: number
  readonly slot: number
  readonly incarnation: number
}

/** A stored object: every write to it has the next number. */
export interface Stored {
  readonly seq: number
  readonly present: boolean
}

export type Versions = ReadonlyMap<number, number>

/** What is committed. Never changed in place: a frozen database node keeps the state it has. */
export interface State {
  readonly objects: ReadonlyMap<string, Stored>
  readonly leaves: Versions
  readonly groups: Versions
  /** Whether each is condemned. */
  readonly registrations: ReadonlyMap<Registration, boolean>
  readonly acks: ReadonlyMap<Registration, Versions>
}

export const leavesOfGroup = 2
export const groupOf = (leaf: number): number => Math.floor(leaf / leavesOfGroup)
const allLeaves = [0, 1, 2, 3, 4, 5]

/** Something cached that is made of two names. */
export const set = 'set'
export const partsOf = (object: string): readonly string[] => (object === set ? ['n0', 'n2'] : [object])
const setLeaf = 4
/** May be deleted and created again; ids (`i7`, `i8`, …) are used once. */
export const names = ['n0', 'n1', 'n2', 'n3', 'n4', 'n5']
const leafOfName = [0, 1, 2, 3, 0, 5]

export function leafOf(object: string): number {
  if (object === set) return setLeaf
  const number = Number(object.slice(1))
  return object.startsWith('i') ? number % 4 : (leafOfName[number] ?? 0)
}

/** The leaves that a write to `object` increments. */
export const touchedBy = (object: string): number[] =>
  partsOf(set).includes(object) ? [leafOf(object), setLeaf] : [leafOf(object)]

export const emptyState = (): State => ({
  objects: new Map(),
  leaves: new Map(allLeaves.map((leaf) => [leaf, 0])),
  groups: new Map([0, 1, 2].map((group) => [group, 0])),
  registrations: new Map(),
  acks: new Map(),
})

/** Raises what `known` holds to `news`, and lowers nothing. */
export function raise(known: Map<number, number>, news: Iterable<readonly [number, number]>): void {
  for (const [place, v] of news) known.set(place, Math.max(v, known.get(place) ?? -1))
}

export const covers = (known: Versions | undefined, wanted: Versions): boolean =>
  [...wanted].every(([place, v]) => (known?.get(place) ?? -1) >= v)

/** A node of the database. Cut off it answers nothing, frozen it answers from an old state. */
export class Copy {
  mode: 'live' | 'cut off' | 'frozen' = 'live'
  state: State
  readonly #run: Run

  constructor(run: Run) {
    this.#run = run
    this.state = run.database
  }

  /** A causal statement, and whether the node says that it takes writes. */
  read(): { state: State | undefined; live: boolean } {
    if (this.mode === 'live') this.state = this.#run.database
    return { state: this.mode === 'cut off' ? undefined : this.state, live: this.mode === 'live' }
  }

  *freezing(): Generator<number, void> {
    const run = this.#run
    for (;;) {
      yield run.between(5, 80) * Math.sqrt(run.calm)
      if (run.copies.filter(({ mode }) => mode === 'live').length < 2) continue
      if (run.chance(0.5)) {
        this.mode = 'cut off'
        yield run.between(0, 4)
      } else this.state = run.database
      this.mode = 'frozen'
      yield run.chance(0.4) ? run.between(0.5, 4) : run.between(1, 40)
      this.mode = 'live'
    }
  }
}

/** A connection; a new one may lead to another node. */
export class Line {
  copy: Copy
  /** Whether the node took writes at the connection's last use. */
  tookWrites = false
  readonly #run: Run

  constructor(run: Run) {
    this.#run = run
    this.copy = run.choice(run.copies)
  }

  move(): void {
    if (this.#run.without === 'leaseone') return
    this.copy = this.#run.choice(this.#run.copies)
    this.tookWrites = false
  }
}
