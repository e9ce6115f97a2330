import type { Engine } from '../../engine.ts'
import type { MaybePromise } from '../../route.ts'
import { compileSet, type MountRecord, type MountSet, recordOf } from './mount.ts'
import type { MountRows, MountState } from './rows.ts'

interface MountCacheOptions {
  readonly rows: MountRows
  readonly engines: ReadonlyMap<string, Engine>
  readonly builtin: readonly MountRecord[]
}

/**
 * The compiled set of mounts, never older than the last acknowledged change. A changed mount is reloaded by its engine
 * before any request sees the new set, and the engines drop their cache entries of a removed mount.
 */
export class MountCache {
  readonly #rows: MountRows
  readonly #engines: ReadonlyMap<string, Engine>
  readonly #builtin: readonly MountRecord[]
  readonly #compiled = new WeakMap<MountState, MountSet>()
  /** The set that the engines of this worker know, and the revision of each mount that they know. */
  #announced: { readonly state: MountState | undefined; readonly set: MountSet } | undefined
  readonly #revisions = new Map<string, number>()

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
      const set = this.#compile(state)
      const changed = set.all.filter(({ uuid, rev }) => rev !== (this.#revisions.get(uuid) ?? rev))
      for (const mount of changed) await this.#engines.get(mount.type)?.reload?.(mount)
      for (const { uuid, rev } of set.all) this.#revisions.set(uuid, rev)
      for (const uuid of this.#revisions.keys()) if (!set.byUuid.has(uuid)) this.#revisions.delete(uuid)
      for (const engine of this.#engines.values()) engine.retain?.(new Set(set.byUuid.keys()))
      this.#announced = { state, set }
      // The reloads took time, and the set may have changed again.
      if (changed.length === 0) return set
    }
  }

  #compile(state: MountState | undefined): MountSet {
    const known = state && this.#compiled.get(state)
    if (known) return known
    const records = Array.from(state?.members ?? [], ({ value }) => recordOf(value))
    const set = compileSet([...this.#builtin, ...records])
    if (state) this.#compiled.set(state, set)
    return set
  }
}
