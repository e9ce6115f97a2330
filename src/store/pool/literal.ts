import type { Stored } from '../table.ts'

/** SQL text with its values, in order. */
export interface Statement {
  readonly sql: string
  readonly values: readonly Stored[]
}

/**
 * A statement with its values in place of its question marks: numbers as they are, all else in hexadecimal, so that there
 * is nothing to quote and nothing that a value could end. The SQL itself has no question mark but these.
 * @throws {TypeError} for another number of values, and for a number that is not whole
 */
export function withLiterals({ sql, values }: Statement): string {
  const parts = sql.split('?')
  if (parts.length !== values.length + 1) throw new TypeError(`${values.length} values for: ${sql}`)
  return parts.map((part, index) => (index === 0 ? part : literal(values[index - 1] ?? null) + part)).join('')
}

function literal(value: Stored): string {
  if (value === null) return 'NULL'
  if (Buffer.isBuffer(value)) return `x'${value.toString('hex')}'`
  if (typeof value === 'string') return `_utf8mb4 x'${Buffer.from(value, 'utf8').toString('hex')}'`
  if (!Number.isSafeInteger(value)) throw new TypeError('not a whole number')
  return String(value)
}
