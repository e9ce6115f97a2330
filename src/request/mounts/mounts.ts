import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { after } from '../../after.ts'
import type { Clock } from '../../clock.ts'
import type { Engine } from '../../engine.ts'
import { badRequest } from '../../errors.ts'
import type { Job } from '../../job.ts'
import type { MaybePromise, Mount } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { SortedList } from '../../store/sortedlist.ts'
import { MountCache } from './cache.ts'
import { LooseMounts } from './loose.ts'
import { type Builtin, builtinRecord, type MountRecord, mountPath, recordOf } from './mount.ts'
import { MountSet } from './mountset.ts'
import { mountsByPath, overlapping } from './overlap.ts'
import { type Remount, remountRetention, remountsTable } from './remounts.ts'
import { MountRows } from './rows.ts'
import { type MountRequest, type MountSettings, settingsOf, type TuneRequest, tunedSettings } from './settings.ts'

export interface MountsOptions {
  readonly database: Database
  /** By type. */
  readonly engines: ReadonlyMap<string, Engine>
  /** Mounts that always exist and are in no table: sys/, auth/token/. Paths end in a slash. */
  readonly builtin: readonly Builtin[]
  readonly clock: Clock
}

/** The mounts of a cluster: every read sees one verified set, never older than the last acknowledged change. */
export class Mounts {
  /** Forgets old moves. */
  readonly retention: Job
  readonly #options: MountsOptions
  readonly #builtin: SortedList<MountRecord>
  readonly #builtinSet: MountSet
  readonly #rows: MountRows
  readonly #cache: MountCache
  readonly #loose: LooseMounts

  constructor(options: MountsOptions) {
    const { database, engines, builtin } = options
    this.#options = options
    this.retention = remountRetention(options)
    this.#builtin = mountsByPath(builtin.map(builtinRecord))
    this.#builtinSet = new MountSet(this.#builtin)
    this.#rows = new MountRows({ database, clock: options.clock })
    this.#cache = new MountCache({ rows: this.#rows, engines, builtin: this.#builtin })
    this.#loose = new LooseMounts(options)
  }

  /** Removes the data of removed mounts. */
  get sweep(): Job {
    return this.#loose.job
  }

  /** The mount of a canonical path; a built-in one is found even while the database is out of reach. */
  find(path: string): MaybePromise<Mount | undefined> {
    const { loaded } = this.#cache
    if (loaded !== undefined) return loaded.lookUp(path)
    return this.#builtinSet.lookUp(path) ?? after(this.#cache.current, (set) => set.lookUp(path))
  }

