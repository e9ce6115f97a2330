import { places } from '../places.ts'
import type { Statement } from '../pool/literal.ts'
import { Range, type Stored } from '../table.ts'
import { quoted, type Shape } from './shape.ts'

const everything: Statement = { sql: '', values: [] }

/** The most values of one statement. */
const largestPortion = 64

const joined = (names: readonly string[], by: string): string => names.map(quoted).join(by)

/**
 * ` WHERE …` for equality or a range of every given property; null is IS NULL; without properties it matches every row.
 */
export function whereClause(
  shape: Shape,
  where: Readonly<Record<string, unknown>>,
  more: Statement = everything,
): Statement {
  const values: Stored[] = []
  const terms = Object.entries(where).flatMap(([property, value]) => {
    const { name, column } = shape.field(property)
    if (column.kind === 'json') throw new TypeError(`${shape.table}.${property} cannot be asked for`)
    const compare = (sign: string, bound: unknown): string => {
      values.push(column.encode(bound))
      return `${quoted(name)} ${sign} ?`
    }
    if (value instanceof Range) return value.bounds.map(([sign, bound]) => compare(sign, bound))
    return value === null ? `${quoted(name)} IS NULL` : compare('=', value)
  })
  if (more.sql !== '') terms.push(more.sql)
  return { sql: terms.length === 0 ? '' : ` WHERE ${terms.join(' AND ')}`, values: [...values, ...more.values] }
}

/** The order of a page, by one column or more: the term for rows beyond the cursor, and ` ORDER BY …`. */
export function pageClause(shape: Shape, { by, after, descending }: PageOrder): { beyond: Statement; order: string } {
  const fields = [by].flat().map((property) => shape.field(property))
  const names = fields.map(({ name }) => quoted(name))
  const order = ` ORDER BY ${names.map((name) => (descending ? `${name} DESC` : name)).join(', ')}`
  if (after === undefined) return { beyond: everything, order }
  const cursor = [after].flat()
  if (cursor.length !== fields.length) throw new TypeError(`${shape.table}: the cursor is not of the page's columns`)
  const stored = fields.map(({ column }, index) => column.encode(cursor[index]))
  // (a, b) > (?, ?) written out: servers do not use an index for a comparison of rows.
  const terms = names.map((name, index) => {
    const equal = names.slice(0, index).map((before) => `${before} = ?`)
    return [...equal, `${name} ${descending ? '<' : '>'} ?`].join(' AND ')
  })
  const values = stored.flatMap((_, index) => stored.slice(0, index + 1))
  return { beyond: { sql: `(${terms.join(' OR ')})`, values }, order }
}

type Key = string | number

interface PageOrder {
  readonly by: string | readonly [string, string]
  readonly after?: Key | readonly [Key, Key]
  readonly descending?: boolean
}

/** `SELECT … FROM …`, without a condition. @param names of columns */
export const selectFrom = (table: string, names: readonly string[]): string =>
  `SELECT ${joined(names, ', ')} FROM ${quoted(table)}`

/** `INSERT INTO … VALUES`. @param names of columns */
export const insertInto = (table: string, names: readonly string[]): string =>
  `INSERT INTO ${quoted(table)} (${joined(names, ', ')}) VALUES`

/** `assign` gives the right side for a column's quoted name. */
export const updateOf = (table: string, names: readonly string[], assign: (name: string) => string): string =>
  `UPDATE ${quoted(table)} SET ${names.map((name) => `${quoted(name)} = ${assign(quoted(name))}`).join(', ')}`

/** ` LIMIT n` as text, n checked: servers differ on placeholders there. */
export function limitClause(limit: number | undefined): string {
  if (limit === undefined) return ''
  if (!Number.isSafeInteger(limit) || limit < 0) throw new RangeError('limit is a whole number')
  return ` LIMIT ${limit}`
}

/**
 * Values in portions of a power of two, at most 64, the last one repeated to fill the places: few different statements
 * to prepare.
 */
export function* padded<V>(values: readonly V[]): Generator<V[]> {
  for (let start = 0; start < values.length; start += largestPortion) {
    const some = values.slice(start, start + largestPortion)
    const size = 2 ** Math.ceil(Math.log2(some.length))
    yield Array.from({ length: size }, (_, index) => some[Math.min(index, some.length - 1)] as V)
  }
}

/** ` WHERE id IN (…)` for portions of ids. */
export function* idClauses(ids: readonly string[]): Generator<Statement> {
  for (const values of padded(ids)) {
    yield { sql: ` WHERE ${quoted('id')} IN (${places(values)})`, values }
  }
}
