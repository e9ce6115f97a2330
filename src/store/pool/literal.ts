import type { Stored } from '../table.ts'

/** SQL text with its values, in order. */
export interface Statement {
  readonly sql: string
  readonly values: readonly Stored[]
}

/** A statement with question marks, and the literals for them. */
export interface Parameterised {
  readonly sql: string
  readonly literals: readonly string[]
}

/**
 * The values of a statement as literals: numbers and plain words as they are, all others in hexadecimal, so that no
 * value needs escaping or can end its literal.
 * @throws {TypeError} for a number that is not whole
 */
export const parameterised = ({ sql, values }: Statement): Parameterised => ({ sql, literals: values.map(literal) })

/**
 * The text of a statement, its literals in place of its question marks; the SQL itself has no others.
 * @throws {TypeError} when there are more or fewer of them
 */
export function textOf(one: string | Parameterised): string {
  if (typeof one === 'string') return one
  const parts = one.sql.split('?')
  if (parts.length !== one.literals.length + 1) throw new TypeError(`${one.literals.length} values for: ${one.sql}`)
  return parts.map((part, index) => (index === 0 ? part : one.literals[index - 1] + part)).join('')
}

/** The text of a statement. @throws {TypeError} as `parameterised` and `textOf` */
export const withLiterals = (statement: Statement): string => textOf(parameterised(statement))

/** A statement for so many rows, as text if they are many: hardly two groups of changes are of one size. */
export const recurring = (statement: Parameterised, rows: number): string | Parameterised =>
  rows > mostRecurring ? textOf(statement) : statement
const mostRecurring = 2

/** ASCII without quotes, backslashes and control characters: names, ids and types, which the server reads faster so. */
const plain = /^[\w .:/+=,@-]*$/

/** A value. @throws {TypeError} for a number that is not whole */
export function literal(value: Stored): string {
  if (value === null) return 'NULL'
  if (Buffer.isBuffer(value)) return `x'${value.toString('hex')}'`
  if (typeof value === 'string' && plain.test(value)) return `'${value}'`
  if (typeof value === 'string') return `_utf8mb4 x'${Buffer.from(value, 'utf8').toString('hex')}'`
  if (!Number.isSafeInteger(value)) throw new TypeError('not a whole number')
  return String(value)
}
