import { places } from '../places.ts'
import { quoted } from '../sealed/shape.ts'
import { asserted } from './assertion.ts'
import { literal, type Parameterised, recurring } from './literal.ts'

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
const unchanged = (rows: readonly Named[]): string => `rev = ${byId(rows, (index) => String(rows[index]?.rev))}`

/** ` WHERE …` for these rows at these revs. */
const where = (rows: readonly Named[]): string => ` WHERE id IN (${ids(rows)}) AND ${unchanged(rows)}`

const whereOne = ' WHERE id = ? AND rev = ?'
const literalsOf = ({ id, rev }: Named): string[] => [literal(id), String(rev)]

/**
 * Selects from these rows by their primary key: a server may prefer to read a small table by another index, and would
 * lock all of it.
 */
const byPrimaryKey = (table: string): string => `${quoted(table)} FORCE INDEX (PRIMARY)`

/** One UPDATE of all these rows. @param names of the columns */
export function updateAll(
  table: string,
  names: readonly string[],
  rows: readonly Replacement[],
): string | Parameterised {
  const set = (columns: readonly string[]): string => `UPDATE ${byPrimaryKey(table)} SET ${columns.join(', ')}`
  const [one] = rows
  if (one !== undefined && rows.length === 1) {
    const columns = names.map((name) => `${quoted(name)} = ?`)
    return { sql: set(columns) + whereOne, literals: [...one.values, ...literalsOf(one)] }
  }
  const columns = names.map((name, column) => {
    const values = rows.map(({ values }) => values[column] ?? 'NULL')
    const [first = 'NULL'] = values
    const value = values.every((one) => one === first) ? first : byId(rows, (index) => values[index] ?? 'NULL')
    return `${quoted(name)} = ${value}`
  })
  return set(columns) + where(rows)
}

/** One DELETE of all these rows; only its form for several tables takes an index. */
export function deleteAll(table: string, rows: readonly Named[]): string | Parameterised {
  const from = `DELETE ${quoted(table)} FROM ${byPrimaryKey(table)}`
  const [one] = rows
  if (one !== undefined && rows.length === 1) return { sql: from + whereOne, literals: literalsOf(one) }
  return from + where(rows)
}

/** One INSERT of these rows. @param into `INSERT INTO … VALUES` @param rows literals, in the order of the columns */
export function insertAll(into: string, rows: readonly (readonly string[])[]): string | Parameterised {
  const [one] = rows
  if (one !== undefined && rows.length === 1) return { sql: `${into} (${places(one)})`, literals: one }
  return `${into} ${rows.map((row) => `(${row.join(', ')})`).join(', ')}`
}

/**
 * A SELECT that locks these rows, and asserts that they have their revs.
 * @param wait ` NOWAIT` where a lock must not be waited for
 */
export function lockAll(table: string, rows: readonly Named[], wait: '' | ' NOWAIT'): string | Parameterised {
  const cases = rows.map(() => 'WHEN ? THEN ?').join(' ')
  const all = asserted(`SUM(rev = CASE id ${cases} END) = ?`)
  const locking = {
    sql: `SELECT ${all} FROM ${byPrimaryKey(table)} WHERE id IN (${places(rows)}) FOR UPDATE${wait}`,
    literals: [...rows.flatMap(literalsOf), String(rows.length), ...rows.map(({ id }) => literal(id))],
  }
  return recurring(locking, rows.length)
}
