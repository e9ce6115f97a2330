import { createHash } from 'node:crypto'
import { badRequest } from '../../errors.ts'
import type { Mount } from '../../route.ts'
import { column, defineTable, type Row } from '../../store/table.ts'
import { readTuning, type Tuning } from './tuning.ts'

export const mountsTable = defineTable(
  'mounts',
  {
    path: column.text(),
    type: column.text(),
    description: column.text(),
    accessor: column.text(),
    config: column.json<Tuning>(),
    options: column.json<Readonly<Record<string, string>>>().nullable(),
    local: column.boolean(),
    sealWrap: column.boolean(),
    /** False for a mount of the first initialisation until somebody enables it himself. */
    touched: column.boolean(),
    createdAt: column.integer(),
  },
  { sealed: true },
)

export type MountRow = Row<typeof mountsTable>

/** A mount with what listings show of it. */
export interface MountRecord extends Mount {
  readonly description: string
  readonly accessor: string
  readonly options: Readonly<Record<string, string>> | null
  readonly local: boolean
  readonly sealWrap: boolean
  readonly touched: boolean
  /** Of the row: grows with every change of the mount. */
  readonly rev: number
}

/** Path with its slash. */
export interface Builtin {
  readonly path: string
  readonly type: string
  readonly description: string
}

/** Mounts compiled for looking up. */
export interface MountSet {
  readonly byPath: ReadonlyMap<string, MountRecord>
  /** Those of the table; built-in ones have no uuid. */
  readonly byUuid: ReadonlyMap<string, MountRecord>
  /** Segments of the longest path. */
  readonly depth: number
}

/** First segments that belong to the server. */
const reserved: ReadonlySet<string> = new Set(['v1', 'ui', 'sys', 'auth', 'certs', 'cubbyhole', 'identity'])

/**
 * The path of a new mount, with its slash.
 * @throws {ApiError} 400 for a name that is reserved or could be read as a pattern
 */
export function mountPath(name: string): string {
  const path = name.replace(/\/$/, '')
  if (!/^\w[\w.@~-]*(?:\/\w[\w.@~-]*)*$/.test(path) || path.length > 200) {
    throw badRequest(
      'the parts of a mount path begin with a letter, a digit or _ and go on with these and - . @ ~; 200 characters at most',
    )
  }
  if (path.endsWith('/tune'))
    throw badRequest('a mount path must not end in "/tune", which is how its settings are named')
  const [first = ''] = path.split('/')
  if (reserved.has(first)) throw badRequest(`mount paths that begin with "${first}/" are reserved`)
  return `${path}/`
}

/** A row as listings and engines see it. */
export const recordOf = (row: MountRow): MountRecord => ({
  uuid: row.id,
  path: row.path,
  type: row.type,
  config: row.config,
  description: row.description,
  accessor: row.accessor,
  options: row.options,
  local: row.local,
  sealWrap: row.sealWrap,
  touched: row.touched,
  rev: row.rev,
})

/** A mount that always stands and is in no table. */
export const builtinRecord = (mount: Builtin): MountRecord => ({
  ...mount,
  uuid: '',
  config: readTuning(undefined),
  accessor: `${mount.type}_${createHash('sha256').update(mount.path).digest('hex').slice(0, 8)}`,
  options: null,
  local: false,
  sealWrap: false,
  touched: true,
  rev: 0,
})

/** Prepares a set of mounts for looking up; listings keep its order, which is by path. */
export function compileSet(records: readonly MountRecord[]): MountSet {
  const sorted = records.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  return {
    byPath: new Map(sorted.map((record) => [record.path, record])),
    byUuid: new Map(sorted.map((record) => [record.uuid, record])),
    depth: Math.max(...sorted.map((record) => record.path.split('/').length - 1)),
  }
}

/** The longest mounted prefix, a Map access for each segment that can matter. */
export function lookUp({ byPath, depth }: MountSet, path: string): Mount | undefined {
  const directory = `${path}/`
  let found: Mount | undefined
  let slash = -1
  for (let level = 0; level < depth; level++) {
    slash = directory.indexOf('/', slash + 1)
    if (slash < 0) break
    found = byPath.get(directory.slice(0, slash + 1)) ?? found
  }
  return found
}

/** A mount as sys/mounts shows it. */
export const describeMount = (mount: MountRecord): Readonly<Record<string, unknown>> => ({
  accessor: mount.accessor,
  config: mount.config,
  deprecation_status: 'supported',
  description: mount.description,
  external_entropy_access: false,
  local: mount.local,
  options: mount.options,
  plugin_version: '',
  running_plugin_version: '',
  running_sha256: '',
  seal_wrap: mount.sealWrap,
  type: mount.type,
  uuid: mount.uuid,
})