  /** The mount of a uuid. */
  get(uuid: string): MaybePromise<Mount | undefined> {
    return after(this.#cache.current, (set) => set.get(uuid))
  }

  /** Whether a mount was removed and some of its rows may still exist. */
  removed(uuid: string): MaybePromise<boolean> {
    return after(this.#cache.current, (set) => !set.has(uuid) && this.#loose.holds(uuid))
  }

  /** The mount of just this path, which ends in a slash; a built-in one, too. */
  at(path: string): MaybePromise<MountRecord | undefined> {
    return after(this.#cache.current, (set) => set.at(path))
  }

  /** All, built-in ones included, by path. */
  async list(): Promise<readonly MountRecord[]> {
    return (await this.#cache.current).list()
  }

  /** All but the built-in ones, as a transaction sees them. */
  async stored(q: Reader): Promise<readonly MountRecord[]> {
    return (await this.#rows.list(q)).map(recordOf)
  }

  /** @throws {ApiError} 400 for a bad or taken path, an unknown type or a bad config */
  async enable(request: MountRequest): Promise<void> {
    const path = mountPath(request.path)
    const engine = this.#engineOf(request.type)
    const settings = settingsOf(request)
    const builtin = overlapping(this.#builtin, path)
    if (builtin) throw inUse(builtin.path)
    const standing = await this.#add(request, path, settings, engine)
    if (standing === undefined) return
    if (standing.path !== path || standing.type !== request.type || standing.touched) throw inUse(standing.path)
    await this.#adopt(standing, settings, engine)
  }

  /**
   * Removes the mount; a missing one is not an error. When this resolves no request reaches it, on any node, and its
   * path is free. A job removes its contents.
   */
  async disable(name: string): Promise<void> {
    const path = withSlash(name)
    if (this.#builtin.from(path)?.path.startsWith(path)) throw badRequest(`cannot unmount "${path}"`)
    await this.#rows.change((edit) => {
      const row = edit.byPath.get(path)
      if (row === undefined) return edit.outlive()
      edit.remove(row, (tx) => this.#loose.loosen(tx, recordOf(row)))
    })
  }

  /**
   * Changes settings; absent fields stay unchanged.
   * @throws {ApiError} 400 when the mount does not exist, is built in, or a setting is invalid
   */
  async tune(name: string, request: TuneRequest): Promise<void> {
    const path = withSlash(name)
    this.#refuseBuiltin(path, 'tune')
    await this.#rows.change((edit) => {
      const row = edit.byPath.get(path)
      if (row === undefined) throw badRequest(`tune of path "${path}" failed: no mount entry found`)
      edit.update(row, { ...tunedSettings(row, request), touched: true })
    })
  }

  /**
   * Gives the mount another path; its contents stay. When this resolves, every worker knows only the new path.
   * @returns the id of the move
   * @throws {ApiError} 400 when the mount does not exist, is built in, or the new path is invalid or taken
   */
  async move(from: string, to: string): Promise<string> {
    const { database, clock } = this.#options
    const [source, target] = [withSlash(from), mountPath(to)]
    this.#refuseBuiltin(source, 'remount')
    const id = randomUUIDv7()
    await this.#rows.change((edit) => {
      const { byPath } = edit
      const row = byPath.get(source)
      if (row === undefined) throw badRequest(`no matching mount at "${source}"`)
      const taken = overlapping(source === target ? byPath : byPath.changed([source], []), target)
      if (taken) throw badRequest(`path already in use at "${taken.path}"`)
      const remount = { id, mount: row.id, source, target, movedAt: clock.wall() }
      edit.update(row, { path: target, touched: true }, (tx) => database.table(remountsTable).insert(tx, remount))
    })
    return id
  }

  /** A move by its id, if there was one. */
  findRemount(id: string): Promise<Remount | undefined> {
    const { database } = this.#options
    return database.read((q) => database.table(remountsTable).get(q, id))
  }

  /** Has every worker call the engine's `reload` for these mounts before the next request in any of them. */
  async reload(mounts: readonly MountRecord[]): Promise<void> {
    for (const { uuid } of mounts) {
      await this.#rows.change((edit) => {
        const row = edit.get(uuid)
        if (row === undefined) throw badRequest('a mount was removed while it was reloaded')
        edit.update(row, {})
      })
    }
  }

  /** Makes a mount. @returns the one that is in its way, if there is one */
  #add(
    { type, touched = true }: MountRequest,
    path: string,
    settings: MountSettings,
    engine: Engine,
  ): Promise<MountRecord | undefined> {
    const createdAt = this.#options.clock.wall()
    const mount = { uuid: randomUUIDv7(), path, type, config: settings.config }
    return this.#rows.change((edit) => {
      const taken = overlapping(edit.byPath, path)
      if (taken) return recordOf(taken)
      // As short as clients expect them: of thousands two may be the same, and the attempt after that makes others.
      const accessor = `${type}_${randomBytes(4).toString('hex')}`
      const row = { ...settings, id: mount.uuid, path, type, accessor, touched, createdAt }
      edit.insert(row, (tx) => engine.onMount?.(mount, tx))
      return undefined
    })
  }

  /** Enables an unused mount of the first initialisation again, with the caller's settings. */
  async #adopt(standing: Mount, settings: MountSettings, engine: Engine): Promise<void> {
    const pristine = (await engine.pristine?.(standing)) ?? true
    if (!pristine) throw inUse(standing.path)
    await this.#rows.change((edit) => {
      const row = edit.get(standing.uuid)
      if (row === undefined || row.touched) throw inUse(standing.path)
      edit.update(row, { ...settings, touched: true })
    })
  }

  #engineOf(type: string): Engine {
    if (type === '') throw badRequest('backend type must be specified as a string')
    const engine = this.#options.engines.get(type)
    if (engine === undefined) throw badRequest(`plugin not found in the catalog: ${type.slice(0, 100)}`)
    return engine
  }

  #refuseBuiltin(path: string, verb: string): void {
    if (this.#builtin.get(path)) throw badRequest(`cannot ${verb} "${path}"`)
  }
}

const withSlash = (path: string) => (path.endsWith('/') ? path : `${path}/`)
const inUse = (path: string) => badRequest(`path is already in use at ${path}`)
