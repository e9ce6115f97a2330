import { quoted } from '../sealed/shape.ts'
import { literal } from './literal.ts'

/** A row by its id, as it is until it is written. */
export interface Named {
  readonly id: string
  readonly rev: number
}

/** New values of a row. */
export interface Replacement extends Named {
  /** Literals, in the order of the columns. */
  readonly values: readonly string[]
}

const ids = (rows: readonly Named[]): string => rows.map(({ id }) => literal(id)).join(', ')

const byId = (rows: readonly Named[], of: (index: number) => string): string =>
  `CASE id ${rows.map(({ id }, index) => `WHEN ${literal(id)} THEN ${of(index)}`).join(' ')} END`

/** The condition that rows still have their revs; by their ids alone, as far as a server chooses an index. */
export const unchanged = (rows: readonly Named[]): string => `rev = ${byId(rows, (index) => String(rows[index]?.rev))}`

/** ` WHERE …` for these rows at these revs. */
const where = (rows: readonly Named[]): string => {
  const [one] = rows
  if (one !== undefined && rows.length === 1) return ` WHERE id = ${literal(one.id)} AND rev = ${one.rev}`
  return ` WHERE id IN (${ids(rows)}) AND ${unchanged(rows)}`
}

/**
 * Selects from these rows by their primary key: a server may prefer to read a small table by another index, and would
 * lock all of it.
 */
const byPrimaryKey = (table: string): string => `${quoted(table)} FORCE INDEX (PRIMARY)`

/** One UPDATE of all these rows. @param names of the columns */
export function updateAll(table: string, names: readonly string[], rows: readonly Replacement[]): string {
  const columns = names.map((name, column) => {
    const values = rows.map(({ values }) => values[column] ?? 'NULL')
    const [first = 'NULL'] = values
    const value = values.every((one) => one === first) ? first : byId(rows, (index) => values[index] ?? 'NULL')
    return `${quoted(name)} = ${value}`
  })
  return `UPDATE ${byPrimaryKey(table)} SET ${columns.join(', ')}${where(rows)}`
}

/** One DELETE of all these rows; only its form for several tables takes an index. */
export const deleteAll = (table: string, rows: readonly Named[]): string =>
  `DELETE ${quoted(table)} FROM ${byPrimaryKey(table)}${where(rows)}`

/** A SELECT that locks these rows without waiting. */
export const lockAll = (select: string, table: string, rows: readonly Named[]): string =>
  `SELECT ${select} FROM ${byPrimaryKey(table)} WHERE id IN (${ids(rows)}) FOR UPDATE NOWAIT`
