import { leafOf } from '../coherence/leaves.ts'
import { Conflict, DuplicateRow, Failure, isDuplicate, LeaseLost } from '../faults.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { Stored } from '../table.ts'
import { discarding, isTallyName } from '../tally.ts'
import type { Answer, Connection, Opening } from './connection.ts'
import { type Statement, withLiterals } from './literal.ts'

/** A statement whose answer somebody waits for. */
interface Asked {
  readonly statement: Statement
  /** Runs it alone, prepared. */
  readonly alone: (connection: Connection) => Promise<Answer>
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

const noAnswer: Answer = { rows: [], matched: 0 }

/**
 * What a `Reader` is inside store/: a lent connection, and nothing once the work it was lent for has ended. Statements that
 * are asked for in one turn go out together, in their order, and with the first ones goes what opens the session (a
 * transaction, the question whether the node takes writes). What is asked for meanwhile waits for the answers.
 */
export class Session implements Reader {
  readonly consistent: boolean
  #connection: Connection | undefined
  #opening: Opening | undefined
  #asked: Asked[] = []
  #round: Promise<unknown> = Promise.resolve()

  constructor(connection: Connection, opening: Opening, consistent: boolean) {
    this.#connection = connection
    this.#opening = opening
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

  /** Whether anything was sent. */
  get opened(): boolean {
    return this.#opening === undefined
  }

  async rows(sql: string, values: readonly Stored[] = []): Promise<Stored[][]> {
    const alone = async (connection: Connection) => ({ rows: await connection.rows(sql, values), matched: 0 })
    return (await this.ask({ sql, values }, alone)).rows
  }

  /** Sends a statement with all that are asked for before its turn comes. */
  protected ask(statement: Statement, alone: Asked['alone']): Promise<Answer> {
    void this.connection // throws when the work has ended
    return new Promise((resolve, reject) => {
      this.#asked.push({ statement, alone, resolve, reject })
      if (this.#asked.length === 1) queueMicrotask(() => this.#answerAsked())
    })
  }

  /**
   * One round trip at a time, and none after one that failed: the server may have ended the transaction, and would make
   * whatever follows a transaction of its own.
   */
  protected inTurn<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const round = this.#round.then(() => work(this.connection))
    round.catch(() => undefined)
    this.#round = round
    return round
  }

  async #answerAsked(): Promise<void> {
    let asked: readonly Asked[] = []
    try {
      await this.inTurn(async (connection) => {
        asked = this.#asked.splice(0)
        const [first] = asked
        if (first && asked.length === 1 && this.preparable) return first.resolve(await first.alone(connection))
        const answers = await this.send(asked.map(({ statement }) => withLiterals(statement)))
        for (const [index, { resolve }] of asked.entries()) resolve(answers[index] ?? noAnswer)
      })
    } catch (error) {
      for (const { reject } of [...asked, ...this.#asked.splice(0)]) reject(error)
    }
  }

  /** Whether a statement may go out alone. */
  protected get preparable(): boolean {
    return this.opened
  }

  /** Sends statements in one round trip, after what opens the session. In turn only. */
  protected send(statements: readonly string[]): Promise<readonly Answer[]> {
    const opening = this.#opening
    this.#opening = undefined
    return opening === undefined ? this.connection.script(statements) : this.connection.open(opening, statements)
  }

  /** Nothing is sent any more. Resolves when nothing is under way. */
  async end(): Promise<void> {
    this.#connection = undefined
    await this.#round.catch(() => undefined)
  }
}

/** A write that waits for the next round trip. */
interface Pending {
  readonly table: string
  readonly sql: string
  /** Whether it replaces a row that was read: without a match that row has changed. */
  readonly compared: boolean
}

/** Beyond so many characters nothing waits any longer: a server takes packets of 16 MiB. */
const largestPending = 1024 * 1024

/** What a `Transaction` is inside store/. Its writes go out together: before it reads again, or at its end. */
export class WriteSession extends Session implements Transaction {
  readonly #leaves = new Set<number>()
  readonly #tallies = new Map<string, number>()
  readonly #rows = new WeakSet<object>()
  readonly #held = new WeakSet<object>()
  #pending: Pending[] = []
  #pendingLength = 0
  #wrote = false

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

  /** Runs a statement at once; answers how many rows matched. */
  async run(sql: string, values: readonly Stored[]): Promise<number> {
    this.#wrote = true
    const alone = async (connection: Connection) => ({ rows: [], matched: await connection.run(sql, values) })
    return (await this.ask({ sql, values }, alone)).matched
  }

  protected override get preparable(): boolean {
    return super.preparable && this.#pending.length === 0
  }

  /**
   * Runs a statement with the next ones. When it is `compared` and matches no row, or a unique key is taken, the transaction fails
   * there.
   */
  async write(table: string, { sql, values }: Statement, { compared = false } = {}): Promise<void> {
    void this.connection // throws when the work has ended
    this.#wrote = true
    const text = withLiterals({ sql, values })
    this.#pending.push({ table, sql: text, compared })
    this.#pendingLength += text.length
    if (this.#pendingLength > largestPending) await this.inTurn(() => this.send([]))
  }

  /**
   * Sends what is pending and then `last`, in as few round trips as tell whether the transaction may be committed, and commits.
   * @returns the answers of `last`, and whether it is sure that the COMMIT took place
   */
  commit(last: readonly string[]): Promise<{ answers: readonly Answer[]; sure: boolean }> {
    return this.inTurn(async (connection) => {
      // What is compared must be looked at before the COMMIT, and so must what opens the session.
      if (!this.opened || this.#pending.some(({ compared }) => compared)) {
        const answers = await this.send(last)
        return { answers, sure: await connection.commit([]).then(({ sure }) => sure) }
      }
      const pending = this.#takePending()
      try {
        const { answers, sure } = await connection.commit([...pending.map(({ sql }) => sql), ...last])
        return { answers: answers.slice(pending.length), sure }
      } catch (error) {
        throw explained(error, pending)
      }
    })
  }

  /** What is pending goes first. */
  protected override async send(more: readonly string[]): Promise<readonly Answer[]> {
    const pending = this.#takePending()
    try {
      const answers = await super.send([...pending.map(({ sql }) => sql), ...more])
      if (pending.some(({ compared }, index) => compared && answers[index]?.matched === 0)) throw new Conflict()
      return answers.slice(pending.length)
    } catch (error) {
      throw explained(error, pending)
    }
  }

  #takePending(): readonly Pending[] {
    const pending = this.#pending
    this.#pending = []
    this.#pendingLength = 0
    return pending
  }

  touch(table: string, id: string): void {
    void this.connection // throws when the work has ended
    this.#leaves.add(leafOf(table, id))
    this.#wrote = true
  }

  tally(name: string, delta: number): void {
    void this.connection
    if (!isTallyName(name) || !Number.isSafeInteger(delta)) throw new TypeError(`no tally: ${name} ${delta}`)
    this.#tallies.set(name, (this.#tallies.get(name) ?? 0) + delta)
    this.#wrote ||= delta !== 0
  }

  discardTallies(prefix: string): Promise<void> {
    return this.write('tallies', discarding(prefix))
  }

  /** Written, not only read: so that a take-over elsewhere in the cluster conflicts with this transaction. */
  async fence(job: string, fence: bigint, place?: string): Promise<void> {
    const set = place === undefined ? '' : ', place = ?'
    const sql = `UPDATE job_leases SET beats = beats + 1${set} WHERE name = ? AND fence = ?`
    const values = [...(place === undefined ? [] : [place]), job, String(fence)]
    if ((await this.run(sql, values)) === 0) throw new LeaseLost(job)
  }

  /** Remembers a row as read or written here; `held`: nobody else can change it before this transaction ends. */
  adopt<R extends object>(row: R, held = false): R {
    this.#rows.add(row)
    if (held) this.#held.add(row)
    return row
  }

  /** Forgets a row that was replaced or removed: a second change of it would match nothing, and unnoticed if it was held. */
  disown(row: object): void {
    this.#rows.delete(row)
  }

  /** Whether the row is locked, or was written here. */
  holds(row: object): boolean {
    return this.#held.has(row)
  }

  /** A row from a cache or from another transaction would be merged with what nobody has read. */
  owns(row: object): boolean {
    return this.#rows.has(row)
  }
}

/** Names the table when the unique key of a pending write is taken. */
function explained(error: unknown, pending: readonly Pending[]): unknown {
  if (!(error instanceof Failure && isDuplicate(error) && error.done !== undefined)) return error
  const table = pending[error.done]?.table
  return table === undefined ? error : new DuplicateRow(table, error)
}
