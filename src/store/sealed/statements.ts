import type { Stored } from '../table.ts'
import { quoted, type Shape } from './shape.ts'

/** SQL text with its values, in order. */
export interface Statement {
  readonly sql: string
  readonly values: readonly Stored[]
}

/** Rows of one INSERT at most. */
export const largestInsert = 64

const joined = (names: readonly string[], by: string): string => names.map(quoted).join(by)

/** ` WHERE …` for equality on every given property; null is IS NULL; none is everything. */
export function whereClause(
  shape: Shape,
  where: Readonly<Record<string, unknown>>,
  more: readonly string[] = [],
): Statement {
  const values: Stored[] = []
  const terms = Object.entries(where).map(([property, value]) => {
    const { name, column } = shape.field(property)
    if (column.kind === 'json') throw new TypeError(`${shape.table}.${property} cannot be asked for`)
    const stored = value === null ? null : column.encode(value)
    if (stored === null) return `${quoted(name)} IS NULL`
    values.push(stored)
    return `${quoted(name)} = ?`
  })
  terms.push(...more)
  return { sql: terms.length === 0 ? '' : ` WHERE ${terms.join(' AND ')}`, values }
}

export const selectFrom = (table: string, names: readonly string[]): string =>
  `SELECT ${joined(names, ', ')} FROM ${quoted(table)}`

export function insertInto(table: string, names: readonly string[], rows: readonly (readonly Stored[])[]): Statement {
  const places = `(${names.map(() => '?').join(', ')})`
  return {
    sql: `INSERT INTO ${quoted(table)} (${joined(names, ', ')}) VALUES ${rows.map(() => places).join(', ')}`,
    values: rows.flat(),
  }
}

/** `assign` gives the right side for a column's quoted name. */
export const updateOf = (table: string, names: readonly string[], assign: (name: string) => string): string =>
  `UPDATE ${quoted(table)} SET ${names.map((name) => `${quoted(name)} = ${assign(quoted(name))}`).join(', ')}`

/** ` LIMIT n` as text: a number that was checked, because servers differ on placeholders there. */
export function limitClause(limit: number | undefined): string {
  if (limit === undefined) return ''
  if (!Number.isSafeInteger(limit) || limit < 0) throw new RangeError('limit is a whole number')
  return ` LIMIT ${limit}`
}

/** Splits rows into powers of two, so that a table has few INSERT statements to prepare. */
export function* portions<R>(rows: readonly R[]): Generator<R[]> {
  for (let start = 0; start < rows.length; ) {
    const size = Math.min(largestInsert, 2 ** Math.floor(Math.log2(rows.length - start)))
    yield rows.slice(start, start + size)
    start += size
  }
}
