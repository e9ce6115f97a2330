import type { Engine } from '../../engine.ts'
import type { MaybePromise } from '../../route.ts'
import type { SortedList } from '../../store/sortedlist.ts'
import type { MountRecord } from './mount.ts'
import { MountSet } from './mountset.ts'
import type { MountRows, MountState } from './rows.ts'

interface MountCacheOptions {
  readonly rows: MountRows
  readonly engines: ReadonlyMap<string, Engine>
  readonly builtin: SortedList<MountRecord>
}

/** The set that the engines of this worker know. */
interface Announced {
  readonly state: MountState | undefined
  readonly set: MountSet
}

/**
 * The set of mounts, never older than the last acknowledged change. A changed mount is reloaded by its engine before any
 * request sees the new set, and the engines drop their cache entries of a removed mount.
 */
export class MountCache {
  readonly #rows: MountRows
  readonly #engines: ReadonlyMap<string, Engine>
  readonly #builtin: SortedList<MountRecord>
  #announced: Announced | undefined

  constructor({ rows, engines, builtin }: MountCacheOptions) {
    this.#rows = rows
    this.#engines = engines
    this.#builtin = builtin
  }

  /** The set, if it may be used at this very moment. */
  get loaded(): MountSet | undefined {
    const state = this.#rows.peek()
    return state !== undefined && state === this.#announced?.state ? this.#announced.set : undefined
  }

  get current(): MaybePromise<MountSet> {
    return this.loaded ?? this.#load()
  }

  async #load(): Promise<MountSet> {
    for (;;) {
      const state = await this.#rows.get()
      const set = new MountSet(this.#builtin, state)
      const changed = changedMounts(this.#announced?.state, state).flatMap((uuid) => set.get(uuid) ?? [])
      for (const mount of changed) await this.#engines.get(mount.type)?.reload?.(mount)
      for (const engine of this.#engines.values()) engine.retain?.(set)
      this.#announced = { state, set }
      // The reloads took time, and the set may have changed again.
      if (changed.length === 0) return set
    }
  }
}

/** The uuids of mounts that were there before, in another revision. Only chunks that the two sets do not share are met. */
function changedMounts(before: MountState | undefined, now: MountState | undefined): string[] {
  const shared = new Set(before?.members.chunks)
  const others = now?.members.chunks.filter((chunk) => !shared.has(chunk)) ?? []
  return others.flat().flatMap(({ id, rev }) => ((before?.members.get(id)?.rev ?? rev) === rev ? [] : [id]))
}
