import { createConnection, type Connection as Driver, type QueryOptions } from 'mysql2'
import { Failure } from '../faults.ts'
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

type Answer = readonly Stored[][] | { readonly affectedRows: number }

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

  async #prepareSession(): Promise<void> {
    const clustered = await this.#send<string[][]>(false, {
      sql: "SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'group_replication_group_name')",
    })
    const settings = new Map(clustered.map(([name, value]) => [name, value]))
    const causal =
      settings.get('wsrep_on') === 'ON'
        ? ', wsrep_sync_wait = 1'
        : settings.get('group_replication_group_name')
          ? ", group_replication_consistency = 'BEFORE'"
          : ''
    await this.command('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ')
    await this.command(
      `SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO', time_zone = '+00:00',
      autocommit = 1, wait_timeout = 10, innodb_lock_wait_timeout = 5${causal}`,
    )
  }

  /** Whether a statement failed in a way that leaves the session in doubt. */
  get broken(): boolean {
    return this.#broken
  }

  /** Runs a prepared SELECT; rows are arrays in the order of the select list. */
  async rows(sql: string, values: readonly Stored[] = []): Promise<Stored[][]> {
    return await this.#send<Stored[][]>(true, { sql, values: [...values] })
  }

  /** Runs a prepared statement; answers how many rows matched. */
  async run(sql: string, values: readonly Stored[] = []): Promise<number> {
    const answer = await this.#send<{ affectedRows: number }>(true, { sql, values: [...values] })
    return answer.affectedRows
  }

  /** Runs a statement without parameters as text: transaction control, SET, DDL. */
  async command(sql: string, timeoutMilliseconds = this.#timeoutMilliseconds): Promise<void> {
    await this.#send(false, { sql }, timeoutMilliseconds)
  }

  #send<A extends Answer>(
    prepared: boolean,
    options: QueryOptions & { sql: string; values?: Stored[] },
    timeoutMilliseconds = this.#timeoutMilliseconds,
  ): Promise<A> {
    return new Promise<A>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.destroy()
        reject(new Failure(`no answer within ${timeoutMilliseconds} ms`))
      }, timeoutMilliseconds)
      const done = (error: unknown, answer: unknown): void => {
        clearTimeout(timer)
        if (error) reject(error instanceof TypeError ? error : new Failure(error))
        else resolve(answer as A)
      }
      if (prepared) this.#driver.execute(options, done)
      else this.#driver.query(options, done)
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
