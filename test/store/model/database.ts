/** A worker's registration; compared by identity. */
export interface Registration {
  readonly node: number
  readonly slot: number
  readonly incarnation: number
  /** The log that the worker reads before each use of its cache, if it has one: its node's. */
  readonly log: number | undefined
}

/** A stored object: every write to it has the next number. */
export interface Stored {
  readonly seq: number
  readonly present: boolean
}

export type Versions = ReadonlyMap<number, number>

/** The committed state. Never changed in place: a frozen database node keeps the state it has. */
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

/** A cached value that is made of two names. */
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

/** Raises the versions in `known` to those of `news`, and lowers none. */
export function raise(known: Map<number, number>, news: Iterable<readonly [number, number]>): void {
  for (const [place, v] of news) known.set(place, Math.max(v, known.get(place) ?? -1))
}

export const covers = (known: Versions | undefined, wanted: Versions): boolean =>
  [...wanted].every(([place, v]) => (known?.get(place) ?? -1) >= v)
