import type { Engine } from '../../engine.ts'
import type { MaybePromise } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import { compileSet, type MountRecord, type MountSet, recordOf } from './mount.ts'
import { type MountRows, wholeSet } from './rows.ts'

/**
 * The compiled set of mounts, never older than the last acknowledged change. A changed mount is reloaded by its engine
 * before any request sees the new set, and the engines drop their cache entries of a removed mount.
 */
export class MountCache {
  readonly #engines: ReadonlyMap<string, Engine>
  readonly #builtin: readonly MountRecord[]
  readonly #cache
  /** The set that the engines of this worker know, and the revision of each mount that they know. */
  #announced: MountSet | undefined
  readonly #revisions = new Map<string, number>()

  constructor(
    database: Database,
    {
      rows,
      engines,
      builtin,
    }: { rows: MountRows; engines: ReadonlyMap<string, Engine>; builtin: readonly MountRecord[] },
  ) {
    this.#engines = engines
    this.#builtin = builtin
    this.#cache = database.cache<MountSet>({
      table: 'mounts',
      limit: 1,
      load: async (q) => compileSet([...builtin, ...(await rows.list(q)).map(recordOf)]),
    })
  }

  /** The set, if it may be used at this very moment. */
  get loaded(): MountSet | undefined {
    const cached = this.#cache.peek(wholeSet)
    return cached === this.#announced ? cached : undefined
  }

  get current(): MaybePromise<MountSet> {
    return this.loaded ?? this.#load()
  }

  async #load(): Promise<MountSet> {
    for (;;) {
      const set = (await this.#cache.get(wholeSet)) ?? compileSet(this.#builtin)
      const records = [...set.byPath.values()]
      const changed = records.filter(({ uuid, rev }) => rev !== (this.#revisions.get(uuid) ?? rev))
      for (const mount of changed) await this.#engines.get(mount.type)?.reload?.(mount)
      for (const { uuid, rev } of records) this.#revisions.set(uuid, rev)
      for (const uuid of this.#revisions.keys()) if (!set.byUuid.has(uuid)) this.#revisions.delete(uuid)
      for (const engine of this.#engines.values()) engine.retain?.(new Set(set.byUuid.keys()))
      this.#announced = set
      // The reloads took time, and the set may have changed again.
      if (changed.length === 0) return set
    }
  }
}
