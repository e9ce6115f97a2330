import { nextTurn } from '../../after.ts'
import type { MaybePromise } from '../../route.ts'
import type { Statement } from '../pool/literal.ts'
import { Session, WriteSession } from '../pool/session.ts'
import type { Reader } from '../reader.ts'
import { Range, type Row, type Stored, type Table } from '../table.ts'
import type { LockingReading } from './access.ts'
import { quoted, type Shape } from './shape.ts'
import { limitClause, pageClause, selectFrom, whereClause } from './statements.ts'

type Values = Readonly<Record<string, unknown>>

/** Rows verified between two turns of the event loop, so that a listing of thousands starves nobody. */
const rowsPerTurn = 128

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
  async function query(q: Reader, where: Values, { sql, values }: Statement, held = false): Promise<Row<T>[]> {
    const session = Session.of(q)
    const rows: Row<T>[] = []
    for (const [index, stored] of (await session.rows(sql, values)).entries()) {
      if (index > 0 && index % rowsPerTurn === 0) await nextTurn()
      const row = await open(stored)
      if (!answers(row, where)) continue
      if (session instanceof WriteSession) session.adopt(row, held)
      rows.push(row as Row<T>)
    }
    return rows
  }

  async function one(q: Reader, where: Values, held: boolean): Promise<Row<T> | undefined> {
    const clause = whereClause(shape, where)
    const sql = select + clause.sql + limitClause(2) + (held ? ' FOR UPDATE' : '')
    const rows = await query(q, where, { sql, values: clause.values }, held)
    if (rows.length > 1)
      throw new Error(`${shape.table}: more than one row answers to ${Object.keys(where).join(', ')}`)
    return rows[0]
  }

  return {
    find: (q, where) => one(q, where, false),
    lock: (tx, where) => one(WriteSession.of(tx), where, true),

    async list(q, where, page) {
      const { beyond, order } = pageClause(shape, page)
      const { sql, values } = whereClause(shape, where, beyond)
      const index = page.index === undefined ? '' : ` FORCE INDEX (${quoted(page.index)})`
      return query(q, where, { sql: select + index + sql + order + limitClause(page.limit), values })
    },

    async exists(q, where) {
      const clause = whereClause(shape, where)
      const rows = await Session.of(q).rows(`SELECT 1 FROM ${quoted(shape.table)}${clause.sql} LIMIT 1`, clause.values)
      return rows.length > 0
    },

    async count(q, where) {
      const clause = whereClause(shape, where)
      const sql = `SELECT COUNT(*) FROM ${quoted(shape.table)}${clause.sql}`
      const [row] = await Session.of(q).rows(sql, clause.values)
      return Number(row?.[0])
    },
  }
}

/** Whether a row has these values, or is within these ranges. */
export function answers(row: Values, where: Values): boolean {
  return Object.entries(where).every(([property, asked]) => {
    const found = row[property]
    if (asked instanceof Range) return asked.includes(found)
    return Buffer.isBuffer(asked) ? Buffer.isBuffer(found) && asked.equals(found) : asked === found
  })
}
