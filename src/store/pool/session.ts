import { leafOf } from '../coherence/leaves.ts'
import { LeaseLost } from '../faults.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { Stored } from '../table.ts'
import type { Connection } from './connection.ts'

/** What a `Reader` is inside store/: a lent connection, and nothing once the work it was lent for has ended. */
export class Session implements Reader {
  readonly consistent: boolean
  #connection: Connection | undefined

  constructor(connection: Connection, consistent: boolean) {
    this.#connection = connection
    this.consistent = consistent
  }

  static of(q: Reader): Session {
    if (q instanceof Session) return q
    throw new TypeError('not a reader of this database')
  }

  protected get connection(): Connection {
    if (!this.#connection) throw new Error('a reader was used after its work had ended: something was not awaited')
    return this.#connection
  }

  rows(sql: string, values: readonly Stored[] = []): Promise<Stored[][]> {
    return this.connection.rows(sql, values)
  }

  end(): void {
    this.#connection = undefined
  }
}

/** What a `Transaction` is inside store/. */
export class WriteSession extends Session implements Transaction {
  readonly #leaves = new Set<number>()
  readonly #tallies = new Map<string, number>()
  readonly #rows = new WeakSet<object>()
  #wrote = false

  constructor(connection: Connection) {
    super(connection, true)
  }

  static override of(tx: Transaction): WriteSession {
    if (tx instanceof WriteSession) return tx
    throw new TypeError('not a transaction of this database')
  }

  /** Whether there is anything to commit. */
  get wrote(): boolean {
    return this.#wrote
  }

  /** What was touched, in the order in which every transaction increments it. */
  get leaves(): number[] {
    return [...this.#leaves].sort((a, b) => a - b)
  }

  /** What was counted. */
  get tallies(): ReadonlyMap<string, number> {
    return this.#tallies
  }

  run(sql: string, values: readonly Stored[]): Promise<number> {
    this.#wrote = true
    return this.connection.run(sql, values)
  }

  /** As `script` of a connection. */
  script(statements: readonly string[]): Promise<Stored[][]> {
    return this.connection.script(statements)
  }

  touch(table: string, id: string): void {
    void this.connection // throws when the work has ended
    this.#leaves.add(leafOf(table, id))
    this.#wrote = true
  }

  tally(name: string, delta: number): void {
    void this.connection
    if (!/^[a-z_]+$/.test(name) || !Number.isSafeInteger(delta)) throw new TypeError(`no tally: ${name} ${delta}`)
    this.#tallies.set(name, (this.#tallies.get(name) ?? 0) + delta)
    this.#wrote ||= delta !== 0
  }

  /** Written, not only read: so that a take-over elsewhere in the cluster conflicts with this transaction. */
  async fence(job: string, fence: bigint): Promise<void> {
    const sql = 'UPDATE job_leases SET beats = beats + 1 WHERE name = ? AND fence = ?'
    if ((await this.run(sql, [job, String(fence)])) === 0) throw new LeaseLost(job)
  }

  /** Remembers a row as read or written here. */
  adopt<R extends object>(row: R): R {
    this.#rows.add(row)
    return row
  }

  /** A row from a cache or from another transaction would be merged with what nobody has read. */
  owns(row: object): boolean {
    return this.#rows.has(row)
  }
}
