import { randomBytes, randomUUID } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Engine } from '../engine.ts'
import { ApiError, badRequest } from '../errors.ts'
import type { MaybePromise, Mount } from '../route.ts'
import type { Database } from '../store/database.ts'
import type { Reader, Transaction } from '../store/reader.ts'
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
import { readTuning } from './tuning.ts'

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
  /** All, built-in ones included, by path. */
  list(): Promise<readonly MountRecord[]>
  /** @throws {ApiError} 400 for a bad or taken path, an unknown type or a bad config */
  enable(request: MountRequest): Promise<void>
  /** Removes the mount and everything in it; nothing there is no error. */
  disable(path: string): Promise<void>
}

/** The set has one entry in the cache, and one name to touch. */
const set = 'all'

/** Makes the empty set, once, at initialisation. */
export const createMountSet = (database: Database, tx: Transaction): Promise<void> => database.head('mounts').create(tx)

export function createMounts({ database, engines, builtin, clock }: MountsOptions): Mounts {
  const table = database.table(mountsTable)
  const head = database.head('mounts')
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
  const current = (): MaybePromise<MountSet> => {
    const known = cache.peek(set)
    return known ?? Promise.resolve(cache.get(set)).then((loaded) => loaded ?? compileSet(fixed))
  }

  /** The mount that stands in the way of a path: the same, above or below it. */
  const obstacle = <T extends { readonly path: string }>(mounts: Iterable<T>, path: string): T | undefined =>
    [...mounts].find((mount) => mount.path.startsWith(path) || path.startsWith(mount.path))

  async function write(tx: Transaction, rows: readonly MountRow[]): Promise<void> {
    await head.advance(tx, rows)
    tx.touch('mounts', set)
  }

  /** A mount of the first initialisation that nobody has used yet is enabled once more, with the caller's settings. */
  async function adopt(standing: MountRecord, changes: Settings): Promise<void> {
    const untouched = (await engines.get(standing.type)?.pristine?.(standing)) ?? true
    if (!untouched) throw inUse(standing.path)
    await database.transaction(async (tx) => {
      const rows = await rowsOf(tx)
      const row = rows.find((one) => one.id === standing.uuid)
      if (row === undefined || row.touched) throw inUse(standing.path)
      const changed = await table.update(tx, row, { ...changes, touched: true })
      await write(
        tx,
        rows.map((one) => (one === row ? changed : one)),
      )
    })
  }

  return {
    find(path) {
      const known = current()
      return known instanceof Promise ? known.then((loaded) => lookUp(loaded, path)) : lookUp(known, path)
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
      // What an engine keeps for every mount is there before anybody can reach the mount.
      await engine.onMount?.(mount)
      try {
        await database.transaction(async (tx) => {
          const rows = await rowsOf(tx)
          const taken = obstacle(rows, path)
          if (taken) throw inUse(taken.path)
          await write(tx, [...rows, await table.insert(tx, { ...fresh, accessor, createdAt: clock.wall() })])
        })
      } catch (error) {
        // Only a refusal is certain to have mounted nothing; after a fault the outcome may be unknown.
        if (error instanceof ApiError && error.status === 400) await engine.onUnmount?.(mount)
        throw error
      }
    },

    async disable(name) {
      const path = name.endsWith('/') ? name : `${name}/`
      if (fixed.some((mount) => mount.path.startsWith(path))) throw badRequest(`cannot unmount "${path}"`)
      const gone = await database.transaction(async (tx) => {
        const rows = await rowsOf(tx)
        const row = rows.find((one) => one.path === path)
        if (row === undefined) return undefined
        await table.remove(tx, row)
        await write(
          tx,
          rows.filter((one) => one !== row),
        )
        return recordOf(row)
      })
      // No new request reaches the mount now, on any node. What one that had begun still adds hangs on a dead uuid.
      if (gone) await engines.get(gone.type)?.onUnmount?.(gone)
    },
  }
}

const pageSize = 500
const after = (row: MountRow | undefined) => (row === undefined ? {} : { after: row.path })
const inUse = (path: string) => badRequest(`path is already in use at ${path}`)

type Settings = Pick<MountRow, 'description' | 'config' | 'options' | 'local' | 'sealWrap'>

const settingsOf = (request: MountRequest): Settings => ({
  description: request.description ?? '',
  config: readTuning(request.config),
  options: request.options ?? null,
  local: request.local ?? false,
  sealWrap: request.sealWrap ?? false,
})
