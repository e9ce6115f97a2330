import { createConnection, type Connection as Driver, type QueryOptions } from 'mysql2'
import { Failure, isRefusedCommit, notWriting, TimedOut } from '../faults.ts'
import type { Stored } from '../table.ts'
import type { Target } from './target.ts'

export interface Tls {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

export interface Timeouts {
  readonly connectMilliseconds: number
  /** Above innodb_lock_wait_timeout. Group Replication without a quorum would block for ever. */
  readonly statementMilliseconds: number
}

/** What one statement of a script answered: rows, or how many matched. */
export interface Answer {
  readonly rows: Stored[][]
  readonly matched: number
}

type AnswerOf = Stored[][] | { readonly affectedRows: number }

const answerOf = (answer: AnswerOf): Answer =>
  Array.isArray(answer) ? { rows: answer, matched: 0 } : { rows: [], matched: answer.affectedRows }

interface How {
  readonly prepared?: boolean
  /** Whether the node is lost when it does not answer in time. */
  readonly aboutNode?: () => boolean
  readonly timeoutMilliseconds?: number
  readonly fault?: (error: unknown) => Failure
  /** Called when a statement of a script has succeeded. */
  readonly onStatement?: () => void
}

/**
 * What a session begins with, together with its first statement; each asks whether the node takes writes. To read one
 * moment, the question opens the snapshot. To change, it comes before the transaction, whose snapshot is opened by its first
 * read without a lock: what follows the wait for a lock sees what the holder has committed.
 */
const openings = {
  single: (question: string) => [question],
  snapshot: (question: string) => ['START TRANSACTION READ ONLY', question],
  change: (question: string) => [question, 'START TRANSACTION READ WRITE'],
} as const
export type Opening = keyof typeof openings

/** What a node answers that takes writes: @@read_only, and its state as a member of a replication group. */
const writingStates: readonly unknown[] = ['0', 'OFF', '0 ONLINE', 'OFF ONLINE']
const memberState = `(SELECT MEMBER_STATE FROM performance_schema.replication_group_members
  WHERE MEMBER_ID = @@server_uuid)`

function requireWrites([row]: readonly Stored[][]): void {
  if (!writingStates.includes(row?.[0])) throw notWriting()
}

/**
 * One session of the database, one statement at a time. Repeatable read: what a transaction reads belongs to one
 * moment, so that a set can be verified against its head; writes compare what they replace. wait_timeout and
 * innodb_lock_wait_timeout make the server drop the locks of a client that stopped.
 */
export class Connection {
  readonly target: Target
  readonly #driver: Driver
  readonly #timeoutMilliseconds: number
  #broken = false
  #nodeState = 'CONCAT(@@read_only)'
  /**
   * Whether another node may take a transaction back between two statements. Within one text the server then goes on as if
   * nothing had happened, each statement for itself (seen on MariaDB Galera 10.11), so there they are sent one by one.
   */
  #clustered = false

  private constructor(driver: Driver, target: Target, timeouts: Timeouts) {
    this.#driver = driver
    this.target = target
    this.#timeoutMilliseconds = timeouts.statementMilliseconds
    driver.on('error', () => this.destroy())
  }

  static async open(target: Target, tls: Tls | undefined, timeouts: Timeouts): Promise<Connection> {
    const driver = createConnection({
      ...(target.socketPath === undefined
        ? { host: target.host, port: target.port, ...(tls ? { ssl: { ...tls, verifyIdentity: true } } : {}) }
        : { socketPath: target.socketPath }),
      user: target.user,
      password: target.password,
      database: target.schema,
      charset: 'utf8mb4',
      connectTimeout: timeouts.connectMilliseconds,
      supportBigNumbers: true,
      rowsAsArray: true,
      maxPreparedStatements: 500,
      multipleStatements: true,
    })
    const connection = new Connection(driver, target, timeouts)
    try {
      await connection.#prepareSession()
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    }
  }

