import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'

/** The value of one column in mysql2. */
export type Value = string | number | Buffer | null
export type Row = Readonly<Record<string, Value>>

/** One column as information_schema describes it. */
export interface Column {
  readonly name: string
  readonly type: string
  readonly nullable: boolean
}

/** The database as its owner sees it: every table and row, without our rules. */
export interface Sql extends AsyncDisposable {
  rows(text: string, values?: readonly Value[]): Promise<Row[]>
  /** The one row of the answer. */
  row(text: string, values?: readonly Value[]): Promise<Row>
  tables(): Promise<string[]>
  columns(table: string): Promise<Column[]>
  /** Writes a row as it is given, in the place of the one with its primary key. */
  put(table: string, row: Row): Promise<void>
  /** Changes columns of the row with this id. @returns a function that puts the row back */
  edit(table: string, id: Value, changes: Row): Promise<() => Promise<void>>
  /** Makes every worker reread everything, as a write would, and waits until all have learned of it. */
  invalidate(): Promise<void>
}

export async function openSql(url: string): Promise<Sql> {
  const connection = await createConnection({ uri: url, supportBigNumbers: true })
  const rows: Sql['rows'] = async (text, values = []) =>
    (await connection.query<(RowDataPacket & Row)[]>(text, [...values]))[0]
  const row: Sql['row'] = async (text, values) => {
    const [first, ...more] = await rows(text, values)
    if (first === undefined || more.length > 0) throw new Error(`not one row: ${text} ${values}`)
    return first
  }
  const put: Sql['put'] = async (table, whole) => {
    const names = Object.keys(whole).map((name) => `\`${name}\``)
    const places = names.map(() => '?').join(', ')
    await rows(`REPLACE INTO \`${table}\` (${names.join(', ')}) VALUES (${places})`, Object.values(whole))
  }
  return {
    rows,
    row,
    put,
    async tables() {
      const found = await rows(
        'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
      )
      return found.map(({ name }) => String(name)).sort()
    },
    async columns(table) {
      const found = await rows(
        `SELECT column_name AS name, data_type AS type, is_nullable = 'YES' AS nullable FROM information_schema.columns
          WHERE table_schema = DATABASE() AND table_name = ? ORDER BY ordinal_position`,
        [table],
      )
      return found.map(({ name, type, nullable }) => ({
        name: String(name),
        type: String(type),
        nullable: nullable === 1,
      }))
    },
    async edit(table, id, changes) {
      const old = await row(`SELECT * FROM \`${table}\` WHERE id = ?`, [id])
      const assigned = Object.keys(changes).map((name) => `\`${name}\` = ?`)
      await rows(`UPDATE \`${table}\` SET ${assigned.join(', ')} WHERE id = ?`, [...Object.values(changes), id])
      return async () => {
        await rows(`DELETE FROM \`${table}\` WHERE id IN (?, ?)`, [id, changes.id ?? id])
        await put(table, old)
      }
    },
    async invalidate() {
      await rows('UPDATE versions SET v = v + 1')
      const late = `SELECT 1 FROM registrations r CROSS JOIN versions b
        LEFT JOIN acks a ON a.registration = r.id AND a.bucket = b.bucket WHERE COALESCE(a.v, -1) < b.v LIMIT 1`
      while ((await rows(late)).length > 0) await delay(10)
    },
    [Symbol.asyncDispose]: () => connection.end(),
  }
}

/** Tables whose rows carry a MAC. */
export async function sealedTables(sql: Sql): Promise<string[]> {
  const found = await sql.rows(
    "SELECT table_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = 'mac'",
  )
  return found.map(({ name }) => String(name)).sort()
}

/** Other values that an attacker could put there: the least change, and NULL where that is allowed. */
export function others({ type, nullable }: Column, value: Value): Value[] {
  const changed = value === null ? filled(type) : changedValue(type, value)
  return nullable && value !== null ? [changed, null] : [changed]
}

const isText = (type: string): boolean => /char|text/.test(type)
const filled = (type: string): Value => (isText(type) ? 'x' : /int/.test(type) ? 1 : Buffer.of(1))

function changedValue(type: string, value: string | number | Buffer): Value {
  if (isText(type)) return `${String(value).slice(0, -1)}${String(value).endsWith('0') ? '1' : '0'}`
  if (!Buffer.isBuffer(value)) return type === 'tinyint' ? 1 - Number(value) : Number(value) + 1
  const bytes = value.length === 0 ? Buffer.of(0) : Buffer.from(value)
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)
  return bytes
}
