import { nextTurn } from '../../after.ts'
import type { MaybePromise } from '../../route.ts'
import type { Statement } from '../pool/literal.ts'
import { Session, WriteSession } from '../pool/session.ts'
import type { Reader } from '../reader.ts'
import { Range, type Row, type Stored, type Table } from '../table.ts'
import type { LockingReading, Page } from './access.ts'
import { quoted, type Shape } from './shape.ts'
import { limitClause, padded, pageClause, selectFrom, whereClause } from './statements.ts'

type Values = Readonly<Record<string, unknown>>

/** Rows verified between two turns of the event loop, so that a listing of thousands starves nobody. */
const rowsPerTurn = 128

/** What one query found. */
interface Found<T extends Table> {
  /** Those that match. */
  readonly rows: Row<T>[]
  /** How many there were. */
  readonly read: number
  /** The last one, matching or not. */
  readonly last: Values | undefined
}

/**
 * The reads of one table. `open` decodes a stored row, and throws when it must not be used; `more` are columns for
 * `open` alone.
 */
export function reading<T extends Table>(
  shape: Shape,
  more: readonly string[],
  open: (stored: readonly Stored[]) => MaybePromise<Values>,
): LockingReading<T> {
  const select = selectFrom(shape.table, [...shape.fields.map(({ name }) => name), ...more])

  /**
   * Leaves out rows that do not match exactly: binary collations still take 'a' and 'a ' as equal, and an edited
   * collation may take more.
   */
  async function query(q: Reader, where: Values, { sql, values }: Statement, held = false): Promise<Found<T>> {
    const session = Session.of(q)
    const rows: Row<T>[] = []
    let last: Values | undefined
    const found = await session.rows(sql, values)
    for (const [index, stored] of found.entries()) {
      if (index > 0 && index % rowsPerTurn === 0) await nextTurn()
      const row = await open(stored)
      last = row
      if (!answers(row, where)) continue
      if (session instanceof WriteSession) session.adopt(row, held)
      rows.push(row as Row<T>)
    }
    return { rows, read: found.length, last }
  }

  async function one(q: Reader, where: Values, held: boolean): Promise<Row<T> | undefined> {
    const clause = whereClause(shape, where)
    const sql = select + clause.sql + limitClause(2) + (held ? ' FOR UPDATE' : '')
    const { rows } = await query(q, where, { sql, values: clause.values }, held)
    if (rows.length > 1)
      throw new Error(`${shape.table}: more than one row answers to ${Object.keys(where).join(', ')}`)
    return rows[0]
  }

  return {
    find: (q, where) => one(q, where, false),
    lock: (tx, where) => one(WriteSession.of(tx), where, true),

    list: (q, where, page) => wholePage(page, (at) => query(q, where, pageStatement(shape, select, where, at))),

    async exists(q, where) {
      const clause = whereClause(shape, where)
      const rows = await Session.of(q).rows(`SELECT 1 FROM ${quoted(shape.table)}${clause.sql} LIMIT 1`, clause.values)
      return rows.length > 0
    },

    among: (q, property, values) => among(shape, Session.of(q), property, values),

    count: (q, where) => count(shape, Session.of(q), where),
  }
}

async function count(shape: Shape, session: Session, where: Values): Promise<number> {
  const { sql, values } = whereClause(shape, where)
  if (sql === '' && session instanceof WriteSession)
    throw new TypeError(`${shape.table}: a transaction counts rows by a condition alone`)
  const [row] = await session.rows(`SELECT COUNT(*) FROM ${quoted(shape.table)}${sql}`, values)
  return Number(row?.[0])
}

/** The values among these that some row has in a column. */
async function among<V>(shape: Shape, session: Session, property: string, wanted: readonly V[]): Promise<Set<V>> {
  const { name, column } = shape.field(property)
  const one = `(SELECT ${quoted(name)} FROM ${quoted(shape.table)} WHERE ${quoted(name)} = ? LIMIT 1)`
  const found = new Set<unknown>()
  for (const values of padded(wanted)) {
    const sql = values.map(() => one).join(' UNION ALL ')
    for (const [value = null] of await session.rows(sql, values.map(column.encode))) found.add(column.decode(value))
  }
  // Binary collations still take 'a' and 'a ' as equal.
  return new Set(wanted.filter((value) => found.has(value)))
}

function pageStatement<T extends Table>(shape: Shape, select: string, where: Values, page: Page<T>): Statement {
  const { beyond, order } = pageClause(shape, page)
  const { sql, values } = whereClause(shape, where, beyond)
  const index = page.index === undefined ? '' : ` FORCE INDEX (${quoted(page.index)})`
  return { sql: select + index + sql + order + limitClause(page.limit), values }
}

/**
 * A page that is short only at the end: in place of rows that are left out it reads on. Walks that stop at a short page
 * would otherwise miss what follows a single edited row.
 */
async function wholePage<T extends Table>(
  page: Page<T>,
  query: (page: Page<T>) => Promise<Found<T>>,
): Promise<Row<T>[]> {
  let rows: Row<T>[] = []
  for (let at = page; ; ) {
    const found = await query(at)
    rows = rows.length === 0 ? found.rows : rows.concat(found.rows)
    const after = found.read < at.limit ? undefined : cursorOf(found.last, page.by)
    if (after === undefined || rows.length === page.limit) return rows
    at = { ...page, after, limit: page.limit - rows.length }
  }
}

/** The cursor of the rows after this one; undefined if it has NULL there, which no cursor can stand for. */
function cursorOf<T extends Table>(row: Values | undefined, by: Page<T>['by']): Page<T>['after'] {
  const keys = [by].flat().map((property) => row?.[property] ?? undefined)
  if (keys.includes(undefined)) return undefined
  return (keys.length === 1 ? keys[0] : keys) as Page<T>['after']
}

/** Whether a row has these values, or is within these ranges. */
export function answers(row: Values, where: Values): boolean {
  return Object.entries(where).every(([property, asked]) => {
    const found = row[property]
    if (asked instanceof Range) return asked.includes(found)
    return Buffer.isBuffer(asked) ? Buffer.isBuffer(found) && asked.equals(found) : asked === found
  })
}