  /** Nothing is left to what the server's operator lets sessions begin with. */
  async #prepareSession(): Promise<void> {
    const clustered = await this.#send<string[][]>({
      sql: "SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'group_replication_group_name')",
    })
    const settings = new Map(clustered.map(([name, value]) => [name, value]))
    const inGroup = Boolean(settings.get('group_replication_group_name'))
    const inGalera = settings.get('wsrep_on') === 'ON'
    this.#clustered = inGroup || inGalera
    const causal = inGalera
      ? ', wsrep_sync_wait = 1, wsrep_dirty_reads = OFF'
      : inGroup
        ? ", group_replication_consistency = 'BEFORE'"
        : ''
    if (inGroup) this.#nodeState = `CONCAT(@@read_only, ' ', ${memberState})`
    await this.command('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ')
    await this.command(
      `SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO', time_zone = '+00:00',
      autocommit = 1, completion_type = 0, sql_select_limit = 18446744073709551615, sql_safe_updates = 0,
      wait_timeout = 10, innodb_lock_wait_timeout = 5${causal}`,
    )
  }

  /** Whether a statement failed in a way that leaves the session in doubt. */
  get broken(): boolean {
    return this.#broken
  }

  /**
   * Reads rows and, in the same statement, whether the node takes writes; throws unless it does: what any other node answers
   * may be old. A node that leaves this unanswered is lost, so it must be little work. The statement has to read a table: a
   * node that was cut off from its cluster answers one that reads none.
   * @param select the select list and what follows
   */
  async ask(select: string, values: readonly Stored[] = []): Promise<Stored[][]> {
    const sql = `SELECT ${this.#nodeState}, ${select}`
    const rows = await this.#send<Stored[][]>({ sql, values: [...values] }, { prepared: true, aboutNode: () => true })
    requireWrites(rows)
    return rows.map(([, ...row]) => row)
  }

  /** Asks whether the node takes writes; what is read from now on is as new as this question. */
  async requireWriter(): Promise<void> {
    await this.ask('1 FROM `schema`')
  }

  /** Runs a prepared SELECT; rows are arrays in the order of the select list. */
  async rows(sql: string, values: readonly Stored[] = []): Promise<Stored[][]> {
    return await this.#send<Stored[][]>({ sql, values: [...values] }, { prepared: true })
  }

  /** Runs a prepared statement; answers how many rows matched. */
  async run(sql: string, values: readonly Stored[] = []): Promise<number> {
    const answer = await this.#send<{ affectedRows: number }>({ sql, values: [...values] }, { prepared: true })
    return answer.affectedRows
  }

  /** Runs statements as text, in one round trip where that is safe, each after the one before has succeeded. */
  script(statements: readonly string[]): Promise<Answer[]> {
    return this.#script(statements)
  }

  /**
   * As script, after what opens a session. A node that leaves the question open whether it takes writes is lost.
   * @returns the answers of `statements`
   */
  async open(opening: Opening, statements: readonly string[]): Promise<Answer[]> {
    const before = openings[opening](`SELECT ${this.#nodeState} FROM \`schema\``)
    const answers = await this.#script([...before, ...statements], before.length)
    requireWrites(answers.find(({ rows }) => rows.length > 0)?.rows ?? [])
    return answers.slice(before.length)
  }

  /**
   * Runs statements and then COMMIT, in one round trip. Not together with what opens a session: a node that takes no writes
   * would have been asked too late.
   * @returns the answers, and whether it is sure that the COMMIT took place
   * @throws {Failure} when it surely did not
   */
  async commit(statements: readonly string[]): Promise<{ answers: Answer[]; sure: boolean }> {
    try {
      return { answers: await this.#script([...statements, 'COMMIT']), sure: true }
    } catch (error) {
      const before = error instanceof Failure && error.number > 0 && Number(error.done) < statements.length
      if (before || isRefusedCommit(error)) throw error
      this.destroy()
      return { answers: [], sure: false }
    }
  }

  /** @param opening how many of the statements open a session: their failure is not told from the connection's */
  async #script(statements: readonly string[], opening = 0): Promise<Answer[]> {
    let done = 0
    const how: How = {
      aboutNode: () => done < opening,
      fault: (error) => new Failure(error, done - opening),
      onStatement: () => done++,
    }
    if (!this.#clustered) {
      const answers = await this.#send<AnswerOf | AnswerOf[]>({ sql: statements.join('; ') }, how)
      const all = (statements.length === 1 ? [answers] : answers) as readonly AnswerOf[]
      return all.map(answerOf)
    }
    const answers: Answer[] = []
    for (const sql of statements) answers.push(answerOf(await this.#send<AnswerOf>({ sql }, how)))
    return answers
  }

  /** Runs a statement without parameters as text: transaction control, SET, DDL. */
  async command(sql: string, timeoutMilliseconds = this.#timeoutMilliseconds): Promise<void> {
    await this.#send({ sql }, { timeoutMilliseconds })
  }

  #send<A>(
    options: QueryOptions & { sql: string; values?: Stored[] },
    { prepared = false, timeoutMilliseconds = this.#timeoutMilliseconds, ...how }: How = {},
  ): Promise<A> {
    const { aboutNode = () => false, fault = (error) => new Failure(error), onStatement } = how
    return new Promise<A>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.destroy()
        reject(new TimedOut(timeoutMilliseconds, aboutNode()))
      }, timeoutMilliseconds)
      const done = (error: unknown, answer: unknown): void => {
        clearTimeout(timer)
        if (error) reject(error instanceof TypeError ? error : fault(error))
        else resolve(answer as A)
      }
      const command = prepared ? this.#driver.execute(options, done) : this.#driver.query(options, done)
      if (onStatement) command.on('fields', onStatement)
    })
  }

  destroy(): void {
    this.#broken = true
    this.#driver.destroy()
  }

  /** Says goodbye, so that the server frees the session at once. */
  async end(): Promise<void> {
    if (this.#broken) return
    this.#broken = true
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, 1000)
      this.#driver.end(() => {
        clearTimeout(timer)
        resolve()
      })
    })
    this.#driver.destroy()
  }
}
