import type { Stored } from '../table.ts'

/** SQL text with its values, in order. */
export interface Statement {
  readonly sql: string
  readonly values: readonly Stored[]
}

/**
 * A statement with its values in place of its question marks: numbers and plain words as they are, all others in
 * hexadecimal, so that no value needs escaping or can end the literal. The SQL itself has no other question marks.
 * @throws {TypeError} when the number of values differs, and for a number that is not whole
 */
export function withLiterals({ sql, values }: Statement): string {
  const parts = sql.split('?')
  if (parts.length !== values.length + 1) throw new TypeError(`${values.length} values for: ${sql}`)
  return parts.map((part, index) => (index === 0 ? part : literal(values[index - 1] ?? null) + part)).join('')
}

/** Values in parentheses: a row of an INSERT. @throws {TypeError} for a number that is not whole */
export const literals = (values: readonly Stored[]): string => `(${values.map(literal).join(', ')})`

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
