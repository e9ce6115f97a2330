import { DuplicateRow, Failure, isDuplicate, Outdated } from '../faults.ts'
import { assertMatched, isFailedAssertion } from './assertion.ts'
import type { Parameterised } from './literal.ts'
import { deleteAll, insertAll, lockAll, type Named, type Replacement, updateAll } from './rowwrites.ts'

/** A write that waits for the next round trip. */
type Write =
  | { readonly kind: 'statement'; readonly table: string; readonly sql: string }
  /** `into` is `INSERT INTO … VALUES`, `rows` are literals. */
  | { readonly kind: 'insert'; readonly table: string; readonly into: string; readonly rows: (readonly string[])[] }
  | ({ readonly kind: 'update'; readonly names: readonly string[]; readonly rows: Replacement[] } & Change)
  | ({ readonly kind: 'delete'; readonly rows: Named[] } & Change)

interface Change {
  readonly table: string
  /** Makes the error of a change that matches no row; without it that is no error. */
  readonly unmatched?: (() => Error) | undefined
}

/** A statement, and the error that its failed assertion means. */
interface Sent {
  readonly table: string
  readonly text: string | Parameterised
  readonly failed?: () => Error
}

/** Statements of a transaction for one round trip. */
export interface Round {
  readonly statements: readonly (string | Parameterised)[]
  /** How many rows the last statement must have matched, as the statement after it has to assert. */
  readonly matching?: number
  /** What the failure of one of them means. */
  explain(error: unknown): unknown
}

/** Makes of a statement one that fails where it would wait for a row. */
export type Hurried = (sql: string) => string

/** Pending statements longer than this are sent at once: a server takes packets of 16 MiB. */
export const largestPending = 1024 * 1024

/** The most rows of one UPDATE or DELETE: each of them is compared with each. */
const mostRows = 64

/** The length of literals in a text. */
export const lengthOf = (row: readonly string[]): number => row.reduce((sum, text) => sum + text.length + 2, 2)

/** The longest text of `WHEN id THEN `, and of an id and a rev in a condition. */
const caseLength = ({ id }: Named): number => id.length + 16

/** The writes of a transaction that wait to go out together. */
export class PendingWrites {
  #writes: Write[] = []
  #length = 0
  /** Revisions by id, by table. */
  readonly #assumed = new Map<string, Map<string, number>>()

  get none(): boolean {
    return this.#writes.length === 0
  }

  /** Whether they are so long that they should be sent. */
  get full(): boolean {
    return this.#length > largestPending
  }

  add(table: string, sql: string): void {
    this.#writes.push({ kind: 'statement', table, sql })
    this.#length += sql.length
  }

  /**
   * Inserts a row, by the statement of earlier rows if that changes nothing.
   * @param into `INSERT INTO … VALUES` @param row literals, in the order of the columns
   */
  insert(table: string, into: string, row: readonly string[]): void {
    const earlier = this.#earlier(table)
    if (earlier?.kind === 'insert' && earlier.into === into) earlier.rows.push(row)
    else this.#writes.push({ kind: 'insert', table, into, rows: [row] })
    this.#length += lengthOf(row)
  }

  /**
   * Replaces a row, by the statement of earlier ones if that changes nothing.
   * @param names of its columns: the same array for the same columns
   * @param unmatched makes the error of the transaction if the row has another rev; absent for a row that none can change
   */
  update(table: string, names: readonly string[], row: Replacement, unmatched?: () => Error): void {
    const earlier = unmatched ? undefined : this.#earlier(table)
    if (earlier?.kind === 'update' && earlier.names === names && takes(earlier.rows, row)) earlier.rows.push(row)
    else this.#writes.push({ kind: 'update', table, names, rows: [row], unmatched })
    this.#length += row.values.reduce((sum, value) => sum + value.length + caseLength(row), 3 * caseLength(row))
  }

  /** Removes a row; as `update`. */
  remove(table: string, row: Named, unmatched?: () => Error): void {
    const earlier = unmatched ? undefined : this.#earlier(table)
    if (earlier?.kind === 'delete' && takes(earlier.rows, row)) earlier.rows.push(row)
    else this.#writes.push({ kind: 'delete', table, rows: [row], unmatched })
    this.#length += 3 * caseLength(row)
  }

