import { randomBytes, randomUUID } from 'node:crypto'
import { createPool, type Pool, type PoolConnection } from 'mysql2/promise'
import type { Change } from './change.ts'
import type { Step } from './drive.ts'
import type { Footprint, StoredRow, Value } from './footprint.ts'
import type { Objects } from './objects.ts'

export interface MinimalOptions {
  readonly socket: string
  readonly schema: string
  readonly clients: number
  readonly change: Change
  readonly footprint: Footprint
  readonly objects: Objects
}

/** Columns that no two rows may share. */
const names = ['name', 'path', 'accessor', 'lease_id']
/** Columns that name a row. */
const references = ['id', 'owner', 'key_id', 'material', 'hmac_material', 'prk_material']

/**
 * The same token calls and the same rows in one plain transaction: no seals, no coherence, no policy, no HTTP. The rows
 * go into copies of the tables, with their indexes. A row that a change replaces is each client's own, but for heads of
 * sets.
 */
export class MinimalChange implements AsyncDisposable {
  readonly #options: MinimalOptions
  readonly #pool: Pool
  readonly #own: StoredRow[][] = []

  private constructor(options: MinimalOptions) {
    const { socket, schema, clients } = options
    this.#options = options
    this.#pool = createPool({ socketPath: socket, user: 'root', database: schema, connectionLimit: clients })
  }

  static async prepare(options: MinimalOptions): Promise<MinimalChange> {
    const minimal = new MinimalChange(options)
    await minimal.#prepare()
    return minimal
  }

  readonly step: Step = async (client) => {
    const { change, footprint, objects } = this.#options
    change.token(objects)
    const ids = new Map(footprint.inserted.map(({ values }) => [String(values.id), randomUUID() as string]))
    const fresh = footprint.inserted.map((row) => renamed(row, ids))
    await this.#transaction(async (connection) => {
      for (const row of fresh) await insert(connection, row)
      for (const row of this.#own[client] ?? []) await replace(connection, row)
    })
    if (change.undoes) {
      await this.#transaction(async (connection) => {
        for (const row of fresh) await remove(connection, row)
      })
    }
  }

  async #prepare(): Promise<void> {
    const { clients, footprint } = this.#options
    const { inserted, updated } = footprint
    const connection = await this.#pool.getConnection()
    for (const table of new Set([...inserted, ...updated].map((row) => row.table))) {
      await connection.query(`DROP TABLE IF EXISTS \`minimal_${table}\``)
      await connection.query(`CREATE TABLE \`minimal_${table}\` LIKE \`${table}\``)
    }
    const shared = updated.filter(({ table }) => table === 'heads')
    for (const row of shared) await insert(connection, row)
    for (let client = 0; client < clients; client++) {
      const own = updated.filter(({ table }) => table !== 'heads').map((row) => renamed(row, new Map()))
      for (const row of own) await insert(connection, row)
      this.#own[client] = [...own, ...shared]
    }
    connection.release()
  }

  async #transaction(work: (connection: PoolConnection) => Promise<void>): Promise<void> {
    const connection = await this.#pool.getConnection()
    try {
      await connection.query('START TRANSACTION')
      await work(connection)
      await connection.query('COMMIT')
    } finally {
      connection.release()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end()
  }
}

/** The row under new names; rows of the same change that it names are renamed alike. */
function renamed({ table, values }: StoredRow, ids: Map<string, string>): StoredRow {
  const anew = (id: string): string => {
    const known = ids.get(id) ?? randomUUID()
    ids.set(id, known)
    return known
  }
  const change = (name: string, value: Value): Value => {
    if (names.includes(name)) return `${String(value).slice(0, 40)}${randomUUID()}`
    if (name === 'hash') return randomBytes(32)
    const named = typeof value === 'string' && (references.includes(name) || ids.has(value))
    return named ? anew(value) : value
  }
  return {
    table,
    values: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(name, value)])),
  }
}

const quoted = (name: string): string => `\`${name}\``

async function insert(connection: PoolConnection, { table, values }: StoredRow): Promise<void> {
  const columns = Object.keys(values)
  const sql = `INSERT INTO minimal_${table} (${columns.map(quoted).join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
  await connection.execute(sql, Object.values(values))
}

async function replace(connection: PoolConnection, { table, values }: StoredRow): Promise<void> {
  const { id, rev, ...changed } = values
  const columns = Object.keys(changed).map((name) => `${quoted(name)} = ?`)
  const sql = `UPDATE minimal_${table} SET ${columns.join(', ')}, rev = rev + 1 WHERE id = ?`
  await connection.execute(sql, [...Object.values(changed), id ?? null])
}

async function remove(connection: PoolConnection, { table, values }: StoredRow): Promise<void> {
  await connection.execute(`DELETE FROM minimal_${table} WHERE id = ?`, [values.id ?? null])
}
