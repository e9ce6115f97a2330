import { createConnection, type Connection as Driver, type QueryOptions } from 'mysql2'
import { Failure, isConclusive, isHeldElsewhere, isRefusedCommit, notWriting, TimedOut } from '../faults.ts'
import type { Stored } from '../table.ts'
import { isFailedAssertion } from './assertion.ts'
import { Compounds, oneByOne, type Script } from './compound.ts'
import { isMariaDb, leastPacketBytes, requirePacket, requireSoundEngine } from './engine.ts'
import type { Parameterised } from './literal.ts'
import type { Target } from './target.ts'

export interface Tls {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

export interface Timeouts {
  readonly connectMilliseconds: number
  /** Longer than innodb_lock_wait_timeout. Group Replication without a quorum would block for ever. */
  readonly statementMilliseconds: number
}

/** The answer to one statement of a script: rows, or the number of rows that matched. */
export interface Answer {
  readonly rows: Stored[][]
  readonly matched: number
}

type AnswerOf = Stored[][] | { readonly affectedRows: number }

const answerOf = (answer: AnswerOf): Answer =>
  Array.isArray(answer) ? { rows: answer, matched: 0 } : { rows: [], matched: answer.affectedRows }

interface How {
  readonly prepared?: boolean
  /** Whether a missing answer means that the node is lost. */
  readonly aboutNode?: () => boolean
  readonly timeoutMilliseconds?: number
  readonly fault?: (error: unknown) => Failure
  /** Called at each answer to a script that is no error; returns the time left for the rest if that is to change. */
  readonly onAnswer?: ((hasRows: boolean) => number | undefined) | undefined
}

export interface Committing {
  /** Whether the transaction is open already. */
  readonly opened: boolean
  /**
   * The select list and FROM clause of a SELECT that begins when the COMMIT has returned; it is sent along where that
   * is safe. Keep it cheap: if its answer is late, the answers of the statements are lost too.
   */
  readonly next?: string | undefined
}

/** The outcome of a COMMIT. */
export interface Committed {
  /** The rows of each statement before it that gives any; undefined when they are lost. */
  readonly given: readonly (readonly (readonly Stored[])[])[] | undefined
  /** Whether it certainly took place. */
  readonly sure: boolean
  /** The rows of `next`, read right after it on a node that takes writes. */
  readonly rows: readonly (readonly Stored[])[] | undefined
}

/** The time limit of a SELECT that follows a COMMIT: no lock can hold it up. */
const afterCommitMilliseconds = 500

/**
 * The statements that open a session, sent with its first one; each asks whether the node takes writes. For a snapshot
 * the question is its first read. For a change it comes before the transaction, whose snapshot is opened by its first
 * read without a lock: reads after waiting for a lock see the commits of its holder.
 */
const begin = 'START TRANSACTION READ WRITE'
const openings = {
  single: (question: string) => [question],
  snapshot: (question: string) => ['START TRANSACTION READ ONLY', question],
  change: (question: string) => [question, begin],
} as const
export type Opening = keyof typeof openings

/** The answers of a node that takes writes: @@read_only, and its state as a member of a replication group. */
const writingStates: readonly string[] = ['0', 'OFF', '0 ONLINE', 'OFF ONLINE']
const memberState = `(SELECT MEMBER_STATE FROM performance_schema.replication_group_members
  WHERE MEMBER_ID = @@server_uuid)`

/** Whether the node with this state takes writes, in SQL. */
const writing = (state: string): string => `${state} IN (${writingStates.map((one) => `'${one}'`).join()})`

const writes = ([row]: readonly Stored[][]): boolean => writingStates.includes(String(row?.[0]))

function requireWrites(rows: readonly Stored[][]): void {
  if (!writes(rows)) throw notWriting()
}

/**
 * One session of the database, one statement at a time. Repeatable read: all reads of a transaction see one moment, so
 * that a set can be verified against its head; writes compare the row they replace. wait_timeout and
 * innodb_lock_wait_timeout make the server drop the locks of a client that stopped.
 */
export class Connection {
  readonly target: Target
  readonly #driver: Driver
  readonly #timeoutMilliseconds: number
  #broken = false
  #nodeState = 'CONCAT(@@read_only)'
  /**
   * Whether another node may roll a transaction back between two statements. In a multi-statement text the server would
   * then go on as if nothing had happened, each statement in its own transaction (seen on MariaDB Galera 10.11), so
   * there they are sent one by one.
   */
  #clustered = false
  readonly #compounds = new Compounds()
  #packetBytes = leastPacketBytes
  #mariaDb = false

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
      // Texts come without values: nothing in them is to be replaced, and they need not be searched for it.
      queryFormat: (sql) => sql,
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