  /**
   * Tells of a row that was not read and is going to be changed.
   * @throws Outdated when another change of this transaction assumes it: of two UPDATEs of one rev the second would match
   *   nothing, unnoticed
   */
  assume(table: string, { id, rev }: Named): void {
    const rows = this.#assumed.get(table) ?? new Map<string, number>()
    if (rows.has(id)) throw new Outdated()
    this.#assumed.set(table, rows.set(id, rev))
  }

  /**
   * Hands them over; none waits any more.
   * @param hurried where another statement follows which can assert what the last one matched, and the server can hurry
   */
  take(hurried?: Hurried): Round {
    const sole = hurried && this.#sole()
    const sent = sole
      ? [{ table: sole.table, text: hurriedly(hurried, statementOf(sole)) }]
      : [...this.#locks(hurried), ...this.#writes.flatMap(checked)]
    this.#writes = []
    this.#length = 0
    this.#assumed.clear()
    return {
      statements: sent.map(({ text }) => text),
      ...(sole ? { matching: sole.rows.length } : {}),
      explain: (error) =>
        error instanceof Failure && error.done !== undefined ? explained(error, error.done, sent) : error,
    }
  }

  /**
   * The latest statement for rows of this table, if nothing has come since but rows of other tables: between tables
   * nothing depends on the order of changes whose rows are held, or new.
   */
  #earlier(table: string): Write | undefined {
    for (let index = this.#writes.length - 1; index >= 0; index--) {
      const write = this.#writes[index] as Write
      if (write.kind === 'statement' || ('unmatched' in write && write.unmatched)) return undefined
      if (write.table === table) return write
    }
    return undefined
  }

  /** The only statement, if it is one change of just the assumed rows: then it shows by itself whether they were there. */
  #sole(): Extract<Write, Change & { readonly rows: readonly Named[] }> | undefined {
    const [sole, ...others] = this.#writes
    if (others.length > 0 || (sole?.kind !== 'update' && sole?.kind !== 'delete')) return undefined
    const assumed = this.#assumed.get(sole.table)
    if (this.#assumed.size !== 1 || assumed?.size !== sole.rows.length) return undefined
    return sole.rows.every(({ id, rev }) => assumed.get(id) === rev) ? sole : undefined
  }

  /**
   * Locks the assumed rows first, without waiting: other changes may share the transaction; and asserts that they are
   * the assumed ones.
   */
  #locks(hurried?: Hurried): Sent[] {
    return [...this.#assumed].map(([table, assumed]) => {
      const rows = [...assumed].map(([id, rev]) => ({ id, rev }))
      const text = hurried ? hurriedly(hurried, lockAll(table, rows, '')) : lockAll(table, rows, ' NOWAIT')
      return { table, text, failed: () => new Outdated() }
    })
  }
}

const hurriedly = (hurried: Hurried, one: string | Parameterised): string | Parameterised =>
  typeof one === 'string' ? hurried(one) : { ...one, sql: hurried(one.sql) }

/** Whether a statement can take one more row. */
const takes = (rows: readonly Named[], { id }: Named): boolean =>
  rows.length < mostRows && rows.every((row) => row.id !== id)

function statementOf(write: Write): string | Parameterised {
  if (write.kind === 'statement') return write.sql
  if (write.kind === 'insert') return insertAll(write.into, write.rows)
  return write.kind === 'update' ? updateAll(write.table, write.names, write.rows) : deleteAll(write.table, write.rows)
}

function checked(write: Write): Sent[] {
  const { table } = write
  const sent = { table, text: statementOf(write) }
  const unmatched = 'unmatched' in write ? write.unmatched : undefined
  return unmatched ? [sent, { table, text: assertMatched(1), failed: unmatched }] : [sent]
}

/** @param done the number of statements that were answered; a query that fails at its first row is one of them */
function explained(failure: Failure, done: number, sent: readonly Sent[]): unknown {
  const table = isDuplicate(failure) ? sent[done]?.table : undefined
  if (table !== undefined) return new DuplicateRow(table, failure)
  const failed = isFailedAssertion(failure) ? (sent[done]?.failed ?? sent[done - 1]?.failed) : undefined
  return failed?.() ?? failure
}
