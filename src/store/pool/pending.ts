import { DuplicateRow, Failure, isDuplicate, Outdated } from '../faults.ts'
import { quoted } from '../sealed/shape.ts'
import { asserted, assertMatched, isFailedAssertion } from './assertion.ts'
import { literal, literals } from './literal.ts'

/** A write that waits for the next round trip. */
interface Write {
  readonly table: string
  readonly sql: string
  /** The rows of an INSERT, to which others of the same columns can be added. */
  readonly rows?: string[]
  /** Makes the error of a write that matches no row; without it that is no error. */
  readonly unmatched?: (() => Error) | undefined
  /** Makes the error of an assertion that fails. */
  readonly failed?: () => Error
}

/** Statements of a transaction for one round trip. */
export interface Round {
  readonly statements: readonly string[]
  /** What the failure of one of them means. */
  explain(error: unknown): unknown
}

/** Pending statements longer than this are sent at once: a server takes packets of 16 MiB. */
export const largestPending = 1024 * 1024

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

  /** @param unmatched makes the error of the transaction if the statement matches no row */
  add(table: string, sql: string, unmatched?: () => Error): void {
    this.#writes.push({ table, sql, unmatched })
    this.#length += sql.length
  }

  /**
   * Inserts a row, by the statement of earlier rows if only INSERTs have come since.
   * @param into `INSERT INTO … VALUES` @param row its values in parentheses
   */
  insert(table: string, into: string, row: string): void {
    this.#length += row.length
    for (let index = this.#writes.length - 1; ; index--) {
      const earlier = this.#writes[index]
      if (earlier?.rows === undefined) break
      if (earlier.sql === into) return void earlier.rows.push(row)
    }
    this.#writes.push({ table, sql: into, rows: [row] })
    this.#length += into.length
  }

  /**
   * Tells of a row that was not read and is going to be changed.
   * @throws Outdated when another change of this transaction assumes it: of two UPDATEs of one rev the second would match
   *   nothing, unnoticed
   */
  assume(table: string, { id, rev }: { readonly id: string; readonly rev: number }): void {
    const rows = this.#assumed.get(table) ?? new Map<string, number>()
    if (rows.has(id)) throw new Outdated()
    this.#assumed.set(table, rows.set(id, rev))
  }

  /** Hands them over; none waits any more. */
  take(): Round {
    const writes = [...this.#locks(), ...this.#writes.flatMap(checked)]
    this.#writes = []
    this.#length = 0
    this.#assumed.clear()
    return {
      statements: writes.map(({ sql, rows }) => (rows ? `${sql} ${rows.join(', ')}` : sql)),
      explain: (error) =>
        error instanceof Failure && error.done !== undefined ? explained(error, error.done, writes) : error,
    }
  }

  /**
   * Locks the assumed rows first, without waiting: other changes may share the transaction; and asserts that they are
   * the assumed ones. By their ids alone: a server may prefer to read a small table by another index, and would lock
   * all of it.
   */
  #locks(): Write[] {
    return [...this.#assumed].map(([table, rows]) => {
      const revs = [...rows].map(([id, rev]) => `WHEN ${literal(id)} THEN ${rev}`)
      const all = asserted(`SUM(rev = CASE id ${revs.join(' ')} END) = ${rows.size}`)
      const where = `id IN ${literals([...rows.keys()])}`
      const sql = `SELECT ${all} FROM ${quoted(table)} FORCE INDEX (PRIMARY) WHERE ${where} FOR UPDATE NOWAIT`
      return { table, sql, failed: () => new Outdated() }
    })
  }
}

const checked = (write: Write): Write[] => {
  const { table, unmatched } = write
  return unmatched ? [write, { table, sql: assertMatched(1), failed: unmatched }] : [write]
}

/** @param done the number of statements that were answered; a query that fails at its first row is one of them */
function explained(failure: Failure, done: number, writes: readonly Write[]): unknown {
  const table = isDuplicate(failure) ? writes[done]?.table : undefined
  if (table !== undefined) return new DuplicateRow(table, failure)
  const failed = isFailedAssertion(failure) ? (writes[done]?.failed ?? writes[done - 1]?.failed) : undefined
  return failed?.() ?? failure
}
