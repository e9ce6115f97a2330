import { randomBytes, randomUUID } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Engine, Job } from '../engine.ts'
import { ApiError, badRequest } from '../errors.ts'
import type { MaybePromise, Mount } from '../route.ts'
import type { Database } from '../store/database.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import { LooseMounts } from './loosemounts.ts'
import {
  type Builtin,
  builtinRecord,
  compileSet,
  lookUp,
  type MountRecord,
  type MountRow,
  type MountSet,
  mountPath,
  mountsTable,
  recordOf,
} from './mount.ts'
import { type Remount, remountsTable } from './remounts.ts'
import { readTuning, retune } from './tuning.ts'

/** A mount to make; `config` as the caller sent it. */
export interface MountRequest {
  /** With or without slash at the end. */
  readonly path: string
  readonly type: string
  readonly description?: string | undefined
  readonly config?: unknown
  readonly options?: Readonly<Record<string, string>> | undefined
  readonly local?: boolean | undefined
  readonly sealWrap?: boolean | undefined
  /** False only at first initialisation: the first `enable` of the same type then takes the mount over. */
  readonly touched?: boolean
}

export interface MountsOptions {
  readonly database: Database
  /** By type. */
  readonly engines: ReadonlyMap<string, Engine>
  /** Mounts that always stand and are in no table: sys/, auth/token/. Paths end in a slash. */
  readonly builtin: readonly Builtin[]
  readonly clock: Clock
}

/** What is mounted where. Every read sees one verified set, never older than the last acknowledged change. */
export interface Mounts {
  /** The mount under which a canonical path lies. */
  find(path: string): MaybePromise<Mount | undefined>
  /** The mount of a uuid. */
  get(uuid: string): MaybePromise<Mount | undefined>
  /** All, built-in ones included, by path. */
  list(): Promise<readonly MountRecord[]>
  /** @throws {ApiError} 400 for a bad or taken path, an unknown type or a bad config */
  enable(request: MountRequest): Promise<void>
  /** Removes the mount and everything in it; nothing there is no error. */
  disable(path: string): Promise<void>
  /**
   * Changes settings; what is left out stays.
   * @throws {ApiError} 400 when there is no such mount, it always stands, or a setting is bad
   */
  tune(path: string, changes: TuneRequest): Promise<void>
  /**
   * Gives the mount another path; everything in it stays. When it resolves, every worker knows the new one alone.
   * @returns the id of the move
   * @throws {ApiError} 400 when there is no such mount, it always stands, or the new path is bad or taken
   */
  move(from: string, to: string): Promise<string>
  /** What a move was; undefined for an id that nobody was given. */
  moved(id: string): Promise<Remount | undefined>
  /** Has every worker call the engine's `reload` for these mounts before the next request in any of them. */
  reload(mounts: readonly MountRecord[]): Promise<void>
  /** Removes what a crash has left below mounts that were never made, or are gone. */
  readonly sweep: Job
}

/** What `tune` changes. */
export interface TuneRequest {
  readonly description?: string | undefined
  /** Added to those there are; an empty value takes one away. */
  readonly options?: Readonly<Record<string, string>> | undefined
  /** Converted values of `tunable` fields. */
  readonly config: Readonly<Record<string, unknown>>
}

/** The set has one entry in the cache, and one name to touch. */
const set = 'all'

/** Makes the empty set, once, at initialisation. */
export const createMountSet = (database: Database, tx: Transaction): Promise<void> => database.head('mounts').create(tx)

