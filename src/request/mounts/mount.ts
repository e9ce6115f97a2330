import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import { mapOf, orNull } from '../../answers.ts'
import { badRequest } from '../../errors.ts'
import type { Mount } from '../../route.ts'
import { column, defineTable, type Row } from '../../store/table.ts'
import { readTuning, type Tuning, tuningAnswer } from './tuning.ts'

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
    /** False for a mount of the first initialisation until it is enabled explicitly. */
    touched: column.boolean(),
    createdAt: column.integer(),
  },
  { sealed: true },
)

export type MountRow = Row<typeof mountsTable>

/** A mount with the fields of listings. */
export interface MountRecord extends Mount {
  readonly description: string
  readonly accessor: string
  readonly options: Readonly<Record<string, string>> | null
  readonly local: boolean
  readonly sealWrap: boolean
  readonly touched: boolean
  /** The row's rev: grows with every change of the mount. */
  readonly rev: number
}

/** A mount that is in no table; `path` ends in a slash. */
export interface Builtin {
  readonly path: string
  readonly type: string
  readonly description: string
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
      'each part of a mount path begins with a letter, a digit or _ and continues with these and - . @ ~; 200 characters at most',
    )
  }
  if (path.endsWith('/tune'))
    throw badRequest('a mount path must not end in "/tune", which names the settings of a mount')
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

/** A mount that always exists and is in no table. */
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

/** The members of describeMount. */
export const mountAnswer = {
  accessor: Type.String(),
  config: Type.Object(tuningAnswer),
  /** Engines alone: what is always mounted is no plugin. */
  deprecation_status: Type.Optional(Type.String()),
  description: Type.String(),
  external_entropy_access: Type.Boolean(),
  local: Type.Boolean(),
  options: orNull(mapOf(Type.String())),
  plugin_version: Type.String(),
  running_plugin_version: Type.String(),
  running_sha256: Type.String(),
  seal_wrap: Type.Boolean(),
  type: Type.String(),
  uuid: Type.String(),
}

/** A mount as sys/mounts shows it. */
export const describeMount = (mount: MountRecord): Readonly<Record<string, unknown>> => ({
  accessor: mount.accessor,
  config: mount.config,
  ...(mount.uuid === '' ? {} : { deprecation_status: 'supported' }),
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
