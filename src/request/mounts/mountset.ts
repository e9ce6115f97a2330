import type { Mount } from '../../route.ts'
import type { SortedList } from '../../store/sortedlist.ts'
import { type MountRecord, type MountRow, recordOf } from './mount.ts'
import { mountsByPath } from './overlap.ts'
import type { MountState } from './rows.ts'

/** Of rows: a set that differs in one mount makes one record. */
const records = new WeakMap<MountRow, MountRecord>()

function known(row: MountRow): MountRecord {
  const record = records.get(row) ?? recordOf(row)
  records.set(row, record)
  return record
}

/** Of lists that share chunks, each chunk is looked at once. */
const depths = new WeakMap<readonly MountRow[], number>()

function depthOf(chunk: readonly MountRow[]): number {
  const depth = depths.get(chunk) ?? deepest(chunk)
  depths.set(chunk, depth)
  return depth
}

const deepest = (mounts: Iterable<{ readonly path: string }>): number =>
  Math.max(0, ...Array.from(mounts, ({ path }) => path.split('/').length - 1))

/** Mounts for look-ups. */
export class MountSet {
  readonly #builtin: ReadonlyMap<string, MountRecord>
  readonly #state: MountState | undefined
  /** Segments of the longest path. */
  readonly #depth: number
  /** Those that were looked up. */
  readonly #byPath = new Map<string, MountRecord>()
  #all: readonly MountRecord[] | undefined

  constructor(builtin: SortedList<MountRecord>, state?: MountState) {
    this.#builtin = new Map(Array.from(builtin, (record) => [record.path, record]))
    this.#state = state
    this.#depth = Math.max(deepest(builtin), ...(state?.values.chunks.map(depthOf) ?? []))
  }

  /** All, by path: the same list each time. */
  list(): readonly MountRecord[] {
    this.#all ??= [...mountsByPath([...this.#builtin.values(), ...Array.from(this.#state?.values ?? [], known)])]
    return this.#all
  }

  /** The mount of just this path, which ends in a slash. */
  at(path: string): MountRecord | undefined {
    const found = this.#byPath.get(path) ?? this.#find(path)
    if (found !== undefined) this.#byPath.set(path, found)
    return found
  }

  #find(path: string): MountRecord | undefined {
    const row = this.#state?.values.get(path)
    return row ? known(row) : this.#builtin.get(path)
  }

  /** The mount of a uuid; built-in ones have none. */
  get(uuid: string): MountRecord | undefined {
    const row = this.#state?.members.get(uuid)?.value
    return row && known(row)
  }

  has(uuid: string): boolean {
    return this.#state?.members.get(uuid) !== undefined
  }

  /** The longest mounted prefix, found by one look-up per segment up to the depth of the set. */
  lookUp(path: string): Mount | undefined {
    const directory = `${path}/`
    let found: Mount | undefined
    let slash = -1
    for (let level = 0; level < this.#depth; level++) {
      slash = directory.indexOf('/', slash + 1)
      if (slash < 0) break
      found = this.at(directory.slice(0, slash + 1)) ?? found
    }
    return found
  }
}