export function createMounts({ database, engines, builtin, clock }: MountsOptions): Mounts {
  const table = database.table(mountsTable)
  const head = database.head('mounts')
  const remounts = database.table(remountsTable)
  const loose = new LooseMounts({ database, clock, engines })
  const fixed = builtin.map(builtinRecord)

  /** All rows, verified against the head: a mount that was deleted from the database is noticed. */
  async function rowsOf(q: Reader): Promise<MountRow[]> {
    const rows: MountRow[] = []
    for (;;) {
      const page = await table.list(q, { namespace: '' }, { by: 'path', limit: pageSize, ...after(rows.at(-1)) })
      rows.push(...page)
      if (page.length < pageSize) break
    }
    await head.verify(q, rows)
    return rows
  }

  const cache = database.cache<MountSet>({
    table: 'mounts',
    limit: 1,
    load: async (q) => compileSet([...fixed, ...(await rowsOf(q)).map(recordOf)]),
  })
  /** What the engines of this worker have been told of, and the revisions they know of each mount. */
  let told: MountSet | undefined
  const knownRevs = new Map<string, number>()
  const current = (): MaybePromise<MountSet> => {
    const known = cache.peek(set)
    return known !== undefined && known === told ? known : load()
  }

  /** A mount of another revision is reloaded by its engine before anybody is let into the new set. */
  async function load(): Promise<MountSet> {
    for (;;) {
      const loaded = (await cache.get(set)) ?? compileSet(fixed)
      const changed = [...loaded.byPath.values()].filter(({ uuid, rev }) => rev !== (knownRevs.get(uuid) ?? rev))
      for (const mount of changed) await engines.get(mount.type)?.reload?.(mount)
      for (const { uuid, rev } of loaded.byPath.values()) knownRevs.set(uuid, rev)
      told = loaded
      // Telling took time, in which the set may have changed once more.
      if (changed.length === 0) return loaded
    }
  }

  /** The mount that stands in the way of a path: the same, above or below it. */
  const obstacle = <T extends { readonly path: string }>(mounts: Iterable<T>, path: string): T | undefined =>
    [...mounts].find((mount) => mount.path.startsWith(path) || path.startsWith(mount.path))

  async function write(tx: Transaction, rows: readonly MountRow[]): Promise<void> {
    await head.advance(tx, rows)
    tx.touch('mounts', set)
  }

  /** Changes one row, as `decide` says of the rows as they are, and the head with it. */
  function change(
    decide: (rows: readonly MountRow[], tx: Transaction) => MaybePromise<{ row: MountRow; changes: Partial<MountRow> }>,
  ): Promise<void> {
    return database.transaction(async (tx) => {
      const rows = await rowsOf(tx)
      const { row, changes } = await decide(rows, tx)
      const changed = await table.update(tx, row, changes)
      await write(
        tx,
        rows.map((one) => (one === row ? changed : one)),
      )
    })
  }

  /** A mount of the first initialisation that nobody has used yet is enabled once more, with the caller's settings. */
  async function adopt(standing: MountRecord, settings: Settings): Promise<void> {
    const untouched = (await engines.get(standing.type)?.pristine?.(standing)) ?? true
    if (!untouched) throw inUse(standing.path)
    await change((rows) => {
      const row = rows.find((one) => one.id === standing.uuid)
      if (row === undefined || row.touched) throw inUse(standing.path)
      return { row, changes: { ...settings, touched: true } }
    })
  }

  /** @throws {ApiError} 400 for a mount that always stands */
  function requireMovable(path: string, verb: string): void {
    if (fixed.some((mount) => mount.path === path)) throw badRequest(`cannot ${verb} "${path}"`)
  }

  return {
    sweep: loose.job,

    find(path) {
      const known = current()
      return known instanceof Promise ? known.then((loaded) => lookUp(loaded, path)) : lookUp(known, path)
    },

    get(uuid) {
      const known = current()
      return known instanceof Promise ? known.then(({ byUuid }) => byUuid.get(uuid)) : known.byUuid.get(uuid)
    },

    async list() {
      return [...(await current()).byPath.values()]
    },

    async enable(request) {
      const path = mountPath(request.path)
      const engine = engines.get(request.type)
      if (request.type === '') throw badRequest('backend type must be specified as a string')
      if (engine === undefined) throw badRequest(`plugin not found in the catalog: ${request.type.slice(0, 100)}`)
      const settings = settingsOf(request)
      const standing = obstacle((await current()).byPath.values(), path)
      if (standing && (standing.path !== path || standing.type !== request.type || standing.touched)) {
        throw inUse(standing.path)
      }
      if (standing) return adopt(standing, settings)

      const fresh = { ...settings, id: randomUUID(), path, type: request.type, touched: request.touched ?? true }
      const accessor = `${request.type}_${randomBytes(4).toString('hex')}`
      const mount: Mount = { uuid: fresh.id, path, type: request.type, config: settings.config }
      await loose.begin(mount)
      // What an engine keeps for every mount is there before anybody can reach the mount.
      await engine.onMount?.(mount)
      try {
        await database.transaction(async (tx) => {
          const rows = await rowsOf(tx)
          const taken = obstacle(rows, path)
          if (taken) throw inUse(taken.path)
          await loose.settle(tx, mount)
          await write(tx, [...rows, await table.insert(tx, { ...fresh, accessor, createdAt: clock.wall() })])
        })
      } catch (error) {
        // Only a refusal is certain to have mounted nothing; after a fault the outcome may be unknown.
        if (error instanceof ApiError && error.status === 400) await engine.onUnmount?.(mount)
        throw error
      }
    },

    async disable(name) {
      const path = withSlash(name)
      if (fixed.some((mount) => mount.path.startsWith(path))) throw badRequest(`cannot unmount "${path}"`)
      const gone = await database.transaction(async (tx) => {
        const rows = await rowsOf(tx)
        const row = rows.find((one) => one.path === path)
        if (row === undefined) return undefined
        await table.remove(tx, row)
        await loose.loosen(tx, recordOf(row))
        await write(
          tx,
          rows.filter((one) => one !== row),
        )
        return recordOf(row)
      })
      // No new request reaches the mount now, on any node. What one that had begun still adds is swept later.
      if (gone) await engines.get(gone.type)?.onUnmount?.(gone)
    },

    async tune(name, { description, options, config }) {
      const path = withSlash(name)
      requireMovable(path, 'tune')
      await change((rows) => {
        const row = rows.find((one) => one.path === path)
        if (row === undefined) throw badRequest(`tune of path "${path}" failed: no mount entry found`)
        const changes = {
          config: retune(row.config, config),
          touched: true,
          ...(description === undefined ? {} : { description }),
          ...(options === undefined ? {} : { options: merged(row.options, options) }),
        }
        return { row, changes }
      })
    },

    async move(from, to) {
      const [source, target] = [withSlash(from), mountPath(to)]
      requireMovable(source, 'remount')
      let id = ''
      await change(async (rows, tx) => {
        const row = rows.find((one) => one.path === source)
        if (row === undefined) throw badRequest(`no matching mount at "${source}"`)
        const others = source === target ? rows : rows.filter((one) => one !== row)
        const taken = obstacle(others, target)
        if (taken) throw badRequest(`path already in use at "${taken.path}"`)
        id = (await remounts.insert(tx, { mount: row.id, source, target, movedAt: clock.wall() })).id
        return { row, changes: { path: target, touched: true } }
      })
      return id
    },

    moved: (id) => database.read((q) => remounts.get(q, id)),

    async reload(mounts) {
      for (const { uuid } of mounts) {
        await change((rows) => {
          const row = rows.find((one) => one.id === uuid)
          if (row === undefined) throw badRequest('a mount was removed while it was reloaded')
          return { row, changes: {} }
        })
      }
    },
  }
}

const pageSize = 500
const after = (row: MountRow | undefined) => (row === undefined ? {} : { after: row.path })
const withSlash = (path: string) => (path.endsWith('/') ? path : `${path}/`)
const inUse = (path: string) => badRequest(`path is already in use at ${path}`)

type Settings = Pick<MountRow, 'description' | 'config' | 'options' | 'local' | 'sealWrap'>

const settingsOf = (request: MountRequest): Settings => ({
  description: request.description ?? '',
  config: readTuning(request.config),
  options: request.options ?? null,
  local: request.local ?? false,
  sealWrap: request.sealWrap ?? false,
})

function merged(before: MountRow['options'], given: Readonly<Record<string, string>>): MountRow['options'] {
  const entries = Object.entries({ ...before, ...given }).filter(([, value]) => value !== '')
  return entries.length === 0 ? null : Object.fromEntries(entries)
}
