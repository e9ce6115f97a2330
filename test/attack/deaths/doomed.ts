import { afterAll, beforeAll } from 'vitest'
import type { Client } from '../../support/client.ts'
import { type ServerOptions, startServer, type TestServer } from '../../support/server.ts'
import { type Hold, openHold } from '../hold.ts'
import { alive, serving, until } from '../nodes.ts'
import { openSql, type Sql } from '../sql.ts'

/** A cluster of one node that lives, and one that dies by kill -9 at a COMMIT. */
export interface Doomed {
  readonly first: TestServer
  /** The node that dies. */
  readonly second: TestServer
  /** Of the first node. */
  readonly root: Client
  readonly sql: Sql
  /**
   * As `die`, but leaves the node alive: its transaction waits at the COMMIT until the node dies of another one, which
   * must be within 8 s. It keeps the locks that it has then, in the node and in the database.
   */
  stop: Doomed['die']
  /**
   * Sends a request to the second node, kills the node at a COMMIT of that request, and starts it again.
   * @param when `before`: the database never hears of that COMMIT; `after`: it has done it @param nth which COMMIT,
   *   from 1
   * @param counts of which transactions, by their statements; of all but those of jobs, which have theirs when their
   *   time comes, unless it is said
   */
  die(
    when: 'before' | 'after',
    ask: (doomed: Client) => Promise<unknown>,
    nth?: number,
    counts?: (transaction: string) => boolean,
  ): Promise<void>
}

/** Leases that requests take. In statements they are hexadecimal. */
const leasesOfRequests = ["'crl ", "'managed key "]

/** Whether a transaction is neither under the lease of a job, nor the proof that a node has a KEK. */
const isOfRequest = (transaction: string): boolean =>
  !transaction.includes('kek_proofs') &&
  (!transaction.includes('job_leases') || leasesOfRequests.some((name) => transaction.includes(name)))

/** Begins it before the tests of a file and ends it after them. */
export function useDoomed(options: Pick<ServerOptions, 'config'> = {}): Doomed {
  let first: TestServer
  /** The node whose only worker dies; its line to the database stops at a COMMIT. */
  let second: TestServer
  let line: Hold
  let sql: Sql
  let deaths = 0
  let stopped = 0

  beforeAll(async () => {
    first = await startServer(options)
    line = await openHold(first.database.url)
    second = await startServer({ joins: first, config: { ...options.config, database: { url: line.url } } })
    sql = await openSql(first.database.url)
  }, 60_000)
  afterAll(async () => {
    await sql?.[Symbol.asyncDispose]()
    await second?.[Symbol.asyncDispose]()
    await line?.[Symbol.asyncDispose]()
    await first?.[Symbol.asyncDispose]()
  })

  return {
    async stop(when, ask, nth = 1, counts = isOfRequest) {
      const trapped = line.trap(when, nth, counts)
      ask(second.client()).catch(() => undefined)
      await trapped
      stopped++
    },
    get first() {
      return first
    },
    get second() {
      return second
    },
    get root() {
      return first.client()
    },
    get sql() {
      return sql
    },
    async die(when, ask, nth = 1, counts = isOfRequest) {
      const [worker = 0] = serving(second)
      const trapped = line.trap(when, nth, counts)
      const lost = ask(second.client()).catch(() => undefined)
      await trapped
      if (line.trapped !== stopped + 1) throw new Error('the node has given up a transaction that was stopped')
      stopped = 0
      // The worker and the supervisor die in turn; the end of the supervisor ends the worker.
      if (deaths++ % 2 === 0) process.kill(worker, 'SIGKILL')
      else await second.kill()
      await lost
      // The supervisor too: it would wait longer and longer before it restarts a worker that keeps dying.
      await second.kill()
      await until(() => !alive(worker))
      await second.start()
    },
  }
}
