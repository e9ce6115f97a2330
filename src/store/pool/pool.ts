import type { Clock } from '../../clock.ts'
import { unavailable } from '../../errors.ts'
import { busy, isNodeLost, isPassing } from '../faults.ts'
import { Connection, type Timeouts, type Tls } from './connection.ts'
import type { Target } from './target.ts'

export interface PoolOptions {
  readonly targets: readonly Target[]
  readonly limit: number
  /** Callers that may wait for a connection; the next one is refused at once. */
  readonly queueLimit: number
  readonly tls: Tls | undefined
  readonly timeouts: Timeouts
  readonly clock: Clock
}

interface Waiter {
  readonly resolve: (connection: Connection | undefined) => void
  readonly timer: NodeJS.Timeout
}

interface Idle {
  readonly connection: Connection
  readonly since: number
}

/** Half of the session's wait_timeout, so that the server has never just closed an idle connection. */
const idleMilliseconds = 5000

/**
 * Connections, the most recently used first. All go to one node until it fails; then to the next of the list.
 */
export class Pool implements AsyncDisposable {
  readonly #options: PoolOptions
  readonly #idle: Idle[] = []
  readonly #waiting: Waiter[] = []
  #open = 0
  #preferred = 0
  #closed = false
  readonly #sweeper: NodeJS.Timeout

  constructor(options: PoolOptions) {
    this.#options = options
    this.#sweeper = setInterval(() => this.#sweep(), 1000).unref()
  }

  /** Lends a connection for `work` and takes it back, whole or broken. */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.#acquire()
    try {
      return await work(connection)
    } catch (error) {
      if (isNodeLost(error)) this.#abandon(connection)
      throw error
    } finally {
      this.#release(connection)
    }
  }

  async #acquire(): Promise<Connection> {
    if (this.#closed) throw unavailable('the database is being closed')
    this.#sweep()
    const idle = this.#idle.pop()
    if (idle) return idle.connection
    if (this.#open >= this.#options.limit) {
      const handed = await this.#wait()
      if (handed) return handed
    } else this.#open++
    try {
      return await this.#connect()
    } catch (error) {
      this.#vacate()
      throw error
    }
  }

  /** Resolves with a connection, or with undefined when a place has become free, which is then counted as ours. */
  async #wait(): Promise<Connection | undefined> {
    const { queueLimit } = this.#options
    if (this.#waiting.length >= queueLimit) throw busy(new Error(`${queueLimit} others wait for a connection already`))
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        resolve,
        timer: setTimeout(() => {
          this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
          reject(busy(new Error(`all ${this.#options.limit} connections are in use`)))
        }, this.#options.timeouts.statementMilliseconds),
      }
      this.#waiting.push(waiter)
    })
  }

  async #connect(): Promise<Connection> {
    const { targets, tls, timeouts } = this.#options
    let failure: unknown
    for (let tried = 0; tried < targets.length; tried++) {
      const index = this.#preferred
      const target = targets[index]
      if (!target) break
      try {
        return await Connection.open(target, tls, timeouts)
      } catch (error) {
        if (!isPassing(error)) throw error
        failure = error
        this.#avoid(index)
      }
    }
    throw failure
  }

  #avoid(index: number): void {
    if (this.#preferred === index) this.#preferred = (index + 1) % this.#options.targets.length
  }

  /** Avoids the connection's node and closes the idle connections there. */
  #abandon(connection: Connection): void {
    connection.destroy()
    this.#avoid(this.#options.targets.indexOf(connection.target))
    if (this.#options.targets.length > 1) this.#close((idle) => idle.connection.target === connection.target)
  }

  #release(connection: Connection): void {
    if (connection.broken || this.#closed) {
      connection.destroy()
      this.#vacate()
      return
    }
    const waiter = this.#next()
    if (waiter) waiter.resolve(connection)
    else this.#idle.push({ connection, since: this.#options.clock.monotonic() })
  }

  /** Hands the place of a closed connection to the next waiting caller. */
  #vacate(): void {
    const waiter = this.#next()
    if (waiter) waiter.resolve(undefined)
    else this.#open--
  }

  #next(): Waiter | undefined {
    const waiter = this.#waiting.shift()
    if (waiter) clearTimeout(waiter.timer)
    return waiter
  }

  /** Closes connections that have been idle too long or were closed by the server. */
  #sweep(): void {
    const before = this.#options.clock.monotonic() - idleMilliseconds
    this.#close(({ connection, since }) => since <= before || connection.broken)
  }

  #close(unwanted: (idle: Idle) => boolean): void {
    for (let i = this.#idle.length - 1; i >= 0; i--) {
      const idle = this.#idle[i]
      if (!idle || !unwanted(idle)) continue
      this.#idle.splice(i, 1)
      this.#open--
      void idle.connection.end()
    }
  }

  /** Closes idle connections now and lent ones when they come back. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    clearInterval(this.#sweeper)
    await Promise.all(this.#idle.splice(0).map(({ connection }) => connection.end()))
  }
}