  /** Sets everything that matters, whatever defaults the server's operator has chosen for sessions. */
  async #prepareSession(): Promise<void> {
    const variables = await this.#send<string[][]>({
      sql: `SHOW VARIABLES WHERE Variable_name IN
        ('version', 'version_comment', 'tidb_txn_mode', 'wsrep_on', 'group_replication_group_name', 'max_allowed_packet')`,
    })
    const settings = new Map(variables.map(([name, value]) => [name, value]))
    requireSoundEngine([settings.get('version'), settings.get('version_comment'), ...settings.keys()].join(' '))
    this.#mariaDb = isMariaDb(settings.get('version'))
    this.#packetBytes = requirePacket(settings.get('max_allowed_packet'))
    const inGroup = Boolean(settings.get('group_replication_group_name'))
    const inGalera = settings.get('wsrep_on') === 'ON'
    this.#clustered = inGroup || inGalera
    const causal = inGalera
      ? ', wsrep_sync_wait = 1, wsrep_dirty_reads = OFF'
      : inGroup
        ? ", group_replication_consistency = 'BEFORE'"
        : ''
    if (inGroup) this.#nodeState = `CONCAT(@@read_only, ' ', ${memberState})`
    // A server may have a default of its own for this, too (skip-character-set-client-handshake, init_connect).
    await this.command('SET NAMES utf8mb4')
    await this.command('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ')
    await this.command(
      `SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO', time_zone = '+00:00',
      autocommit = 1, completion_type = 0, sql_select_limit = 18446744073709551615, sql_safe_updates = 0,
      wait_timeout = 10, innodb_lock_wait_timeout = 5${causal}`,
    )
  }

  /** Whether `INSERT … RETURNING` is known. */
  get returning(): boolean {
    return this.#mariaDb
  }

  /** Makes of a change one that fails where it would wait for a row; undefined where the server has no such form. */
  get hurried(): ((change: string) => string) | undefined {
    return this.#mariaDb ? (change) => `SET STATEMENT innodb_lock_wait_timeout = 0 FOR ${change}` : undefined
  }

  /** The longest statement that the server takes. */
  get packetBytes(): number {
    return this.#packetBytes
  }

  /** Whether a statement failed in a way that leaves the session in doubt. */
  get broken(): boolean {
    return this.#broken
  }

  /**
   * Reads rows and, in the same statement, whether the node takes writes; throws unless it does: the answer of any
   * other node may be old. A node that does not answer counts as lost, so the statement must be cheap. It has to read a
   * table: a node that was cut off from its cluster still answers a statement without one.
   * @param select the select list and FROM clause
   * @param asking a condition for the rows that say so: of many rows one is enough
   */
  async ask(select: string, values: readonly Stored[] = [], asking?: string): Promise<Stored[][]> {
    const state = asking === undefined ? this.#nodeState : `CASE WHEN ${asking} THEN ${this.#nodeState} END`
    const sql = `SELECT ${state}, ${select}`
    const rows = await this.#send<Stored[][]>({ sql, values: [...values] }, { prepared: true, aboutNode: () => true })
    requireWrites([rows.find(([said]) => said !== null) ?? []])
    return rows.map(([, ...row]) => row)
  }

  /**
   * As ask, for several selects of the same columns and one row each, all as of one moment.
   * @returns their rows, in the order of `selects`
   */
  async askAll(selects: readonly string[], values: readonly Stored[]): Promise<Stored[][]> {
    // In a UNION, MariaDB truncates the text of a variable to an assumed length of 1.
    const state = `CAST(${this.#nodeState} AS CHAR(64))`
    const numbered = selects.map((select, index) => `${state}, ${index}, ${select}`)
    const statement = { sql: `SELECT ${numbered.join(' UNION ALL SELECT ')}`, values: [...values] }
    const rows = await this.#send<Stored[][]>(statement, { prepared: true, aboutNode: () => true })
    // The order of a UNION is the server's choice.
    const ordered = rows.toSorted(([, one], [, other]) => Number(one) - Number(other))
    requireWrites(ordered)
    if (ordered.length !== selects.length) throw new Error(`${ordered.length} rows of ${selects.length} selects`)
    return ordered.map(([, , ...row]) => row)
  }

  /** Asks whether the node takes writes; later reads are at least as new as this question. */
  async requireWriter(): Promise<void> {
    await this.ask('1 FROM `schema`')
  }

  /** Runs a prepared SELECT; rows are arrays in the order of the select list. */
  async rows(sql: string, values: readonly Stored[] = []): Promise<Stored[][]> {
    return await this.#send<Stored[][]>({ sql, values: [...values] }, { prepared: true })
  }

  /** Runs a prepared statement; returns the number of rows that matched. */
  async run(sql: string, values: readonly Stored[] = []): Promise<number> {
    const answer = await this.#send<{ affectedRows: number }>({ sql, values: [...values] }, { prepared: true })
    return answer.affectedRows
  }

  /** Runs statements as text, in one round trip where that is safe, each after the one before has succeeded. */
  script(statements: readonly string[]): Promise<Answer[]> {
    return this.#script(statements)
  }

  /**
   * As script, after the statements that open a session. A node that does not answer whether it takes writes counts as
   * lost.
   * @returns the answers of `statements`
   */
  async open(opening: Opening, statements: readonly string[]): Promise<Answer[]> {
    const before = openings[opening](`SELECT ${this.#nodeState} FROM \`schema\``)
    const answers = await this.#script([...before, ...statements], { opening: before.length })
    requireWrites(answers.find(({ rows }) => rows.length > 0)?.rows ?? [])
    return answers.slice(before.length)
  }

  /** A condition, in SQL: this node takes writes. The statement it stands in has to use a table (`ask`). */
  get writing(): string {
    return writing(this.#nodeState)
  }

  /**
   * Runs statements, one of which asserts that the node takes writes (`recordOutcome`), and then COMMIT, in one round
   * trip; before them the statement that opens the transaction if it is not open.
   * @throws {Failure} when the COMMIT certainly did not take place
   */
  async commit(statements: readonly (string | Parameterised)[], { opened, next }: Committing): Promise<Committed> {
    const after = next !== undefined && !this.#clustered ? [`SELECT ${this.#nodeState}, ${next}`] : []
    const transaction = { opening: opened ? [] : [begin], statements, after }
    const compound = this.#mariaDb && !this.#clustered && !opened ? this.#compounds.script(transaction) : undefined
    if (compound) {
      const tried = await this.#tryCommit(compound)
      if (!(tried instanceof Failure)) return tried
      if (isConclusive(tried)) throw tried
      // Run one by one, the statements show which of them fails.
      await this.command('ROLLBACK')
    }
    const tried = await this.#tryCommit(oneByOne(transaction))
    if (tried instanceof Failure) throw tried
    return tried
  }

  /** @returns the failure where the COMMIT certainly did not take place */
  async #tryCommit({ texts, preliminary, uncommitted, answersAll, prepared }: Script): Promise<Committed | Failure> {
    let answered = 0
    const onAnswer = (hasRows: boolean): number | undefined => {
      if (!answersAll && hasRows) return undefined
      answered++
      if (answered === preliminary) prepared?.()
      return answered > uncommitted ? afterCommitMilliseconds : undefined
    }
    try {
      const answers = await this.#script(texts, { opening: answersAll ? preliminary : 0, onAnswer })
      const look = texts.length > uncommitted + 1 ? answers.pop()?.rows : undefined
      const given = answers.map(({ rows }) => rows).filter((rows) => rows.length > 0)
      return { given, sure: true, rows: look && writes(look) ? look.map(([, ...row]) => row) : undefined }
    } catch (error) {
      // One by one, a query that fails at its first row counts as answered: the last one before the COMMIT, too, which
      // asserts or waits for a row. On one server no COMMIT fails by these.
      const early = error instanceof Failure && error.number > 0 && answered < uncommitted
      const refused = early || isFailedAssertion(error) || (!this.#clustered && isHeldElsewhere(error))
      const sure = answered > uncommitted
      if (!sure && (refused || isRefusedCommit(error)) && error instanceof Failure) return error
      this.destroy()
      return { given: undefined, sure, rows: undefined }
    }
  }

  /**
   * @param opening the number of statements that open a session: their failure counts as the connection's
   * @param onAnswer as `How.onAnswer`
   */
  async #script(
    statements: readonly string[],
    { opening = 0, onAnswer }: { opening?: number; onAnswer?: How['onAnswer'] } = {},
  ): Promise<Answer[]> {
    let done = 0
    const how: How = {
      aboutNode: () => done < opening,
      fault: (error) => new Failure(error, done - opening),
      onAnswer: (hasRows) => {
        done++
        return onAnswer?.(hasRows)
      },
    }
    if (!this.#clustered) {
      const answers = await this.#send<AnswerOf | AnswerOf[]>({ sql: statements.join('; ') }, how)
      const all = (statements.length === 1 ? [answers] : answers) as readonly AnswerOf[]
      return all.map(answerOf)
    }
    const answers: Answer[] = []
    const { onAnswer: succeeded, ...alone } = how
    for (const sql of statements) {
      const answer = answerOf(await this.#send<AnswerOf>({ sql }, alone))
      answers.push(answer)
      succeeded?.(answer.rows.length > 0)
    }
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
    const { aboutNode = () => false, fault = (error) => new Failure(error), onAnswer } = how
    return new Promise<A>((resolve, reject) => {
      const limit = (milliseconds: number): NodeJS.Timeout =>
        setTimeout(() => {
          this.destroy()
          reject(new TimedOut(milliseconds, aboutNode()))
        }, milliseconds)
      let timer = limit(timeoutMilliseconds)
      const done = (error: unknown, answer: unknown): void => {
        clearTimeout(timer)
        if (error) reject(error instanceof TypeError ? error : fault(error))
        else resolve(answer as A)
      }
      const command = prepared ? this.#driver.execute(options, done) : this.#driver.query(options, done)
      if (!onAnswer) return
      command.on('fields', (columns: unknown) => {
        const left = onAnswer(columns !== undefined)
        if (left === undefined) return
        clearTimeout(timer)
        timer = limit(left)
      })
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
